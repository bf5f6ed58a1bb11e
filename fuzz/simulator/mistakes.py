"""Mistakes that a protocol such as ours is easily built with. Each is put back for a while, to see that it is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from stagehold.lake.commit.committed_waves import Landed
from stagehold.lake.commit.delta_log import open_table
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.tokens import TRIES
from stagehold.lake.commit.wave_commit import Claim, epoch_of
from stagehold.lake.store.location import TableLocation
from stagehold.lake.sweep import remove
from stagehold.run.delivery.publish import Publication, Recorded
from stagehold.run.lease.sweeping import RegionSweep, Sweeper

if TYPE_CHECKING:
    from stagehold.ledger.leases import Heartbeat
    from stagehold.model.records import Attempt, Cell
    from stagehold.run.equipment.workplace import Workplace


def _no_fence() -> AbstractContextManager[object]:
    """A new attempt looks at the log and computes, while an old one may still commit."""
    return patch.object(StagedCommitter, "fence", lambda *_: None)


def _record_before_publish() -> AbstractContextManager[object]:
    """A partition is on record as consumable, and whoever dies then never commits it."""
    from stagehold.run.delivery import publish as real
    from stagehold.run.delivery import wave_publication

    def publish(
        what: Publication, recorded: Recorded, committer: StagedCommitter, heartbeat: Heartbeat, place: Workplace
    ) -> Landed | None:
        version = open_table(what.location.uri).version() + 1
        with place.ledger.together():
            expected = Landed(version, what.commit) if what.commit else None
            place.ledger.partitions.record(recorded(expected), heartbeat.lease)
        return real.publish(what, lambda landed: (), committer, heartbeat, place)

    return patch.object(wave_publication, "publish", publish)


def _no_second_look() -> AbstractContextManager[object]:
    """Who meets another commit tries again, without asking whether it still may."""
    from deltalake.exceptions import CommitFailedError

    from stagehold.errors import CommitContested, Fenced
    from stagehold.lake.commit import staged_committer

    def until_done(location: TableLocation, claim: Claim, step: Callable[[Any, int], str | None], *_: object) -> None:
        for attempt in range(TRIES):
            table = open_table(location.uri)
            landed = table.transaction_version(location.token) or 0
            if attempt == 0 and claim.is_shut_out_by(landed):
                raise Fenced(location.token, claim.epoch, epoch_of(landed), told_by=location.uri)
            if step(table, min(landed, claim.fence)) is None:
                return
        raise CommitContested(location.uri, TRIES, CommitFailedError.__name__)

    return patch.object(staged_committer, "until_done", until_done)


def _sweep_without_lease() -> AbstractContextManager[object]:
    """Files are deleted of attempts that look dead, and are not."""

    def sweep(self: Sweeper, last: Attempt, places: Mapping[Cell, TableLocation]) -> RegionSweep:
        strays = self._strays(last, places)
        remove(strays)
        return RegionSweep(last, strays)

    return patch.object(Sweeper, "_sweep_region", sweep)


MISTAKES: Mapping[str, Callable[[], AbstractContextManager[object]]] = {
    "no fence": _no_fence,
    "record before publish": _record_before_publish,
    "retry without a second look": _no_second_look,
    "sweep without a lease": _sweep_without_lease,
}
