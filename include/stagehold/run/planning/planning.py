"""Gathers what the planner must know: code, sources, records, and whether recorded data can still be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagehold.errors import UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Acceptance, CodeChoice, Waiver
from stagehold.model.context import StageContext, StageSecrets, seed_of
from stagehold.model.keys.compute_key import digest
from stagehold.model.keys.interval_key import times_of
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Cell, PartitionCount, PartitionRecord, Restore, StageVerdict
from stagehold.plan.restart.after_failure import discarded, may_fall_back
from stagehold.plan.resume.confining import Confinement
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.resume.planner import descendants, resume_plan
from stagehold.plan.resume.situation import (
    Rescaled,
    Situation,
    StageData,
    StageOrder,
    StageSituation,
    StageWords,
)
from stagehold.plan.resume.waiving import in_force, no_longer_in_force
from stagehold.plan.split.partition_counts import (
    CountedPipeline,
    divided_inputs,
    partitions_for,
    splits_for,
    with_counts,
)
from stagehold.plan.split.regions import Region, stage_regions, stored_with
from stagehold.run.planning.acceptance import acceptances_for, by_stage, verdicts_of, with_production
from stagehold.run.planning.earlier_states import KnownIntervals, earlier_states
from stagehold.run.planning.on_record import began, on_record
from stagehold.run.planning.shared_facts import SharedFacts, environment
from stagehold.secrets import SecretPlace, found_secrets, usual_places
from stagehold.settings import Settings
from stagehold.sources.attempt_sources import Sources, is_incremental
from stagehold.sources.declared_reads import stage_files
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.run_settings import Failover
from stagehold.spec.settings.split_forms import SplitSize

if TYPE_CHECKING:
    from stagehold.run.planning.snapshots import BeginsWith


@dataclass(frozen=True)
class RunRequest:
    """A run as its caller wants it; ``restore`` is the request that has stages computed anew.

    ``as_of`` is when the attempt that plans began: a failure of the run that comes later does not matter to it.
    ``wanted`` are partitions, by stage, that are healed if they are gone, whether or not anything that runs reads them.
    """

    pipeline: Pipeline
    run_id: str
    interval: str
    params: Mapping[str, Any]
    restore: Restore | None = None
    as_of: datetime | None = None
    wanted: Mapping[str, frozenset[int]] = field(default_factory=dict)


class IntervalView:
    """The interval of a run for one plan: code, ledger and lake are read when something is first needed, and not again.
    To plan again after something has happened, make another view; only ``sources`` may be handed on.
    """

    def __init__(
        self,
        request: RunRequest,
        ledger: Ledger,
        settings: Settings,
        sources: Sources | None = None,
        shared: SharedFacts | None = None,
        secret_places: Sequence[SecretPlace] = (),
    ) -> None:
        """:param shared: what was looked at for other intervals."""
        self._secret_places = secret_places
        self.request, self.ledger, self.settings = request, ledger, settings
        self._handed_on, self._shared = sources, shared or SharedFacts(settings)

    @staticmethod
    def of_run(
        request: RunRequest, ledger: Ledger, settings: Settings, shared: SharedFacts | None = None
    ) -> IntervalView:
        """The view of a run in the form for attempts that begin now, as resume, preview and dry run show it."""
        return IntervalView(in_its_form(request, ledger), ledger, settings, shared=shared)

    @cached_property
    def plan(self) -> ResumePlan:
        """The plan for the whole run."""
        return resume_plan(self.situation)

    @cached_property
    def situation(self) -> Situation:
        """The situation that the plan is made from."""
        return self._situation(judged_stages(self.request), self.request.wanted)

    def plan_region(self, stages: tuple[str, ...], wanted: Mapping[str, frozenset[int]] | None = None) -> ResumePlan:
        """The plan for an attempt of one region: partitions that earlier regions of the run left are taken as they are.

        ``wanted`` are partitions that another region needs from this one, in place of those that the request wants:
        taking partitions as they are hides that they are needed.
        """
        asked = self.request.wanted if wanted is None else wanted
        return resume_plan(self._situation(_judged_by_region(self.request, stages), asked))

    def decide_counts(self, stages: tuple[str, ...]) -> tuple[PartitionCount, ...]:
        """Decide, once for the interval, the numbers of partitions of those of ``stages`` whose inputs are all
        consumable.

        Views that are made after this plan with these numbers. Returns the numbers that were missing; if another
        process decided first, its number stands.
        """
        pipeline, undecided = self.pipeline, self.counted.undecided
        if self.begins_with:
            self.begins_with.keep_counts([pipeline.stage(name) for name in stages], self.ledger)
        missing = [stage for stage in map(pipeline.stage, stages) if stage.auto_partitions and stage.name in undecided]
        plan = self.plan_region(stages) if missing else None
        return tuple(
            self.ledger.partition_counts.decide(_count(stage, pipeline, plan, self.sources, self.request.interval))
            for stage in missing
            if plan is not None and all(plan.consumable(edge.stage) for edge in stage.inputs)
        )

    @cached_property
    def counted(self) -> CountedPipeline:
        return counted(self.request, self.ledger)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline with the interval's numbers of partitions."""
        return self.counted.pipeline

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """The regions in topological order; the same whatever numbers of partitions were decided."""
        return stage_regions(self.request.pipeline)

    @cached_property
    def begins_with(self) -> BeginsWith | None:
        """:raises RestoreRefused: that does not fit the pipeline."""
        return begins_with_of(self.request)

    @cached_property
    def sources(self) -> Sources:
        """The run's sources, not looked at yet."""
        if self._handed_on is not None:
            return self._handed_on
        declared, settings = self.request.pipeline, self.settings
        stored = {stage.name: stored_with(stage, declared) for stage in declared.stages if is_incremental(stage)}
        made_from = {name: tuple(map(declared.stage, sorted(descendants(declared, name)))) for name in stored}
        return Sources(
            pipeline=declared.name,
            interval=self.request.interval,
            run_id=self.request.run_id,
            lake_uri=settings.lake_uri,
            ledger=self.ledger,
            stored_with=stored,
            made_from=made_from,
            restored=self.begins_with.positions(declared, settings) if self.begins_with else {},
            production=settings.production.lake_uri if settings.sandbox else None,
            project=settings.project,
            times_of=partial(times_of, schedule=declared.schedule),
            context=self._context,
        )

    def _context(self, stage: Stage) -> StageContext:
        """What a source in Python is given when it lists its splits."""
        request, declared, settings = self.request, self.request.pipeline, self.settings
        times = times_of(request.interval, declared.schedule)
        return StageContext(
            pipeline=declared.name,
            stage=stage.name,
            interval=request.interval,
            logical_date=times.start,
            partitions=(),
            seed=seed_of(declared.name, stage.id, request.interval),
            params={**declared.params, **request.params, **stage.params},
            interval_end=times.end,
            secrets=StageSecrets(found_secrets(declared.secrets, self._secret_places or usual_places(settings))),
            files=stage_files(stage, Path(settings.project)),
        )

    def _situation(self, judged: frozenset[str], wanted: Mapping[str, frozenset[int]]) -> Situation:
        request, pipeline, ledger, settings = self.request, self.pipeline, self.ledger, self.settings
        begins_with = self.begins_with
        tied = begins_with.tied_to_another(pipeline, settings) if begins_with else frozenset[str]()
        recorded = self._shared.recorded(pipeline.name, request.interval, ledger)
        found = on_record(pipeline, recorded.partitions, ledger, begins_with, tied)
        words = with_production(pipeline.name, request.interval, recorded.waivers, settings)
        orders = _orders(request, pipeline, ledger, judged=judged, wanted=wanted)
        data = _data(request, found, begins_with.rescaled(pipeline, tied) if begins_with else {}, ledger)
        acceptances = acceptances_for(pipeline, request.interval, recorded.acceptances, settings)
        said = _words(pipeline, words, acceptances, verdicts_of(pipeline, recorded.verdicts))
        earlier = earlier_states(pipeline, request.interval, KnownIntervals.of(ledger, settings), begins_with)
        return Situation(
            pipeline=pipeline,
            stages={
                stage.name: StageSituation(
                    facts=self._shared.of(stage, pipeline, self.sources),
                    data=data(stage.name),
                    order=orders[stage.name],
                    words=said[stage.name],
                    earlier=earlier.get(stage.name),
                    undecided=stage.name in self.counted.undecided,
                )
                for stage in pipeline.stages
            },
            environment=environment(),
            params=digest((repr(sorted(request.params.items())),)),
            confined=_confined(request),
            put_back=begins_with.put_back(pipeline) if begins_with and begins_with.restore.as_recorded else None,
            history=ledger.partitions.of_interval(pipeline.name, request.interval) if words else (),
            now=began(request.run_id, ledger) if any(stage.oldest for stage in pipeline.stages) else None,
        )


