"""Which hosts get no tasks for a while: a table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.ledger.samples import attempt

from stagehold.model.records import Attempt, AttemptState, FailureClass
from stagehold.plan.restart.left_out_hosts import FOR, HOST, left_out_hosts

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
KINDS = {"E": FailureClass.ENVIRONMENT, "N": FailureClass.NON_RECOVERABLE, "D": FailureClass.PARTITION_DATA_MISSING}


def ended(text: str) -> list[Attempt]:
    """A minute apart, the last just now: a host, and what became of its attempt: + or the class of a failure."""
    words = text.split()
    return [_attempt(word, NOW - timedelta(minutes=len(words) - number - 1)) for number, word in enumerate(words)]


def _attempt(word: str, at: datetime) -> Attempt:
    host, end = word[:-1], word[-1]
    labels = {HOST: host} if host else {}
    if end == "+":
        return replace(attempt(), state=AttemptState.FINISHED, ended_at=at, labels=labels)
    return replace(
        attempt(),
        state=AttemptState.CANCELED if end == "C" else AttemptState.FAILED,
        ended_at=at,
        failure_class=KINDS.get(end),
        failure_rule="disk_full",
        labels=labels,
    )


TABLE = [
    ("nothing ended", "", []),
    ("three in a row, and others succeed elsewhere", "aE aE b+ aE", ["a"]),
    ("two are not enough", "aE b+ aE", []),
    ("a success ends the row", "aE aE a+ aE b+", []),
    ("after it a new row counts", "a+ aE aE aE b+", ["a"]),
    ("nothing succeeds anywhere, so it is not the host", "aE aE aE bE bE bE", []),
    ("what succeeded before says nothing of now", "b+ aE aE aE", []),
    ("there is no other host", "aE aE aE", []),
    ("code that is wrong, data that is gone, and what was cancelled say nothing", "aN aD aC b+ aE aE", []),
    ("nor do they end the row", "aE aN aE b+ aC aE", ["a"]),
    ("two hosts", "aE bE aE bE c+ aE bE", ["a", "b"]),
    ("attempts of earlier versions have no host", "E E E b+ E", []),
    ("whose host is not known is not elsewhere", "aE aE + aE", []),
]


@pytest.mark.parametrize(("attempts", "hosts"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_host_is_left_out_that_fails_again_and_again_while_others_succeed(attempts, hosts):
    assert [host.host for host in left_out_hosts(ended(attempts), NOW)] == hosts


def test_it_is_left_out_for_a_while_after_its_last_failure_and_says_why():
    (host,) = left_out_hosts(ended("aE aE b+ aE"), NOW)
    assert str(host) == (
        "a gets no tasks before 12:30:00 UTC: 3 attempts in a row failed there, the last by rule disk_full, and "
        "others succeeded elsewhere meanwhile"
    )
    assert left_out_hosts(ended("aE aE b+ aE"), NOW + FOR) == ()
