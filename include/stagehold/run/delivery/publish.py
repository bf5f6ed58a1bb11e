"""How data that was staged, copied or judged becomes readable, and how data that may no longer be read is taken away.

Every change of a table of ours is made by `publish`: waves, partitions that are judged again or all together, data that
a run takes over from a checkpoint, rows that leave because a waiver has ended or because their interval is deleted.

    keep      the verdicts are written beside the wave's files
    commit    the table gets one commit, by an attempt that still has the lease and is not fenced out
    record    partitions and verdicts go on record in one transaction
    forget    the verdicts that were kept are deleted: the ledger has them

An attempt that dies before the commit leaves files to which nothing refers, and the next attempt sweeps them. An
attempt that dies after the commit leaves a commit that the next attempt adopts, with the verdicts beside it. Data is
never readable without a commit that vouches for it; no partition is on record as readable that is not.

One race remains: a lease may be lost between its check and the commit. If the new holder has fenced the table by then,
the commit is refused. If not, the new holder adopts the commit, since it reads the log after its own fence.
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
from stagehold.lake.local_copies import LocalCopies
from stagehold.lake.store.location import TableLocation
from stagehold.ledger.leases import Heartbeat
from stagehold.model.records import GateResult, PartitionRecord
from stagehold.run.delivery.wave import PublishRight, StageTask
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import Point

Recorded = Callable[[Landed | None], Sequence[PartitionRecord]]


@dataclass(frozen=True)
class Publication:
    """A change of a stage. ``commit`` is None if its table stays as it is; ``said`` are the verdicts on all that is
    recorded. ``stage``, by name, and ``wave`` identify it for fault points.
    """

    stage: str
    location: TableLocation
    wave: int
    commit: WaveCommit | None
    said: Sequence[GateResult] = ()


def publish(
    what: Publication, recorded: Recorded, committer: Committer, heartbeat: Heartbeat, place: Workplace
) -> Landed | None:
    """Keep, commit, record, forget. Returns the result of the commit, if there is a commit to make.

    :param recorded: makes the records, from the result of the commit.
    :raises LeaseLost: nothing was published.
    :raises Fenced: nothing was published: a newer attempt has fenced the table.
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
    if copies := LocalCopies.of(place.settings):
        copies.keep([record for record in records if record.state.readable], place.progress)
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
    """The records with all files in the stage's own table. If a run begins with data of a checkpoint that waits in
    another table, the files are copied.
    """
    return [
        record if record.table == location.uri else copied_for(record, location.uri, attempt_id) for record in records
    ]


def as_landed(record: PartitionRecord, location: TableLocation, landed: Landed) -> PartitionRecord:
    """The record of a partition that a commit has just published."""
    files = landed.files.get(record.partition, record.files)
    return replace(record, table=location.uri, version=landed.version, files=files)


def wave_of(task: StageTask, right: PublishRight, wave: int, note: str = "") -> WaveCommit:
    """The facts about a wave of an attempt, for the table's log and the ledger, before it has any partition."""
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
    """The record as a record of this wave, made now."""
    return replace(
        record,
        run_id=wave.run_id,
        attempt_id=wave.attempt_id,
        epoch=wave.epoch,
        wave=wave.wave,
        recorded_at=datetime.now(UTC),
    )
