"""`stagehold gc`: goes through everything that pipelines left in the lake, and deletes what is no longer needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from rich.filesize import decimal

from stagehold.chronicle.chronicle import open_ledger
from stagehold.chronicle.compaction import Compaction, NotCompacted, compact
from stagehold.errors import StageholdError
from stagehold.lake.store.files import files_at
from stagehold.ledger.history import Forgotten, WithoutOldFiles
from stagehold.model.choices import Pin
from stagehold.plan.garbage import Why
from stagehold.run.clearing.cleared_interval import Cleared, ClearedInterval
from stagehold.run.clearing.interval_garbage import (
    AgeLimits,
    IntervalCheckpoints,
    delete_garbage,
    find_all_garbage,
    superseded_left,
)
from stagehold.run.clearing.output_release import end_of, intervals_over_now
from stagehold.run.equipment.workplace import Progress, Workplace
from stagehold.run.faults import Faults
from stagehold.run.lease.lease_holder import this_process
from stagehold.run.lease.leasing import kept_alive
from stagehold.run.lease.sweeping import RegionSweep, Sweeper
from stagehold.run.stage.spark_engine import SparkEngine
from stagehold.run.upkeep.run_archive import archive_runs
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.run_settings import ReleasePolicy

MAINTENANCE = "maintenance"  # the lease of the process that collects garbage


@dataclass(frozen=True)
class KeptByPin:
    """Outputs of an interval that `retain` would let go, and that stay because the interval is pinned."""

    pipeline: str
    interval: str
    files: int
    bytes: int
    pin: Pin

    def __str__(self) -> str:
        return (
            f"{self.pipeline} {self.interval}: {self.files} files, {decimal(self.bytes)}: pinned {self.pin}. "
            f"`stagehold intervals unpin {self.pipeline} {self.interval}` lets them go."
        )


@dataclass(frozen=True)
class Collected:
    """What was deleted, or would be; what a pin ``kept``; and what was passed over, each with its reason. ``archived``
    are runs that were written to the lake before the ledger forgets their history.
    """

    cleared: tuple[Cleared, ...]
    kept: tuple[KeptByPin, ...]
    archived: tuple[str, ...]
    forgotten: Forgotten
    chronicle: Compaction
    passed_over: tuple[str, ...]

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.cleared) + self.chronicle.bytes_freed


class Collector:
    """``limits`` say how long ago files must have been replaced to be deleted; with ``dry_run`` nothing changes."""

    def __init__(self, workplace: Workplace, limits: AgeLimits, dry_run: bool = False) -> None:
        self.workplace, self.limits, self.dry_run = workplace, limits, dry_run

    def collect(self, pipelines: Sequence[Pipeline]) -> Collected:
        """Collect the garbage of these pipelines, and history of any pipeline in the ledger. Intervals that somebody
        works on are passed over, and so are those for which nobody knows what is needed.
        """
        cleared, kept, passed_over = list[Cleared](), list[KeptByPin](), list[str]()
        places = tuple(self._places(pipelines))
        for place, due, pin in places:
            try:
                kept.extend(_kept(place, pin) if pin else ())
                cleared.extend(self._of_interval(place, due=due))  # this includes what was deleted before the error
            except StageholdError as error:
                passed_over.append(f"{place}: {error}")
        ledger, settings = self.workplace.ledger, self.workplace.settings
        sweeps = Sweeper(ledger, settings).sweep_lake(pipelines, dry_run=self.dry_run)
        archived = ledger.history.runs_to_forget(self.limits.own)
        if not self.dry_run:
            archive_runs(archived, ledger, settings.lake_uri)
        without_old_files = self._without_old_files([place for place, *_ in places])
        forgotten = ledger.history.forget(self.limits.own, without_old_files, dry_run=self.dry_run)
        compaction = compact(files_at(settings.lake_uri), ledger, self.limits.own, dry_run=self.dry_run)
        return Collected(
            cleared=(*cleared, *(_swept(sweep) for sweep in sweeps if sweep.strays)),
            kept=tuple(kept),
            archived=archived,
            forgotten=forgotten,
            chronicle=compaction,
            passed_over=(
                *passed_over,
                *(sweep.passed_over for sweep in sweeps if sweep.passed_over),
                *_not_compacted(compaction),
            ),
        )

    def _places(self, pipelines: Sequence[Pipeline]) -> Iterator[tuple[ClearedInterval, bool, Pin | None]]:
        """Every interval, whether its outputs are to be released, and the pin that keeps them if they would be."""
        for pipeline in pipelines:
            ledger = self.workplace.ledger
            runs = ledger.runs.newest_of_intervals(pipeline.name)
            over = {} if pipeline.release is ReleasePolicy.KEEP else intervals_over_now(pipeline, runs, ledger)
            for run in runs:
                pin = over.get(run.interval)
                place = ClearedInterval.of(pipeline, run.interval, self.workplace)
                yield place, run.interval in over and pin is None, pin

    def _without_old_files(self, places: Sequence[ClearedInterval]) -> WithoutOldFiles:
        upto = self.workplace.ledger.partitions.highest_id()  # before the files are looked at: runs go on meanwhile
        cleared = [place for place in places if not any(superseded_left(place, stage) for stage in place.stages)]
        return WithoutOldFiles([(place.pipeline.name, place.request.interval) for place in cleared], upto)

    def _of_interval(self, place: ClearedInterval, *, due: bool) -> Iterator[Cleared]:
        if due:
            yield from end_of(place).announced() if self.dry_run else end_of(place).carry_out()
        checkpoints = IntervalCheckpoints(place)
        unneeded = (*checkpoints.dead(), *checkpoints.replaced(self.limits.own))
        yield from checkpoints.announced(unneeded) if self.dry_run else checkpoints.drop(unneeded)
        yield from self._garbage(place)

    def _garbage(self, place: ClearedInterval) -> tuple[Cleared, ...]:
        """The garbage of an interval. It is first looked for without a lease, so that nobody waits where there is
        none.
        """
        found = list(find_all_garbage(place, self.limits))
        if self.dry_run or not found:
            return tuple(cleared for garbage in found for cleared in garbage.cleared)
        names = {garbage.stage.name for garbage in found}
        with place.held(names) as hearts:
            return delete_garbage(place, names, hearts, self.limits)


def _kept(place: ClearedInterval, pin: Pin) -> Iterator[KeptByPin]:
    found = [item for item in end_of(place).announced() if item.why is Why.RELEASED]
    if found:
        files, size = sum(item.files for item in found), sum(item.bytes for item in found)
        yield KeptByPin(place.pipeline.name, place.request.interval, files, size, pin)


def _not_compacted(compaction: Compaction) -> Iterator[str]:
    if compaction.why_not is NotCompacted.LEDGER_BEHIND:
        lacking = f"the ledger lacks {compaction.missing} facts that it knows"
        yield f"the chronicle: {lacking}. Run `stagehold reconcile` first."
    if compaction.why_not is NotCompacted.OVERTAKEN:
        yield "the chronicle: somebody else compacts it."
    yield from (f"the chronicle's file {torn.path}: {torn.problem}" for torn in compaction.torn)


def _swept(sweep: RegionSweep) -> Cleared:
    attempt, files = sweep.attempt, sum(stray.files for stray in sweep.strays)
    return Cleared(attempt.pipeline, attempt.interval, attempt.region, Why.STRAY, files, sweep.bytes)


def collect_garbage(
    pipelines: Sequence[Pipeline], older_than: datetime, settings: Settings, progress: Progress, *, dry_run: bool
) -> Collected:
    """Collect garbage, one process at a time: a second one is told which process is at it.

    :raises LeaseHeld: another process collects garbage here now.
    """
    with open_ledger(settings) as ledger:
        place = Workplace(ledger, settings, progress, SparkEngine(settings, progress), Faults(settings.home_path, ""))
        holder = this_process(
            f"{MAINTENANCE} {uuid4().hex}"
        )  # a process of this host that died while collecting does not stop others
        lease = ledger.leases.take(MAINTENANCE, None, str(holder), settings.lease_seconds, holder.may_seize)
        with kept_alive(lease, place):
            return Collector(place, AgeLimits(older_than), dry_run).collect(pipelines)
