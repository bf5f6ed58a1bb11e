"""How what was staged, copied or judged becomes readable, and how what may be read no more ceases to be.

Whoever changes a table of ours does it by `publish`: waves, partitions that are judged again or all together, what a
run takes over from a checkpoint, rows that go since a waiver has ended or since their interval is deleted.

    keep      what the gate said is beside the wave's files
    commit    one commit of the table, by who still has the lease and is not fenced out
    record    partitions and what their gate said of them, in one transaction
    forget    what was kept: the ledger has it

Who dies before the commit leaves files to which nothing refers, and the next attempt sweeps them. Who dies behind it
leaves a commit that the next attempt adopts, with the verdicts beside it. Nothing is ever readable and not vouched for
by a commit; nothing is on record as readable that is not.

One race remains: a lease may be lost between its check and the commit. Then the commit is refused if the newcomer has
fenced the table, and adopted by the newcomer if not, since it looks at the log behind its fence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from stagehold.lake.commit.committed_waves import Landed
from stagehold.lake.commit.committer import Committer
from stagehold.lake.commit.wave_commit import WaveCommit
from stagehold.lake.commit.wave_verdicts import WaveVerdicts
from stagehold.lake.copying import copied_for
from stagehold.lake.store.location import TableLocation
from stagehold.ledger.leases import Heartbeat
from stagehold.model.records import GateResult, PartitionRecord
from stagehold.run.delivery.wave import PublishRight, StageTask
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import Point

Recorded = Callable[[Landed | None], Sequence[PartitionRecord]]


@dataclass(frozen=True)
class Publication:
    """What changes about a stage. ``commit`` is None if its table stays as it is; ``said`` is what a gate said of all
    that is recorded. ``stage``, by name, and ``wave`` are what fault points go by.
    """

    stage: str
    location: TableLocation
    wave: int
    commit: WaveCommit | None
    said: Sequence[GateResult] = ()


def publish(
    what: Publication, recorded: Recorded, committer: Committer, heartbeat: Heartbeat, place: Workplace
) -> Landed | None:
    """Keep, commit, record, forget; gives what the commit came to, if there is one to make.

    :param recorded: what goes on record, by what the commit came to.
    :raises LeaseLost: nothing was published.
    :raises Fenced: likewise, by a newer attempt.
    """
    landed = _committed(what, what.commit, committer, heartbeat, place) if what.commit else None
    place.faults.reach(Point.AFTER_PUBLISH, what.stage, what.wave)
    records = recorded(landed)
    with place.ledger.together():
        place.ledger.partitions.record(records, heartbeat.lease)
        place.ledger.gates.record(what.said)
    if what.commit and what.said:
        _beside(what, what.commit).forget()
    place.faults.reach(Point.AFTER_RECORD, what.stage, what.wave)
    return landed


def _committed(
    what: Publication, commit: WaveCommit, committer: Committer, heartbeat: Heartbeat, place: Workplace
) -> Landed:
    published = {partition.partition for partition in commit.partitions}
    said = [result for result in what.said if result.partition in published]
    _beside(what, commit).keep(place.ledger.gates.as_stored(said))
    place.faults.reach(Point.BEFORE_PUBLISH, what.stage, what.wave)
    heartbeat.check()
    return committer.publish(what.location, commit)


def _beside(what: Publication, commit: WaveCommit) -> WaveVerdicts:
    return WaveVerdicts(what.location.uri, commit.attempt_id, commit.wave)


def brought_to(location: TableLocation, records: Iterable[PartitionRecord], attempt_id: str) -> list[PartitionRecord]:
    """Files of another table, of which a run begins with data that waits, are copied into the stage's own."""
    return [
        record if record.table == location.uri else copied_for(record, location.uri, attempt_id) for record in records
    ]


def as_landed(record: PartitionRecord, location: TableLocation, landed: Landed) -> PartitionRecord:
    """The record of a partition that a commit has just published."""
    files = landed.files.get(record.partition, record.files)
    return replace(record, table=location.uri, version=landed.version, files=files)


def wave_of(task: StageTask, right: PublishRight, wave: int, note: str = "") -> WaveCommit:
    """What a wave of an attempt says of itself, to the table's log and to the ledger, before it has any partition."""
    return WaveCommit(
        run_id=task.attempt.run_id,
        stage=task.stage.id,
        attempt_id=task.attempt.attempt_id,
        epoch=right.attempt.epoch,
        wave=wave,
        partitions=(),
        cut_into=task.stage.partitions,
        positions=task.positions,
        note=note,
    )


def under(wave: WaveCommit, record: PartitionRecord) -> PartitionRecord:
    """The record as this wave's, made now."""
    return replace(
        record,
        run_id=wave.run_id,
        attempt_id=wave.attempt_id,
        epoch=wave.epoch,
        wave=wave.wave,
        recorded_at=datetime.now(UTC),
    )
