"""Which hosts get no tasks for a while, since attempts fail there again and again and succeed elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from stagehold.model.records import Attempt, AttemptState, FailureClass

HOST = "host"  # the label of an attempt that says where it is made
IN_A_ROW = 3
WITHIN = timedelta(hours=1)
FOR = timedelta(minutes=30)


@dataclass(frozen=True)
class LeftOutHost:
    """``rule`` is that of the last of so many ``failures`` in a row."""

    host: str
    failures: int
    rule: str
    until: datetime

    def __str__(self) -> str:
        return (
            f"{self.host} gets no tasks before {self.until:%H:%M:%S} UTC: {self.failures} attempts in a row failed "
            f"there, the last by rule {self.rule}, and others succeeded elsewhere meanwhile"
        )


def left_out_hosts(ended: Sequence[Attempt], now: datetime) -> tuple[LeftOutHost, ...]:
    """The hosts that are left out ``now``.

    What failed in one's environment counts, a success ends the row, and what somebody cancelled or an author's code is
    to blame for says nothing. A host on which everything fails while nothing succeeds anywhere is not left out: then it
    is not the host. So the last host is never left out for longer than others have something to show.

    :param ended: attempts that ended within `WITHIN`, in the order of their ends.
    """
    found = (_left_out(host, row, ended) for host, row in _rows(ended).items() if len(row) >= IN_A_ROW)
    return tuple(host for host in found if host and host.until > now)


def _rows(ended: Sequence[Attempt]) -> Mapping[str, Sequence[Attempt]]:
    """The failures of each host since its last success."""
    rows: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in ended:
        host = attempt.labels.get(HOST)
        if host and attempt.state is AttemptState.FINISHED:
            rows[host].clear()
        elif host and attempt.failure_class is FailureClass.ENVIRONMENT:
            rows[host].append(attempt)
    return rows


def _left_out(host: str, row: Sequence[Attempt], ended: Sequence[Attempt]) -> LeftOutHost | None:
    first, last = row[0].ended_at, row[-1].ended_at
    elsewhere = any(
        attempt.state is AttemptState.FINISHED
        and attempt.labels.get(HOST, host) != host
        and first
        and attempt.ended_at
        and attempt.ended_at > first
        for attempt in ended
    )
    return LeftOutHost(host, len(row), row[-1].failure_rule or "", last + FOR) if elsewhere and last else None
