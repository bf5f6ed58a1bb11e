"""Leases: who may work on what, until when, and with which epoch; and the heartbeat that keeps a lease alive.

All times are the database's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, NoReturn

from sqlalchemy import ColumnElement, Connection, case, select, update

from stagehold.errors import Fenced, LeaseHeld, LeaseLost, LedgerUnavailable, StageholdError, UnknownName
from stagehold.extensions.leadership import Leadership, LeadershipChange, tell_no_listener
from stagehold.ledger.database.column_types import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, read_one, record_of
from stagehold.ledger.database.schema import leases
from stagehold.model.partition_set import Share, overlap
from stagehold.model.pulse import Meter, Pulse
from stagehold.model.records import Attempt, Lease

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShareLease:
    """The lease of a share, as it is now; ``alive`` while it has not ended."""

    name: str
    share: Share | None
    holder: str
    alive: bool


class Leases:
    """The `leases` table.

    A lease does not stop a frozen holder from waking up after its lease ended: that is what the epoch is for, and every
    effect outside (a Delta commit, a ledger row) has to be checked against it where it happens.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def acquire(self, name: str, holder: str, seconds: float) -> Lease:
        """Take the lease with the next epoch; LeaseHeld while another holder's has not ended. A holder may take its own
        lease anew.
        """
        free = (leases.c.expires_at <= DatabaseTime()) | (leases.c.holder == holder)
        with self._database.writing() as connection:
            return self._take(connection, name, holder, seconds, free=free) or _refuse(connection, name)

    def take(
        self,
        region: str,
        share: Share | None,
        holder: str,
        seconds: float,
        may_seize: Callable[[str], bool],
        *,
        above: int = 0,
    ) -> Lease:
        """Take a share of ``region``, or all of it, and with it every share that overlaps it, however the region was
        cut before.

        All shares of a region draw their epochs from one sequence, that of the region's own lease. So of any two
        attempts that were ever allowed to write one partition, the later has the higher epoch. Leases of overlapping
        shares end at once, which fences their holders and leaves the rest of them free for others.

        :param may_seize: whether a lease that has not ended may be taken from the holder of this text.
        :param above: an epoch that somebody has had, according to the tables' logs: they remember it when a ledger was
            lost.
        :raises LeaseHeld: another holder works on partitions of this share.
        """
        following = self._database.insert(leases).values(
            name=region, holder=holder, epoch=above + 1, expires_at=DatabaseTime(), taken_at=DatabaseTime()
        )
        newest = case((leases.c.epoch < above, above), else_=leases.c.epoch)
        counting = following.on_conflict_do_update(index_elements=["name"], set_={"epoch": newest + 1}).returning(
            leases.c.epoch
        )
        with self._database.writing() as connection:
            epoch = connection.execute(counting).scalar_one()  # this also makes every other taker wait
            rivals = _rivals(connection, region, share)
            for rival in rivals:
                if rival.alive and rival.holder != holder and not may_seize(rival.holder):
                    _refuse(connection, rival.name)
            taken = {"holder": holder, "epoch": epoch, **_TAKEN_NOW}
            along = update(leases).where(leases.c.name.in_([rival.name for rival in rivals]))
            connection.execute(along.values(**taken, expires_at=DatabaseTime()))
            name = lease_name(region, share)
            own = self._database.insert(leases).values(name=name, **taken, expires_at=DatabaseTime(seconds))
            taking = own.on_conflict_do_update(
                index_elements=["name"], set_={**taken, "expires_at": DatabaseTime(seconds)}
            )
            return record_of(Lease, connection.execute(taking.returning(leases)).mappings().one())

    def overlapping(self, region: str, share: Share | None) -> tuple[Share | None, ...]:
        """Other shares of the region that were ever taken and have a partition of this share; None stands for all of
        the region.
        """
        with self._database.reading() as connection:
            rivals = _rivals(connection, region, share)
        return tuple(rival.share for rival in rivals if rival.share != share)

    def of_shares(self, region: str) -> tuple[ShareLease, ...]:
        """Every lease that anybody ever had of the region or a share of it, as it is now."""
        with self._database.reading() as connection:
            return _rivals(connection, region, None)

    def holder(self, region: str) -> str | None:
        """A holder that works on the region, or on a share of it, now."""
        with self._database.reading() as connection:
            return next((rival.holder for rival in _rivals(connection, region, None) if rival.alive), None)

    def renew(self, lease: Lease, seconds: float, pulse: Pulse | None = None) -> Lease:
        """Move the end of the lease; this works after its end too, if nobody has taken it since. Fenced if somebody
        has.

        :param pulse: the holder's report on its work; None leaves the report before.
        """
        said = {"pulse": pulse} if pulse else {}
        moved = update(leases).values(expires_at=DatabaseTime(seconds), renewed_at=DatabaseTime(), **said)
        renewal = moved.where(leases.c.name == lease.name).returning(leases)
        with self._database.writing() as connection:
            check_epoch(connection, lease)
            return record_of(Lease, connection.execute(renewal).mappings().one())

    def release(self, lease: Lease) -> None:
        """End the lease now. Its epoch stays, so the next holder's is higher; a lease that was taken over is left
        alone.
        """
        with self._database.writing() as connection:
            mine = (leases.c.name == lease.name, leases.c.epoch == lease.epoch)
            connection.execute(update(leases).where(*mine).values(expires_at=DatabaseTime()))

    def get(self, name: str) -> Lease | None:
        """The lease as it is, ended or not."""
        return read_one(self._database, Lease, select(leases).where(leases.c.name == name))

    def known(self, names: Collection[str]) -> frozenset[str]:
        """The leases, of these, that were ever taken."""
        with self._database.reading() as connection:
            return frozenset(connection.scalars(select(leases.c.name).where(leases.c.name.in_(names))))

    def holds(self, lease: Lease) -> bool:
        """Whether nobody has taken the lease over, ended or not."""
        found = self.get(lease.name)
        return found is not None and found.epoch == lease.epoch

    def alive(self, name: str) -> bool:
        """Whether somebody has the lease and it has not ended."""
        with self._database.reading() as connection:
            return bool(connection.scalar(select(leases.c.expires_at > DatabaseTime()).where(leases.c.name == name)))

    def alive_among(self, names: Collection[str], beginnings: Collection[str], most: int) -> tuple[Lease, ...]:
        """Leases that have not ended and have one of the names, or one of the beginnings; the last to end first."""
        # Sorted out here: SQLite refuses a question with a thousand parts, and few leases are alive at once.
        order = (leases.c.expires_at.desc(), leases.c.name)
        alive = read_all(
            self._database, Lease, select(leases).where(leases.c.expires_at > DatabaseTime()).order_by(*order)
        )
        begins = tuple(beginnings)
        return tuple(lease for lease in alive if lease.name in names or lease.name.startswith(begins))[:most]

    def named(self, names: Collection[str]) -> tuple[Lease, ...]:
        """Leases with one of the names, ended or not, by name."""
        asked = select(leases).where(leases.c.name.in_(sorted(names))).order_by(leases.c.name)
        return read_all(self._database, Lease, asked)

    def now(self) -> datetime:
        """The database's time, by which leases end."""
        with self._database.reading() as connection:
            return connection.execute(select(DatabaseTime())).scalar_one()

    def require_none(self) -> None:
        """Refuse while any lease is held.

        :raises LeaseHeld: somebody is at work, on anything.
        """
        with self._database.reading() as connection:
            alive = select(leases.c.name).where(leases.c.expires_at > DatabaseTime()).order_by(leases.c.name)
            if name := connection.scalar(alive.limit(1)):
                _refuse(connection, name)

    def _take(
        self, connection: Connection, name: str, holder: str, seconds: float, *, free: ColumnElement[bool]
    ) -> Lease | None:
        """Write the next epoch if the row is ``free``, in one statement: of several takers at once the database lets
        one through.
        """
        taken = {"holder": holder, "expires_at": DatabaseTime(seconds), **_TAKEN_NOW}
        first = self._database.insert(leases).values(name=name, epoch=1, **taken)
        following = {"epoch": leases.c.epoch + 1, **taken}
        taking = first.on_conflict_do_update(index_elements=["name"], set_=following, where=free).returning(leases)
        row = connection.execute(taking).mappings().one_or_none()
        return record_of(Lease, row) if row else None


