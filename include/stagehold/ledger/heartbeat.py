"""Keeps a lease alive while its holder works."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

from stagehold.errors import LeaseLost, LedgerUnavailable, StageholdError
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Lease

logger = logging.getLogger(__name__)


class Heartbeat:
    """Renews a lease from a daemon thread, from entering to leaving the context; it does not release it.

    An outage of the ledger is survived as long as the lease lasts. Between two beats a lease that was seized looks
    alive, and `check` may pass just before it is: whatever becomes visible to others has to check the epoch itself.

    :param seconds: what each renewal asks for; it is asked for three times as often.
    """

    def __init__(self, ledger: Ledger, lease: Lease, seconds: float) -> None:
        self.lease = lease
        self.lost = threading.Event()
        self._leases, self._seconds = ledger.leases, seconds
        self._ends = time.monotonic() + seconds
        self._reason: StageholdError | None = None
        self._stopping = threading.Event()
        self._beating = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat of {lease.name}", daemon=True)

    def check(self) -> None:
        """Raise Fenced if somebody has taken the lease, LeaseLost if it ended in an outage of the ledger.

        A process that slept beyond the end of its lease asks the ledger here, so it learns of its successor before it
        acts.
        """
        if not self.lost.is_set() and time.monotonic() >= self._ends:
            self._beat()
        if self._reason is not None:
            raise self._reason

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Joined without a limit, since a late renewal would revive a lease that the caller releases next; the
        # database's own limits end it.
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self.lost.is_set() and not self._stopping.wait(self._seconds / 3):
            self._beat()

    def _beat(self) -> None:
        with self._beating:
            asked = time.monotonic()
            try:
                self._leases.renew(self.lease, self._seconds)
                self._ends = asked + self._seconds
            except LedgerUnavailable as outage:
                self._renewal_failed(outage)
            except StageholdError as error:
                self._lose(error)

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

    def _lose(self, error: StageholdError) -> None:
        logger.warning("Lost the lease of %s (epoch %d): %s", self.lease.name, self.lease.epoch, error)
        self._reason = error
        self.lost.set()
