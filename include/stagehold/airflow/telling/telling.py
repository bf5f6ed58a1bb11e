"""What a region's task reports to others when it begins and when it ends. A failure to report never fails the task."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.sdk import AssetAlias

from stagehold.airflow.telling.emitted_metrics import send_checkpoint_age, send_work
from stagehold.airflow.telling.ends import is_first_to_tell
from stagehold.airflow.telling.news import news_of_ended_waivers, news_of_gates, news_of_run, was_resumed
from stagehold.airflow.telling.notifying import notify
from stagehold.airflow.telling.outlets import table_asset
from stagehold.airflow.telling.stage_lineage import emit_lineage
from stagehold.airflow.telling.task_work import StageWork, asset_facts, complete_before, work_since
from stagehold.airflow.telling.untold import note_untold
from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors.request_errors import UnknownName
from stagehold.lake.store.location import table_location
from stagehold.ledger.ledger import Ledger
from stagehold.plan.split.shares import region_shares
from stagehold.run.attempt.retraction import ENDED
from stagehold.run.intervals.interval_standings import stage_standings
from stagehold.run.planning.acceptance import waivers_for
from stagehold.run.planning.task import RegionTask
from stagehold.settings import Settings
from stagehold.spec.settings.airflow_settings import Hook

if TYPE_CHECKING:
    from airflow.sdk import Context

    from stagehold.airflow.telling.news import RunNews

log = logging.getLogger(__name__)


class Telling:
    """The reports of one attempt of a task, from its beginning at ``began``."""

    def __init__(self, task: RegionTask, context: Context, link: str, settings: Settings, began: datetime) -> None:
        self.task, self.context, self.link, self.settings, self.began = task, context, link, settings, began

    def tell_beginning(self, life: datetime) -> None:
        """Call the notifiers of `on_resume`, once for each start of a run that had not finished.

        :param life: when Airflow started the run.
        """
        if self.task.pipeline.on_resume:
            self._harmlessly("the resume", lambda ledger: self._tell_resume(life, ledger))

    @contextmanager
    def telling_end(self) -> Iterator[None]:
        """When the block has ended, send metrics and the verdicts of gates; if it ended well, events of assets and of
        lineage, too. Nothing if it was cancelled.
        """
        try:
            yield
        except Exception:
            self._tell_work()
            raise
        self._tell_work()
        self._harmlessly("assets and lineage", self._tell_computed)

    def _tell_work(self) -> None:
        self._harmlessly("metrics", self._send_metrics)
        if self.task.pipeline.on_gate_warning:
            self._harmlessly("gates", self._tell_gates)

    def _harmlessly(self, what: str, tell: Callable[[Ledger], None]) -> None:
        try:
            with open_ledger(self.settings, self.task.redact) as ledger:
                tell(ledger)
        except Exception:
            log.exception("nobody could be told of %s; the task goes on", what)

    def _tell_resume(self, life: datetime, ledger: Ledger) -> None:
        request = self.task.request
        try:
            run = ledger.runs.get(request.run_id)
        except UnknownName:
            return
        if was_resumed(ledger.transitions.of_run(request.run_id), life) and self._is_first(life, ledger):
            news = news_of_run(Hook.ON_RESUME, run, self.task.pipeline, ledger, self.settings, self.link)
            self._notify(news, ledger)

    def _notify(self, news: RunNews, ledger: Ledger) -> None:
        note_untold(news.run_id, notify(self.task.pipeline, news, self.context, self.settings.project), ledger)

    def _is_first(self, life: datetime, ledger: Ledger) -> bool:
        """Whether this task is the one that reports: of the tasks that start with the run, the one with the first
        lease.
        """
        name = f"{self.task.request.run_id}/resumed/{life.isoformat()}"
        return is_first_to_tell(name, self.task.owner, ledger, self.settings)

    def _send_metrics(self, ledger: Ledger) -> None:
        pipeline, now = self.task.pipeline.name, datetime.now(UTC)
        send_work(pipeline, work_since(self.began, self.task, ledger))
        send_checkpoint_age(pipeline, ledger.checkpoints.of_run(self.task.request.run_id), now)

    def _tell_gates(self, ledger: Ledger) -> None:
        judged = [one for work in work_since(self.began, self.task, ledger) for one in work.judged]
        run = ledger.runs.get(self.task.request.run_id)
        for news in news_of_gates(run, judged, self.task.pipeline, ledger, self.settings, self.link):
            self._notify(news, ledger)
        ended = [one for one in ledger.events.of_run(run.run_id) if one.kind == ENDED and one.recorded_at >= self.began]
        for news in news_of_ended_waivers(run, ended, self.task.pipeline, ledger, self.settings, self.link):
            self._notify(news, ledger)

    def _tell_computed(self, ledger: Ledger) -> None:
        """Report what the run computed since the region was complete before. Only the task that completes the region
        reports it: earlier attempts, and tasks of other shares, may have computed some of it.
        """
        since = self._complete_before(ledger)
        if since is None:
            return
        whole = replace(self.task, share=None)
        for work in work_since(since, whole, ledger):
            if work.computed:
                failed = emit_lineage(work, self.task, ledger, self.settings, self.context["ti"])
                note_untold(self.task.request.run_id, [failed] if failed else (), ledger)
                if work.stage.output.table is not None:
                    self._add_event(work, work.stage.output.table, ledger)

    def _complete_before(self, ledger: Ledger) -> datetime | None:
        task = self.task
        attempts = [one for one in ledger.attempts.of_run(task.request.run_id) if one.region == task.region.name]
        shares = [None if share is None else str(share) for share in region_shares(task.pipeline, task.region)]
        return complete_before(None if task.share is None else str(task.share), attempts, shares)

    def _add_event(self, work: StageWork, table: str, ledger: Ledger) -> None:
        request = self.task.request
        words = waivers_for(request.pipeline, request.interval, ledger, self.settings).get(work.stage.name, ())
        uri = table_location(self.settings.lake_uri, request.pipeline.name, work.stage, request.interval).uri
        standing = stage_standings(request.pipeline, request.interval, ledger)[work.stage.id]
        facts = asset_facts(work, standing, request.run_id, words)
        self.context["outlet_events"][AssetAlias(name=table)].add(table_asset(table, uri), extra=facts)
        log.info(
            "%s: %s of %s partitions are new, which Airflow's asset tells",
            table,
            facts["computed"],
            facts["partitions"],
        )