# The values of a lease that changes hands, beside its holder, epoch and end.
_TAKEN_NOW: Mapping[str, Any] = {"taken_at": DatabaseTime(), "renewed_at": DatabaseTime(), "pulse": None}


def lease_name(region: str, share: Share | None) -> str:
    return region if share is None else f"{region}/{share}"


def region_lease(pipeline: str, interval: str, region: str) -> str:
    """The name of the lease that is needed to work on a region."""
    return f"{pipeline}/{interval}/{region}"


def lease_of(attempt: Attempt) -> str:
    """The name of the lease that an attempt has while it works."""
    share = Share.parse(attempt.share) if attempt.share else None
    return lease_name(region_lease(attempt.pipeline, attempt.interval, attempt.region), share)


def _rivals(connection: Connection, region: str, share: Share | None) -> tuple[ShareLease, ...]:
    """Leases of the region whose shares overlap ``share``, itself included. Shares are numbers: they are compared here,
    not in SQL.
    """
    named = (leases.c.name == region) | leases.c.name.startswith(f"{region}/", autoescape=True)
    query = select(leases.c.name, leases.c.holder, (leases.c.expires_at > DatabaseTime()).label("alive")).where(named)
    found = []
    for row in connection.execute(query.order_by(leases.c.name)).mappings():
        part = Share.parse(row["name"].removeprefix(f"{region}/"))
        if (part or row["name"] == region) and overlap(part, share):
            found.append(ShareLease(row["name"], part, row["holder"], row["alive"]))
    return tuple(found)


