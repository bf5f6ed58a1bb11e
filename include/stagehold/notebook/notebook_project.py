"""A project as `stagehold.open` gives it. What commands print is returned, and shows itself; what they do is done by
the same functions.
"""

from __future__ import annotations

import atexit
import getpass
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stagehold.cli.common.output import ShownTable
from stagehold.cli.common.request import RunOptions, request_asked, stage_asked
from stagehold.errors import BackfillRefused, InvalidArgument, InvalidSpec
from stagehold.model.backfill import BackfillChoice, Only
from stagehold.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from stagehold.run.here.stage_frames import StageFrames
    from stagehold.run.planning.planning import RunRequest
    from stagehold.spec.pipeline import Pipeline

Params = Mapping[str, Any] | None
SHOWN = 20  # rows


class NotebookProject(Mapping[str, "NotebookPipeline"]):
    """The pipelines of a project by their names, as their files are whenever they are asked for.

    Frames of stages hold a Spark session each, until `close`, or until Python ends.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._sessions = ExitStack()
        atexit.register(self.close)

    def __getitem__(self, name: str) -> NotebookPipeline:
        """:raises UnknownName: there is no such pipeline"""
        found = NotebookPipeline(self, name)
        found.declared()
        return found

    def __iter__(self) -> Iterator[str]:
        return (each.name for each in self._loaded() if not isinstance(each, InvalidSpec))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __enter__(self) -> NotebookProject:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the sessions back. Frames that came of them cannot be read any more."""
        self._sessions.close()

    def status(self) -> ShownTable:
        """The newest runs of all pipelines."""
        from stagehold.chronicle.chronicle import open_ledger
        from stagehold.cli.status import recent_runs

        with open_ledger(self.settings) as ledger:
            return recent_runs(ledger, self.settings)

    def __repr__(self) -> str:
        return repr(self._shown())

    def _repr_html_(self) -> str:
        return self._shown()._repr_html_()

    def frames(self, request: RunRequest, stage: str, partitions: Sequence[int]) -> StageFrames:
        """Frames of a stage, in a session that stays. It shows the first rows of a frame wherever one is displayed."""
        from stagehold.run.here.stage_frames import stage_frames

        opened = stage_frames(request, stage, partitions, self.settings, _progress)
        found = self._sessions.enter_context(opened)
        found.spark.conf.set("spark.sql.repl.eagerEval.enabled", "true")
        return found

    def _loaded(self) -> Sequence[Pipeline | InvalidSpec]:
        from stagehold.spec.loading.loader import load_each_pipeline

        return load_each_pipeline(self.settings)

    def _shown(self) -> ShownTable:
        rows, broken = [], []
        for each in self._loaded():
            if isinstance(each, InvalidSpec):
                broken.append(str(each))
            else:
                rows.append((each.name, each.schedule or "", ", ".join(stage.name for stage in each.stages), each.file))
        none = () if rows or broken else (f"There is no pipeline in {self.settings.pipelines}.",)
        return ShownTable(self.settings.project, ("pipeline", "schedule", "stages", "file"), rows, (*broken, *none))