def as_asked(known: Situation, request: RunRequest, forced: frozenset[str]) -> Situation:
    """The situation of an interval, for a request that tells its run what to do and has computed nothing yet.

    :param forced: stages that are computed anew, besides those that the request names.
    """
    judged, forced = judged_stages(request), forced_stages(request) | forced
    asked = known.changed(
        lambda stage, situation: replace(
            situation, order=replace(situation.order, accepted=stage not in judged, forced=stage in forced)
        )
    )
    return replace(asked, confined=_confined(request))


def judged_stages(request: RunRequest) -> frozenset[str]:
    """The stages whose records are compared with the present keys; records of all others count as they are."""
    forced, restore = forced_stages(request), request.restore
    every = frozenset(stage.name for stage in request.pipeline.stages)
    if restore is not None and restore.work_order is not None:
        return forced if restore.work_order.as_recorded else every & frozenset(restore.work_order.stages)
    return forced or every


def in_its_form(request: RunRequest, ledger: Ledger) -> RunRequest:
    """The request with its pipeline in the form for an attempt that begins now. What is worth storing is weighed by
    what was on record when the run began, so all its attempts have one form, but for failures.
    """
    if not may_fall_back(request.pipeline):
        return request
    from stagehold.run.planning.interval_form import interval_form  # few pipelines need it

    return replace(request, pipeline=interval_form(request, ledger))


