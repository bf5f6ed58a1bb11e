"""Plans every interval of a backfill before any of it runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice

from stagehold.errors import CodeUnusable, InvalidArgument, StageholdError, UndeclaredRead
from stagehold.ledger.leases import region_lease
from stagehold.ledger.ledger import Ledger
from stagehold.model.backfill import BackfillChoice, Only, WorkOrder
from stagehold.model.keys.interval_key import ONCE, interval_key, keys_between, moment_of, span_of
from stagehold.model.records import AttemptState, Restore, Run, RunState
from stagehold.plan.backfill.backfill_plan import BackfillPlan, IntervalPlan, check_choice, order_of
from stagehold.plan.backfill.cells import BackfillCell, CellReason, cells_of
from stagehold.plan.resume.decisions import Action, ResumePlan
from stagehold.plan.resume.plan_summary import Seconds, estimate, recorded_seconds
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.plan.split.regions import Region, stage_regions
from stagehold.run.planning.keep_wishes import KeepWishes, keeping
from stagehold.run.planning.lost_ledger import refuse_lost_ledger
from stagehold.run.planning.planning import IntervalView, RunRequest, as_asked
from stagehold.run.planning.refusal import refuse_broken_code, refuse_spoiled_sources, refuse_too_early
from stagehold.run.planning.restoring import why_all_is_computed
from stagehold.run.planning.shared_facts import IntervalRecords, SharedFacts, read_records
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline, Stage

MOST = 1000  # intervals at once
RUNS_TIMED = 5  # whose seconds stand for those of intervals that never ran
AT_ONCE = 2_500  # partitions whose records are read together; more of them at once are slower again
PLANNED = "planned"  # stands where the id of a run does that nobody has started


def has_times(pipeline: Pipeline) -> bool:
    """Whether a schedule says which intervals there are, so that Airflow can run a range of them."""
    return pipeline.schedule not in (None, ONCE)


def intervals_of(choice: BackfillChoice, pipeline: Pipeline, ledger: Ledger, now: datetime) -> tuple[str, ...]:
    """The intervals that are meant, in order: those of the schedule that have begun; without one, those on record.

    :raises InvalidArgument: there are none, or too many.
    :raises InvalidInterval: the first or the last is neither a day nor a moment.
    """
    found = tuple(islice(_intervals(choice, pipeline, ledger, now), MOST + 1))
    given = f"{choice.first} to {choice.last}"
    if not found:
        known = f"of the schedule {pipeline.schedule} that has begun" if has_times(pipeline) else "that is on record"
        raise InvalidArgument("--from and --to", given, f"a range in which {pipeline.name} has an interval {known}")
    if len(found) > MOST:
        raise InvalidArgument("--from and --to", given, f"a range of at most {MOST:,} intervals")
    return found


def _intervals(choice: BackfillChoice, pipeline: Pipeline, ledger: Ledger, now: datetime) -> Iterator[str]:
    schedule = pipeline.schedule
    if schedule is not None and has_times(pipeline):
        for key in keys_between(choice.first, choice.last, schedule):
            moment = moment_of(key, schedule)
            if moment is None or moment >= now:
                return
            yield key
        return
    start, end = span_of(choice.first, choice.last)
    known = ((moment_of(key, schedule), key) for key in ledger.partitions.intervals(pipeline.name))
    yield from (key for _, key in sorted((moment, key) for moment, key in known if moment and start <= moment < end))


Progress = Callable[[int, int], None]  # told how many intervals are planned, of how many


def plan_backfill(
    choice: BackfillChoice,
    pipeline: Pipeline,
    ledger: Ledger,
    settings: Settings,
    progress: Progress | None = None,
    keep: KeepWishes | None = None,
) -> BackfillPlan:
    """What it would run, with nothing changed by asking.

    :param keep: what would be kept of each interval by a backfill that is asked for that.
    :raises StageholdError: it cannot be meant as it is written.
    """
    keys = chosen_intervals(choice, pipeline, ledger)
    planning = _Planning(_in_keys(choice, pipeline), keys, pipeline, ledger, settings, keep=keep)
    return _plan_of(keys, planning, progress)


def request_planned(pipeline: Pipeline, key: str) -> RunRequest:
    """A run of an interval that nobody has started."""
    return RunRequest(pipeline, PLANNED, key, dict(pipeline.params))


def chosen_intervals(choice: BackfillChoice, pipeline: Pipeline, ledger: Ledger) -> tuple[str, ...]:
    """The intervals of which such a plan is.

    :raises StageholdError: it cannot be meant as it is written.
    """
    check_choice(choice, pipeline)
    return intervals_of(_in_keys(choice, pipeline), pipeline, ledger, datetime.now(UTC))


SourceSplits = Mapping[tuple[str, str], tuple[str, ...]]  # splits by stage and, where that matters, interval


def source_splits(choice: BackfillChoice, pipeline: Pipeline, ledger: Ledger, settings: Settings) -> SourceSplits:
    """What there is to read for such a plan, whichever interval takes it: a listing of each source, or one for each
    interval that has a place of its own. What cannot be read is told by why.

    :raises StageholdError: it cannot be meant as it is written.
    """
    keys = chosen_intervals(choice, pipeline, ledger)
    return {
        (stage.name, key if stage.source.names_interval else ""): _splits_of(stage, key, pipeline, ledger, settings)
        for stage in pipeline.stages
        if stage.source
        for key in (keys if stage.source.names_interval else keys[:1])
    }


def _splits_of(stage: Stage, key: str, pipeline: Pipeline, ledger: Ledger, settings: Settings) -> tuple[str, ...]:
    assert stage.source is not None
    all_of_it = stage.model_copy(update={"source": stage.source.model_copy(update={"incremental": False})})
    sources = IntervalView(RunRequest(pipeline, PLANNED, key, {}), ledger, settings).sources
    try:
        return tuple(split.fingerprint for split in sources.of(all_of_it).splits)
    except StageholdError as error:
        return (str(error),)


def _in_keys(choice: BackfillChoice, pipeline: Pipeline) -> BackfillChoice:
    return replace(choice, first=_as_key(choice.first, pipeline), last=_as_key(choice.last, pipeline))


def plan_stale(
    keys: Sequence[str], pipeline: Pipeline, ledger: Ledger, settings: Settings, code: Settings | None = None
) -> BackfillPlan:
    """What a backfill of these intervals would compute with `--only stale`. They come oldest first, and need not be in
    the schedule.

    :param code: settings whose project has the code and suites that count, where that is another one
    """
    choice = BackfillChoice(keys[0], keys[-1], only=Only.STALE)
    return _plan_of(keys, _Planning(choice, keys, pipeline, ledger, settings, code))


def _plan_of(keys: Sequence[str], planning: _Planning, progress: Progress | None = None) -> BackfillPlan:
    intervals: list[IntervalPlan] = []
    for key in keys:
        if progress:
            progress(len(intervals), len(keys))
        intervals.append(planning.interval(key))
    pipeline, stage = planning.pipeline.name, planning.choice.restore_from_stage
    return BackfillPlan(
        pipeline=pipeline,
        choice=planning.choice,
        intervals=tuple(intervals),
        unknown=planning.unknown,
        refusal=planning.refusal or _nothing_to_do(pipeline, intervals),
        remark=why_all_is_computed(pipeline, _running(intervals), stage, planning.ledger),
    )


def _running(intervals: Sequence[IntervalPlan]) -> list[str]:
    return [interval_plan.interval for interval_plan in intervals if interval_plan.runs]


def _as_key(text: str, pipeline: Pipeline) -> str:
    """The interval that a text names; the text itself, where it names several intervals of a day."""
    try:
        return interval_key(text, pipeline.schedule)
    except StageholdError:
        return text.strip()


def _nothing_to_do(pipeline: str, intervals: Sequence[IntervalPlan]) -> str | None:
    if _running(intervals):
        return None
    problems = sum(interval_plan.problem is not None for interval_plan in intervals)
    told = f" {problems} of {len(intervals)} intervals cannot be planned." if problems else ""
    return f"There is nothing to run.{told}{_blocked(pipeline, intervals)}"


def _blocked(pipeline: str, intervals: Sequence[IntervalPlan]) -> str:
    """Which intervals are no whole ones although nothing of them runs."""
    found = [interval_plan for interval_plan in intervals if interval_plan.blocked]
    if not found:
        return ""
    first, more = found[0], f", and {len(found) - 1} more intervals" if len(found) > 1 else ""
    why = f"stagehold partitions {pipeline} --interval {first.interval} --stage {first.blocked[0]}"
    return f" {first.blocked[0]} of {first.interval} is blocked by its gate{more}: `{why}` says why."


class _Planning:
    """Planning of one interval after the other, as each may go on with what the one before it keeps."""

    def __init__(
        self,
        choice: BackfillChoice,
        keys: Sequence[str],
        pipeline: Pipeline,
        ledger: Ledger,
        settings: Settings,
        code: Settings | None = None,
        keep: KeepWishes | None = None,
    ) -> None:
        self.keep = keep
        self.choice, self.pipeline, self.ledger, self.settings = choice, pipeline, ledger, settings
        self.refusal: str | None = None
        self._changing: dict[str, frozenset[str]] = {}  # stages that run, by interval
        self._keys, self._ahead = keys, RecordsAhead(pipeline, keys, ledger)
        self._shared = SharedFacts(code or settings, self._ahead.of)
        self._code_read: set[frozenset[str]] = set()  # stages whose code was looked at together

    def interval(self, key: str) -> IntervalPlan:
        try:
            return self._planned(key)
        except StageholdError as error:
            return IntervalPlan(key, WorkOrder(()), problem=str(error))

    def _planned(self, key: str) -> IntervalPlan:
        request = request_planned(self.pipeline, key)
        refuse_lost_ledger(request, self.ledger, self.settings, is_known=self._ahead.are_known(key))
        view = IntervalView.of_run(request, self.ledger, self.settings, self._shared)
        going_on = self._going_on(view.situation)
        known = _without_gaps(view.situation, going_on)
        if self.keep:
            known, _ = keeping(known, self.keep, key)
        by_itself, failed = resume_plan(known), self._failed_stages(key)
        has_failed = self._has_failed(key) or by_itself.count(Action.BLOCKED) > 0
        order = order_of(self.choice, self.pipeline, has_failed=has_failed)
        asked = replace(request, restore=restore_ordered(request.run_id, order))
        forced = frozenset(going_on).intersection(() if order.as_recorded else order.stages)
        told = as_asked(known, asked, forced)
        ordered = by_itself if _tells_nothing(told, known) else resume_plan(told)
        self._refuse(asked, ordered)
        self._changing[key] = frozenset(ordered.stages_that_compute())
        seconds = {**self._seconds, **self._own_seconds(known)}
        cells = tuple(
            _going_on_from(cell, going_on) for cell in cells_of(by_itself, ordered, view.regions, failed, seconds)
        )
        return IntervalPlan(key, order, cells, estimate(ordered, seconds).saved_seconds)

    def _going_on(self, known: Situation) -> Mapping[str, str]:
        """Stages that go on with what an interval of this backfill keeps, in which they run before: with it."""
        before = {
            stage: earlier.gap.interval if earlier.gap else earlier.interval
            for stage, situation in known.stages.items()
            if (earlier := situation.earlier)
        }
        return {stage: key for stage, key in before.items() if key and stage in self._changing.get(key, ())}

    def _refuse(self, request: RunRequest, plan: ResumePlan) -> None:
        """What is wrong with code is wrong for all intervals, what is wrong with files for one."""
        refuse_too_early(request.pipeline, plan)
        refuse_spoiled_sources(request, plan, self.ledger, self.settings)
        stages = frozenset(plan.stages_that_compute())
        if stages in self._code_read:
            return
        self._code_read.add(stages)
        try:
            refuse_broken_code(request.pipeline, plan, self.settings)
        except (CodeUnusable, UndeclaredRead) as error:
            self.refusal = str(error)

    @cached_property
    def _newest_runs(self) -> Mapping[str, Run]:
        return {run.interval: run for run in self.ledger.runs.newest_of_intervals(self.pipeline.name)}

    def _has_failed(self, key: str) -> bool:
        run = self._newest_runs.get(key)
        return run is not None and run.state in (RunState.FAILED, RunState.FAILING)

    def _failed_stages(self, key: str) -> frozenset[str]:
        """Stages of regions whose last attempt in the newest run failed."""
        run = self._newest_runs.get(key)
        failed = self._failed_regions.get(run.run_id, frozenset()) if run else frozenset()
        return frozenset(stage for region in self._regions for stage in region.stages if region.name in failed)

    @cached_property
    def _failed_regions(self) -> Mapping[str, frozenset[str]]:
        """Regions whose last attempt failed, by run, of the newest runs of the intervals."""
        newest = [self._newest_runs[key].run_id for key in self._keys if key in self._newest_runs]
        failed: defaultdict[str, set[str]] = defaultdict(set)
        for tries in self.ledger.intervals.last_tries(newest):
            if tries.state is AttemptState.FAILED:
                failed[tries.run_id].add(tries.region)
        return {run_id: frozenset(regions) for run_id, regions in failed.items()}

    @cached_property
    def _regions(self) -> Sequence[Region]:
        return stage_regions(self.pipeline)

    @cached_property
    def _seconds(self) -> Seconds:
        """How long partitions took in the newest runs, of any interval."""
        runs = self.ledger.runs.recent(RUNS_TIMED, self.pipeline.name)
        by_id = self.ledger.partitions.seconds_of([run.run_id for run in runs])
        return {stage.name: by_id[stage.id] for stage in self.pipeline.stages if stage.id in by_id}

    def _own_seconds(self, known: Situation) -> Seconds:
        own = {name: recorded_seconds(situation.data.records) for name, situation in known.stages.items()}
        return {
            name: {**self._seconds.get(name, {}), **timed} for name, by_id in own.items() for timed in by_id.values()
        }

    @property
    def unknown(self) -> tuple[str, ...]:
        return tuple(stage.name for stage in self.pipeline.stages if not self._seconds.get(stage.name))


def restore_ordered(run_id: str, order: WorkOrder, identity: str = PLANNED) -> Restore:
    """The request that a run does what it is told."""
    return Restore(run_id, identity, None, datetime.now(UTC), work_order=order)


def _without_gaps(known: Situation, going_on: Mapping[str, str]) -> Situation:
    """What has to run first does, in the same backfill."""
    return known.changed(
        lambda stage, situation: (
            replace(situation, earlier=replace(situation.earlier, gap=None))
            if situation.earlier and stage in going_on
            else situation
        )
    )


def _tells_nothing(told: Situation, known: Situation) -> bool:
    """Whether a run that is told so does what it would do by itself, so that it need not be planned twice."""
    confined = told.confined
    return told.stages == known.stages and confined is not None and confined.leaves_nothing(known.stages.keys())


def _going_on_from(cell: BackfillCell, going_on: Mapping[str, str]) -> BackfillCell:
    """The cell with the reason why its stage, which keeps state, runs."""
    before = going_on.get(cell.stage)
    if before is None or not cell.runs:
        return cell
    text = f"goes on with what it keeps of {before}, which runs before it"
    every = f"0-{cell.partitions - 1}" if cell.partitions > 1 else "0"
    return replace(cell, reasons=(CellReason(text, cell.runs, every, runs=True),))


class RecordsAhead:
    """The records of intervals that are planned one after the other. Some of them are read at once, as a query takes
    longer than what it brings of a single interval.

    :param at_once: partitions that are read together.
    """

    def __init__(self, pipeline: Pipeline, intervals: Sequence[str], ledger: Ledger, at_once: int = AT_ONCE) -> None:
        self._pipeline, self._intervals, self._ledger = pipeline.name, intervals, ledger
        self._regions = [region.name for region in stage_regions(pipeline)]
        self._each = max(1, at_once // sum(stage.partitions for stage in pipeline.stages))
        self._read: Mapping[str, IntervalRecords] = {}
        self._leases = frozenset[str]()

    def of(self, interval: str) -> IntervalRecords:
        """:raises KeyError: it is none of them."""
        if interval not in self._read:
            first = self._intervals.index(interval)
            together = self._intervals[first : first + self._each]
            self._read = read_records(self._pipeline, together, self._ledger)
            self._leases = self._ledger.leases.known([name for key in together for name in self._lease_names(key)])
        return self._read[interval]

    def are_known(self, interval: str) -> bool:
        """Whether anything is on record of the interval, or anybody ever had a lease of a region of it."""
        return bool(self.of(interval).partitions) or not self._leases.isdisjoint(self._lease_names(interval))

    def _lease_names(self, interval: str) -> Sequence[str]:
        return [region_lease(self._pipeline, interval, region) for region in self._regions]
