"""The kinds of facts: where each is kept, what the chronicle calls it, and how what is lost of it is found again.

Whatever handles facts walks this registry: their rows (`ledger.py`), their lines in the chronicle (`fact_lines.py`),
what a lost ledger lacks (`chronicle/missing_facts.py`), what of old days it still needs (`chronicle/compaction.py`),
and how people are told (`chronicle/differences.py`). So a new kind is a record that `model.records.Fact` names, a table
with its migration, and a row of this registry.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import Table

from stagehold.ledger.database.schema import (
    acceptances,
    attempts,
    backfills,
    checkpoints,
    gate_results,
    partition_counts,
    partitions,
    pins,
    positions,
    restores,
    runs,
    stage_verdicts,
    waivers,
)
from stagehold.model.backfill import Backfill
from stagehold.model.checkpoint_records import CheckpointRecord
from stagehold.model.choices import Acceptance, Pin, Waiver
from stagehold.model.records import (
    Attempt,
    Cell,
    Fact,
    GateResult,
    PartitionCount,
    PartitionRecord,
    Restore,
    Run,
    StageVerdict,
    TakenPosition,
)

AFact = TypeVar("AFact", bound=Fact)

LONG_AGO = datetime.min.replace(tzinfo=UTC)
Progress = tuple[datetime, int]
AS_WRITTEN: Progress = (LONG_AGO, 0)
Age = tuple[Hashable, tuple[Any, ...]]
Where = tuple[str | None, str | None]


@dataclass(frozen=True, kw_only=True, eq=False)
class FactKind(Generic[AFact]):
    """All that is known of facts of one kind.

    :param word: its name in the chronicle, for ever: files of the chronicle are never rewritten.
    :param where: the pipeline and interval that a fact is about, as far as it is about one; without it, those of the
      run that it names.
    :param subject: what a difference in it is called, for people.
    :param partition: the partition that it is about.
    :param identity: equal for facts that tell of the same thing; without it, for equal facts alone.
    :param progress: how far a thing had come that is not only written once. Of facts of the same thing the one that is
      further counts.
    :param age: what a fact takes the place of, and an order in which it does, if such facts are appended again and
      again. What is younger than all that the ledger has in this place is written behind that, and nothing else.
    :param number: which series it is one of, and its number there, if these are written by number: a ledger that knows
      a later one has known it.
    :param told: whether the chronicle is told of it as it is.
    """

    type: type[AFact]
    table: Table
    word: str
    where: Callable[[AFact], Where] | None
    subject: str | Callable[[AFact], str]
    partition: Callable[[AFact], int] | None = None
    identity: Callable[[AFact], Hashable] | None = None
    progress: Callable[[AFact], Progress] = lambda _: AS_WRITTEN
    age: Callable[[AFact], Age] | None = None
    number: Callable[[AFact], tuple[Hashable, int]] | None = None
    told: Callable[[AFact], bool] = lambda _: True

    def subject_of(self, fact: AFact) -> str:
        return self.subject if isinstance(self.subject, str) else self.subject(fact)

    @property
    def appended(self) -> bool:
        """Whether its rows are numbered, and never replaced."""
        return "id" in self.table.c


def partition_age(record: PartitionRecord) -> Age:
    """A record's place, and its age by epoch and wave: the clocks of two machines may differ."""
    return (record.cell, record.partition), (record.epoch, record.wave, record.recorded_at)


def _of_cell(fact: GateResult | StageVerdict | TakenPosition | PartitionCount | PartitionRecord) -> Where:
    return _named(fact.cell)


def _named(fact: Run | Attempt | Acceptance | Waiver | Pin | CheckpointRecord | Cell) -> Where:
    return fact.pipeline, fact.interval