def _judged_by_region(request: RunRequest, stages: Sequence[str]) -> frozenset[str]:
    """The stages to judge: those of the region. A run that leaves stages alone also has to know which of their
    partitions its later regions need.
    """
    restore = request.restore
    if restore is not None and restore.work_order is not None:
        following = (descendants(request.pipeline, stage) for stage in stages)
        return judged_stages(request).intersection(frozenset[str]().union(*following))
    return frozenset(stages)


def counted(request: RunRequest, ledger: Ledger) -> CountedPipeline:
    """The pipeline with the numbers of partitions that were decided for the interval, and with what it takes over from
    a checkpoint that it begins with.
    """
    adaptive = any(stage.auto_partitions for stage in request.pipeline.stages)
    decided = ledger.partition_counts.decided(request.pipeline.name, request.interval) if adaptive else {}
    begins_with = begins_with_of(request)
    counts = {stage: count.partitions for stage, count in decided.items()}
    if begins_with is None:
        return with_counts(request.pipeline, counts)
    return with_counts(begins_with.adapted(request.pipeline), {**begins_with.counts, **counts})


def begins_with_of(request: RunRequest) -> BeginsWith | None:
    """What the run takes over, if it begins with a checkpoint or savepoint.

    :raises RestoreRefused: that does not fit the pipeline.
    """
    if request.restore is None:
        return None
    from stagehold.run.planning.snapshots import BeginsWith  # which imports all that reads checkpoints

    return BeginsWith.of(request.restore, request.pipeline, request.interval)