@dataclass(frozen=True)
class NotebookPipeline:
    """A pipeline of an opened project. An interval is a date, a moment or a key; by default today's."""

    project: NotebookProject
    name: str

    def declared(self) -> Pipeline:
        """The pipeline as its file is now."""
        from stagehold.spec.loading.loader import find_pipeline

        return find_pipeline(self.name, self.project.settings)

    def stage(self, name: str) -> NotebookStage:
        """:raises UnknownName: the pipeline has no such stage"""
        stage_asked(self.declared(), name)
        return NotebookStage(self, name)

    def plan(self, interval: str | None = None, params: Params = None) -> ShownTable:
        """What a run would reuse and compute, and why."""
        from stagehold.cli.running.plan import plan_table
        from stagehold.run.planning.current_plan import current_plan

        request = self.request("", interval, params)
        return plan_table(request, current_plan(request, self.project.settings))

    def run(self, interval: str | None = None, params: Params = None, *, run_id: str | None = None) -> ShownTable:
        """Run it in this process, with what is consumable reused. An interrupt cancels the run."""
        named = run_id or f"{self.name}/notebook__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
        return self._run(self.request(named, interval, params))

    def resume(self, run_id: str | None = None, *, again: Sequence[str] = ()) -> ShownTable:
        """Go on with a run, by default with the newest that failed or was stopped.

        :param again: stages to compute once more.
        :raises InvalidArgument: it is a run of Airflow's
        """
        from stagehold.cli.running.resume import request_again, run_to_resume

        run = run_to_resume(run_id, self.project.settings, self.name)
        if run.launcher == "airflow":
            allowed = f"a run of this machine; for this one, `stagehold resume '{run.run_id}'`, or Resume on its page"
            raise InvalidArgument("run_id", run.run_id, allowed)
        return self._run(request_again(run, again, self.project.settings))

    def backfill(
        self,
        first: str,
        last: str | None = None,
        *,
        stages: Sequence[str] = (),
        only: Only | str | None = None,
        dry_run: bool = False,
    ) -> ShownTable:
        """Run what is needed of a range of intervals in this process, one after the other; with ``dry_run``, only show
        it.

        :raises BackfillRefused: it cannot be run
        """
        from stagehold.chronicle.chronicle import open_ledger
        from stagehold.cli.backfill.backfill_command import cells_table, total_of
        from stagehold.cli.backfill.backfill_execution import outcomes_table, run_begun
        from stagehold.run.backfill.backfill_planning import plan_backfill
        from stagehold.run.backfill.backfill_runs import begin_backfill

        pipeline, settings = self.declared(), self.project.settings
        choice = BackfillChoice(first, last or first, tuple(stages), Only(only) if only else None, None)
        with open_ledger(settings) as ledger:
            plan = plan_backfill(choice, pipeline, ledger, settings)
            if plan.refusal and not plan.is_done:
                raise BackfillRefused(plan.pipeline, plan.refusal)
            if dry_run or plan.is_done:
                cells = cells_table(plan, pipeline)
                return ShownTable(cells.title, cells.columns, cells.rows, (total_of(plan),))
            begun = begin_backfill(plan, plan.token, getpass.getuser(), ledger)
        return outcomes_table(begun.backfill_id, run_begun(begun.backfill_id, pipeline, settings, _progress))

    def status(self, limit: int = SHOWN) -> ShownTable:
        """What each of the newest runs did about each stage."""
        from stagehold.cli.running.runs_command import runs_of, runs_table
        from stagehold.run.intervals.run_matrix import RunsAsked

        pipeline = self.declared()
        return runs_table(pipeline, runs_of(pipeline, RunsAsked(limit, None, None, None), self.project.settings))

    def refused(self, interval: str | None = None, stage: str | None = None, *, limit: int = SHOWN) -> ShownTable:
        """What gates refuse of an interval, by default that of the newest run; of a ``stage``, its rows, those that
        fail first. Columns that its suite masks stay masked.
        """
        from stagehold.cli.checkpoints.printing import rows_table
        from stagehold.cli.gates.refused_command import masked_stages, refused_stages, refused_table, stage_named
        from stagehold.viewer.refused_rows import blocked_rows

        settings = self.project.settings
        wanted, found = refused_stages(self.name, interval, settings)
        title = f"{self.name} for {wanted}"
        if stage is None:
            return refused_table(title, found)
        own = stage_named(stage, masked_stages(found, self.name, settings))
        return rows_table(blocked_rows(own, limit, _progress), f"{stage} for {wanted}")

    def request(self, run_id: str, interval: str | None, params: Params) -> RunRequest:
        """What a command asks for with these options.

        :raises InvalidParameter: a parameter that the pipeline does not declare, or of another type
        """
        from dataclasses import replace

        from stagehold.spec.settings.run_settings import checked_params

        asked = request_asked(self.name, run_id, RunOptions(interval=interval), self.project.settings)
        return replace(asked, params=checked_params(dict(params or {}), asked.pipeline.params))

    def _run(self, request: RunRequest) -> ShownTable:
        from stagehold.cli.running.run import limited
        from stagehold.run.here.local_run import run_locally

        _progress(f"run {request.run_id} of {self.name} for {request.interval}")
        with limited(request.pipeline.run_timeout):
            outcome = run_locally(request, self.project.settings, _progress)
        columns = ("run", "interval", "reused", "computed", "waves", "seconds")
        figures = (str(outcome.reused), str(outcome.computed), str(outcome.waves), f"{outcome.seconds:.1f}")
        return ShownTable(self.name, columns, [(request.run_id, request.interval, *figures)])


@dataclass(frozen=True)
class NotebookStage:
    """A stage of an opened project, whose frames may be looked at, and computed with, before anything is run."""

    pipeline: NotebookPipeline
    name: str

    def inputs(
        self, interval: str | None = None, partition: int | None = None, *, params: Params = None
    ) -> ShownFrames:
        """What its function is given for a partition, or for all of them. What is not there is computed on the way, and
        nothing is written into lake or ledger.
        """
        return ShownFrames(self._frames(interval, partition, params).inputs())

    def call(self, interval: str | None = None, partition: int = 0, *, params: Params = None) -> DataFrame:
        """What its function makes of a partition, with its code as it was when it was first imported here."""
        return self._frames(interval, partition, params).output()[0]

    def _frames(self, interval: str | None, partition: int | None, params: Params) -> StageFrames:
        request = self.pipeline.request("notebook", interval, params)
        chosen = () if partition is None else (partition,)
        return self.pipeline.project.frames(request, self.name, chosen)


class ShownFrames(dict[str, "DataFrame"]):
    """Frames by the names that a function has for them; the first rows of each show themselves."""

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self._tables())

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._tables()))

    def _tables(self) -> Iterator[ShownTable]:
        from stagehold.viewer.read_rows import shown

        for name, frame in self.items():
            rows = [[shown(value) for value in row] for row in frame.limit(SHOWN).collect()]
            yield ShownTable(name, frame.columns, rows, () if rows else (f"{name}: no rows",))


def _progress(line: str) -> None:
    print(line)