def check_epoch(connection: Connection, lease: Lease) -> None:
    """Raise Fenced unless ``lease`` has the newest epoch. It stays the newest until the transaction ends: nobody else
    can take the lease before.
    """
    epoch = connection.scalar(select(leases.c.epoch).where(leases.c.name == lease.name).with_for_update())
    if epoch is None:
        raise UnknownName("lease", lease.name, ())
    if epoch != lease.epoch:
        raise Fenced(lease.name, lease.epoch, epoch)


def _refuse(connection: Connection, name: str) -> NoReturn:
    row = connection.execute(select(leases, DatabaseTime().label("now")).where(leases.c.name == name)).mappings().one()
    raise LeaseHeld(name, row["holder"], (row["expires_at"] - row["now"]).total_seconds())


class Heartbeat:
    """Renews a lease from a daemon thread, from entering the context to leaving it; it does not release it.

    An outage of the ledger is survived as long as the lease lasts. Between two beats a lease that was seized looks
    alive, and `check` may pass just before it is seized: before anything becomes visible to others, the epoch itself
    has to be checked.

    :param seconds: the length that each renewal asks for; it is asked for three times as often.
    :param meter: measures the work that is done under the lease; its report goes along with each renewal.
    :param tell: is told what becomes of the lease. It is told of a late renewal or a loss in a thread of its own, so it
        delays no renewal, however long it takes.
    """

    def __init__(
        self,
        leases: Leases,
        lease: Lease,
        seconds: float,
        meter: Meter | None = None,
        *,
        tell: Callable[[LeadershipChange], None] = tell_no_listener,
    ) -> None:
        self.lease, self.meter, self._listener = lease, meter or Meter(), tell
        self.lost = threading.Event()
        self.when_lost: Callable[[], None] = lambda: None  # stops what works under the lease
        self._leases, self._seconds = leases, seconds
        self._ends = time.monotonic() + seconds
        self._reason: StageholdError | None = None
        self._stopping = threading.Event()
        self._beating = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat of {lease.name}", daemon=True)

    def check(self) -> None:
        """Raise Fenced if somebody has taken the lease, LeaseLost if it ended in an outage of the ledger, or if what it
        was held for has ended.

        A process that slept beyond the end of its lease asks the ledger here, so it learns of its successor before it
        acts.
        """
        ended = self._stopping.is_set()  # to renew it then would revive what is released
        if not ended and not self.lost.is_set() and time.monotonic() >= self._ends:
            self._beat()
        if self._reason is not None:
            raise self._reason
        if ended:
            raise LeaseLost(self.lease.name, self.lease.epoch, "what it was held for has ended.")

    def __enter__(self) -> Heartbeat:
        self._listener(self._change(Leadership.GRANTED))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Joined without a limit, since a late renewal would revive a lease that the caller releases next; the
        # database's own limits end it.
        self._stopping.set()
        self._thread.join()
        if not self.lost.is_set():
            self._listener(self._change(Leadership.RELEASED))

    def _change(self, what: Leadership, reason: str = "") -> LeadershipChange:
        return LeadershipChange(what, self.lease.name, self.lease.holder, self.lease.epoch, reason)

    def _tell(self, what: Leadership, reason: str) -> None:
        threading.Thread(target=self._listener, args=(self._change(what, reason),), daemon=True).start()

    def _run(self) -> None:
        while not self.lost.is_set() and not self._stopping.wait(self._seconds / 3):
            self._beat()

    def _beat(self) -> None:
        with self._beating:
            said, asked = self._pulse(), time.monotonic()
            try:
                self._leases.renew(self.lease, self._seconds, said)
                self._ends = asked + self._seconds
            except LedgerUnavailable as outage:
                self._renewal_failed(outage)
            except StageholdError as error:
                self._lose(error)

    def _pulse(self) -> Pulse | None:
        """The meter's report. An error of the meter never keeps the lease from being renewed."""
        try:
            return self.meter.pulse()
        except Exception:
            logger.warning("Could not tell how the work of %s gets on", self.lease.name, exc_info=True)
            return None

    def _renewal_failed(self, outage: LedgerUnavailable) -> None:
        left = self._ends - time.monotonic()
        if left <= 0:
            self._lose(LeaseLost(self.lease.name, self.lease.epoch, outage.reason))
        else:
            logger.warning(
                "Could not renew the lease of %s (epoch %d), %.1f s left: %s",
                self.lease.name,
                self.lease.epoch,
                left,
                outage.reason,
            )
            self._tell(Leadership.LATE, f"could not be renewed, and ends in {left:.1f} s: {outage.reason}")

    def _lose(self, error: StageholdError) -> None:
        logger.warning("Lost the lease of %s (epoch %d): %s", self.lease.name, self.lease.epoch, error)
        self._reason = error
        self.lost.set()
        self._tell(Leadership.LOST if isinstance(error, LeaseLost) else Leadership.REVOKED, str(error))
        try:
            self.when_lost()
        except Exception:
            logger.warning("Could not stop what works under the lease of %s", self.lease.name, exc_info=True)