def _count(stage: Stage, pipeline: Pipeline, plan: ResumePlan, sources: Sources, interval: str) -> PartitionCount:
    cell, now = Cell(pipeline.name, stage.id, interval), datetime.now(UTC)
    if stage.source is not None and isinstance(stage.source.splits, SplitSize):
        sizes_of_files = [file.bytes for split in sources.of(stage).splits for file in split.files]
        total = sum(sizes_of_files)
        return PartitionCount(
            cell, splits_for(stage, stage.source.splits.bytes, total, len(sizes_of_files)), total, now
        )
    sizes = {name: sum(record.bytes for record in plan.records(name)) for name in divided_inputs(stage)}
    partitions = partitions_for(stage, pipeline, sizes)
    return PartitionCount(cell, partitions, sum(sizes.values()), now)


def _data(
    request: RunRequest, found: Mapping[str, StageData], rescaled: Mapping[str, Rescaled], ledger: Ledger
) -> Callable[[str], StageData]:
    """The data of a stage, by its name."""
    discarded = _discarded(request, {name: data.records for name, data in found.items()}, ledger)
    return lambda stage: replace(
        found.get(stage, StageData()),
        discarded=PartitionSet(discarded.get(stage, ())),
        rescaled=rescaled.get(stage),
    )


def _orders(
    request: RunRequest,
    pipeline: Pipeline,
    ledger: Ledger,
    *,
    judged: frozenset[str],
    wanted: Mapping[str, frozenset[int]],
) -> Mapping[str, StageOrder]:
    renewed, choices, forced = _renewed(request, ledger), _code_choices(request), forced_stages(request)
    return {
        stage.name: StageOrder(
            accepted=stage.name not in judged,
            forced=stage.name in forced,
            renewed=PartitionSet(renewed.get(stage.name, ())),
            wanted=PartitionSet(wanted.get(stage.name, ())),
            code_choice=choices.get(stage.name),
        )
        for stage in pipeline.stages
    }


def _words(
    pipeline: Pipeline,
    words: Sequence[Waiver],
    acceptances: Mapping[str, tuple[Acceptance, ...]],
    verdicts: Mapping[str, tuple[StageVerdict, ...]],
) -> Mapping[str, StageWords]:
    now = datetime.now(UTC)
    waivers, ended = by_stage(pipeline, in_force(words, now)), by_stage(pipeline, no_longer_in_force(words, now))
    return {
        stage.name: StageWords(
            acceptances=acceptances.get(stage.name, ()),
            waivers=waivers.get(stage.name, ()),
            ended_waivers=ended.get(stage.name, ()),
            verdicts=verdicts.get(stage.name, ()),
        )
        for stage in pipeline.stages
    }


def _confined(request: RunRequest) -> Confinement | None:
    order = request.restore.work_order if request.restore else None
    return Confinement(frozenset(order.stages), order.only_recorded) if order else None


def _code_choices(request: RunRequest) -> Mapping[str, CodeChoice]:
    by_id = {choice.stage: choice for choice in request.restore.code_choices} if request.restore else {}
    return {stage.name: by_id[stage.id] for stage in request.pipeline.stages if stage.id in by_id}


def _discarded(
    request: RunRequest, recorded: Mapping[str, tuple[PartitionRecord, ...]], ledger: Ledger
) -> Mapping[str, frozenset[int]]:
    if request.pipeline.failover is not Failover.FULL:
        return {}
    return discarded(recorded, request.run_id, ledger.attempts.of_run(request.run_id), as_of=request.as_of)


def _renewed(request: RunRequest, ledger: Ledger) -> Mapping[str, frozenset[int]]:
    by_id = ledger.restores.computed(request.restore) if request.restore and forced_stages(request) else {}
    return {stage.name: by_id[stage.id] for stage in request.pipeline.stages if stage.id in by_id}


def forced_stages(request: RunRequest) -> frozenset[str]:
    """The stages that a restore computes anew; none without a restore. Stages in an order that the pipeline no longer
    has are left out.
    """
    stage, order = (request.restore.stage, request.restore.work_order) if request.restore else (None, None)
    if order is not None:
        return frozenset(order.anew).intersection(stage.name for stage in request.pipeline.stages)
    if stage is None:
        return frozenset()
    known = [candidate.name for candidate in request.pipeline.stages]
    if stage not in known:
        raise UnknownName("stage", stage, known)
    return descendants(request.pipeline, stage)