KINDS: Sequence[FactKind[Any]] = (
    FactKind[Run](
        type=Run,
        table=runs,
        word="run",
        where=_named,
        subject="runs",
        identity=lambda run: run.run_id,
        progress=lambda run: (run.ended_at or LONG_AGO, 0),
    ),
    FactKind[Attempt](
        type=Attempt,
        table=attempts,
        word="attempt",
        where=_named,
        subject=lambda attempt: f"attempts of {attempt.region}",
        identity=lambda attempt: attempt.attempt_id,
        progress=lambda attempt: (attempt.ended_at or LONG_AGO, attempt.epoch),
        told=lambda attempt: attempt.began or attempt.ended_at is not None,
    ),
    FactKind[PartitionCount](
        type=PartitionCount,
        table=partition_counts,
        word="partition_count",
        where=_of_cell,
        subject=lambda count: f"partition count of {count.cell.stage}",
        identity=lambda count: count.cell,
    ),
    FactKind[Restore](
        type=Restore,
        table=restores,
        word="restore",
        where=None,
        subject="restores",
        identity=lambda restore: (restore.run_id, restore.identity),
        progress=lambda restore: (
            max(restore.fulfilled_at or LONG_AGO, restore.life or LONG_AGO),
            (restore.snapshot is not None) + 2 * (restore.fulfilled_at is not None),
        ),
    ),
    FactKind[Backfill](
        type=Backfill,
        table=backfills,
        word="backfill",
        where=lambda backfill: (backfill.pipeline, None),
        subject="backfills",
        identity=lambda backfill: backfill.backfill_id,
    ),
    FactKind[CheckpointRecord](
        type=CheckpointRecord,
        table=checkpoints,
        word="checkpoint",
        where=_named,
        subject="checkpoints",
        identity=lambda checkpoint: (checkpoint.run_id, checkpoint.number),
        progress=lambda checkpoint: (
            max(checkpoint.ended_at or LONG_AGO, checkpoint.discarded_at or LONG_AGO),
            int(not checkpoint.untold),
        ),
        number=lambda checkpoint: (checkpoint.run_id, checkpoint.number),
    ),
    FactKind[Acceptance](
        type=Acceptance,
        table=acceptances,
        word="acceptance",
        where=_named,
        subject=lambda acceptance: f"acceptances of {acceptance.stage}",
    ),
    FactKind[Waiver](
        type=Waiver,
        table=waivers,
        word="waiver",
        where=_named,
        subject=lambda waiver: f"waivers of {waiver.stage}",
        partition=lambda waiver: waiver.partition,
    ),
    # An older word behind a newer one would count.
    FactKind[Pin](
        type=Pin,
        table=pins,
        word="pin",
        where=_named,
        subject="pins",
        age=lambda pin: ((pin.pipeline, pin.interval), (pin.recorded_at,)),
    ),
    FactKind[TakenPosition](
        type=TakenPosition,
        table=positions,
        word="position",
        where=_of_cell,
        subject=lambda taken: f"source positions of {taken.cell.stage}",
        identity=lambda taken: (taken.cell, taken.run_id, taken.recorded_at),
        age=lambda taken: (taken.cell, (taken.cell, taken.recorded_at)),
    ),
    FactKind[PartitionRecord](
        type=PartitionRecord,
        table=partitions,
        word="partition",
        where=_of_cell,
        subject=lambda record: record.cell.stage,
        partition=lambda record: record.partition,
        identity=lambda record: (record.cell, record.partition, record.attempt_id, record.wave, record.state),
        age=partition_age,
    ),
    # Of a partition an older result behind a newer one would be the last judgement.
    FactKind[GateResult](
        type=GateResult,
        table=gate_results,
        word="gate_result",
        where=_of_cell,
        subject=lambda result: f"gate results of {result.cell.stage}",
        partition=lambda result: result.partition,
        age=lambda result: ((result.cell, result.partition), (result.recorded_at,)),
    ),
    FactKind[StageVerdict](
        type=StageVerdict,
        table=stage_verdicts,
        word="stage_verdict",
        where=_of_cell,
        subject=lambda verdict: f"stage verdicts of {verdict.cell.stage}",
    ),
)
BY_TYPE: Mapping[type, FactKind[Any]] = {kind.type: kind for kind in KINDS}
BY_WORD: Mapping[str, FactKind[Any]] = {kind.word: kind for kind in KINDS}


def identity_of(fact: Fact) -> Hashable:
    """Equal for facts that tell of the same thing, of whatever kinds."""
    kind = BY_TYPE[type(fact)]
    return (kind.word, kind.identity(fact)) if kind.identity else fact
