"""Restores: which request a run works for, whether it can be carried out, and when it is fulfilled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from stagehold.errors import UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.backfill import WorkOrder
from stagehold.model.choices import ClaimMode
from stagehold.model.records import Restore
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.resume.released_outputs import released_outputs, released_text
from stagehold.run.planning.planning import RunRequest, begins_with_of, counted, forced_stages
from stagehold.spec.pipeline import Pipeline

SHOWN = 5  # intervals that a remark names
HEALED = "healed"  # the kind of an event about outputs which are computed only because they were released


def new_restore(run_id: str, stage: str) -> Restore:
    """A request with a new identity, for a user who asks for it now."""
    now = datetime.now(UTC)
    return Restore(run_id, f"asked {now.isoformat()}", stage, now)


def new_restore_of_snapshot(
    run_id: str,
    manifest: str,
    *,
    allow_non_restored: bool,
    as_recorded: bool = False,
    claim_mode: ClaimMode = ClaimMode.NO_CLAIM,
) -> Restore:
    """A request that the run begins with the checkpoint or savepoint that has this manifest."""
    now = datetime.now(UTC)
    return Restore(
        run_id=run_id,
        identity=f"asked {now.isoformat()}",
        stage=None,
        requested_at=now,
        snapshot=manifest,
        allow_non_restored=allow_non_restored,
        as_recorded=as_recorded,
        claim_mode=claim_mode,
    )


def new_restore_again(run_id: str, stages: Sequence[str], pipeline: Pipeline) -> Restore:
    """A request that the run does what it would do anyway, and computes these stages once more, even if nothing
    changed.

    :raises UnknownName: the pipeline has no stage of that name.
    """
    known = tuple(stage.name for stage in pipeline.stages)
    for name in stages:
        if name not in known:
            raise UnknownName(f"stage of {pipeline.name}", name, known)
    now = datetime.now(UTC)
    return Restore(run_id, f"again {now.isoformat()}", None, now, work_order=WorkOrder(known, anew=tuple(stages)))


def asked_again(run_id: str, restore: Restore | None, ledger: Ledger) -> Restore | None:
    """The request that a run works for: to compute stages once more, if that was asked last; else the request that it
    began with, if any.
    """
    newest = next((restore for restore in ledger.restores.of_run(run_id) if _is_for_this_run_alone(restore)), None)
    if newest is None or (restore is not None and restore.requested_at >= newest.requested_at):
        return restore
    return newest


def _is_for_this_run_alone(restore: Restore) -> bool:
    return restore.work_order is not None and restore.work_order.backfill is None


def is_same_request(known: Restore, asked: Restore) -> bool:
    """Whether a run that is asked again continues with its earlier request: with the same data, and the same choices
    about it.
    """
    asked_again = replace(
        asked,
        identity=known.identity,
        requested_at=known.requested_at,
        life=known.life,
        fulfilled_at=known.fulfilled_at,
    )
    return asked_again == known


def restore_of_life(asked: Restore, ledger: Ledger) -> Restore:
    """The request for which Airflow started a run at the moment of this life: all tasks of the run, and their retries,
    find the same one.

    Airflow's scheduler records it when it starts the run, and knows whether a backfill asks anew or a clear continues.
    If it could not reach the ledger then, every start counts as a request of its own: more may be computed than was
    asked for, never less.

    :param asked: the request of this start by itself, if nothing was recorded.
    """
    found = ledger.restores.of_life(asked.run_id, asked.life) if asked.life else None
    return found or ledger.restores.ask(asked)


def check_restore(request: RunRequest) -> None:
    """Check that the restore can be carried out.

    :raises UnknownName: the pipeline has no stage of the name that it is to be restored from.
    :raises RestoreRefused: the checkpoint that the run is to begin with does not fit the pipeline.
    """
    forced_stages(request)
    begins_with_of(request)


def remark_on(request: RunRequest, ledger: Ledger) -> str | None:
    """A remark on the request before it is carried out, if there is one to make."""
    stage = stage_restored_from(request.restore, request.pipeline.name, ledger)
    return why_all_is_computed(request.pipeline.name, [request.interval], stage, ledger)


def stage_restored_from(restore: Restore | None, pipeline: str, ledger: Ledger) -> str | None:
    """The stage that a user wants to restore from, in a request of the run alone or in one for its backfill."""
    order = restore.work_order if restore else None
    if order is not None and order.backfill is not None and not order.is_empty:
        return ledger.backfills.get(pipeline, order.backfill).choice.restore_from_stage
    return restore.stage if restore else None


def why_all_is_computed(pipeline: str, intervals: Sequence[str], stage: str | None, ledger: Ledger) -> str | None:
    """A text for a user whose restore from ``stage`` finds no record of some intervals that it could take as it is;
    None if it finds one of each.
    """
    new = [interval for interval in intervals if stage and not ledger.partitions.knows(pipeline, interval)]
    if not new:
        return None
    known = ledger.partitions.intervals(pipeline, SHOWN)
    which = ", ".join(new[:SHOWN]) + (f" and {len(new) - SHOWN} more" if len(new) > SHOWN else "")
    whole = "all of them are" if len(new) > 1 else "all of it is"
    newest = f" Newest intervals on record: {', '.join(known)}." if known else ""
    return f"Nothing is on record of {which}, so {whole} computed, not only {stage} and what reads it.{newest}"


def what_was_released(request: RunRequest, plan: ResumePlan) -> str | None:
    """A text about outputs that the plan computes only because they were released; None if there are none."""
    restored_from = request.restore.stage if request.restore else None
    return released_text({request.interval: released_outputs(plan)}, restored_from)


def healed_in(run_id: str, since: datetime, ledger: Ledger) -> tuple[str, ...]:
    """What attempts of a run reported about such outputs: for each stage the first report, which is the largest."""
    first: dict[str, str] = {}
    for event in ledger.events.of_kind(run_id, HEALED):
        if event.recorded_at >= since:
            first.setdefault(event.subject, event.text)
    return tuple(first.values())


def fulfil_restore(request: RunRequest, ledger: Ledger) -> Restore | None:
    """Record that a restore is fulfilled when the last partition that was asked for is computed; returns the request to
    the process that records it.
    """
    if request.restore is None or request.restore.fulfilled_at is not None:
        return None
    done = _is_done(request, request.restore, ledger)
    return request.restore if done and ledger.restores.fulfil(request.restore) else None


def is_fulfilled(request: RunRequest, ledger: Ledger) -> bool:
    """Whether a restored run has put in place or computed everything, so that it no longer needs what it began with.
    That is recorded at most once, and may be true before it is recorded.
    """
    if request.restore is None:
        return False
    known = ledger.restores.get(request.run_id, request.restore.identity)
    return known is not None and (known.fulfilled_at is not None or _is_done(request, known, ledger))


def _is_done(request: RunRequest, restore: Restore, ledger: Ledger) -> bool:
    if restore.work_order is not None and not restore.work_order.anew:
        return False  # it is told what to leave alone, and nothing that could be ticked off
    known, computed, begins_with = counted(request, ledger), ledger.restores.computed(restore), begins_with_of(request)
    asked = forced_stages(request) or {stage.name for stage in known.pipeline.stages}
    if begins_with and restore.as_recorded:
        asked = begins_with.put_back(known.pipeline)
    wanted = [stage for stage in known.pipeline.stages if stage.name in asked and stage.output.type.stored]
    return all(
        stage.name not in known.undecided and computed.get(stage.id, frozenset()) >= {*range(stage.partitions)}
        for stage in wanted
    )
