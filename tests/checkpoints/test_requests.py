from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.requests import CheckpointRequest, Load, RequestQueue

KINDS = {
    "saves": SnapshotKind.SAVEPOINT,  # by the timer
    "save": SnapshotKind.SAVEPOINT,
    "stop": SnapshotKind.STOP_WITH_SAVEPOINT,
    "user": SnapshotKind.CHECKPOINT,
    "timer": SnapshotKind.CHECKPOINT,
}


def requests(text):
    """ "kind@millisecond", in the order in which they come."""
    parts = [part.split("@") for part in text.split()]
    return [
        CheckpointRequest(KINDS[kind], int(at), number, periodic=kind in ("timer", "saves"), name=f"{kind}@{at}")
        for number, (kind, at) in enumerate(parts)
    ]


def load(now=100, preparing=False, pending=0, discarding=0, last_completion=None):
    return Load(now, preparing, pending, discarding, last_completion)


def queued(text, **changed):
    queue = RequestQueue(**{"max_concurrent": 1, "min_pause": 10, **changed})
    dropped = [queue.add(request) for request in requests(text)]
    return queue, [request.name for request in dropped if request]


ORDERS = [
    ("savepoints first", "timer@1 user@2 save@3", "save@3 user@2 timer@1"),
    ("both kinds of savepoint are alike", "stop@2 save@1", "save@1 stop@2"),
    ("users before the timer", "timer@1 user@2", "user@2 timer@1"),
    ("older before newer", "user@3 user@1 user@2", "user@1 user@2 user@3"),
    ("at the same second in the order they came", "stop@1 save@1", "stop@1 save@1"),
]


@pytest.mark.parametrize(("given_order", "expected"), [row[1:] for row in ORDERS], ids=[row[0] for row in ORDERS])
def test_order(given_order, expected):
    queue, _ = queued(given_order)
    assert [request.name for request in queue.drain()] == expected.split()
    assert len(queue) == 0


PICKS = [
    ("nothing is queued", "", load(), None, None),
    ("the first", "timer@1 user@2", load(), "user@2", None),
    ("nothing while another is prepared", "save@1", load(preparing=True), None, None),
    ("as many may be deleted as may be taken", "user@1", load(discarding=1), "user@1", None),
    ("nothing while deleting lags behind", "save@1", load(discarding=2), None, None),
    ("without a slot an unforced one waits", "user@1", load(pending=1), None, None),
    ("without a slot a savepoint starts", "user@1 save@2", load(pending=7), "save@2", None),
    ("within the pause a periodic one is refused", "timer@1", load(last_completion=95), None, "timer@1"),
    ("at the end of the pause it starts", "timer@1", load(last_completion=90), "timer@1", None),
    (
        "within the pause a periodic savepoint starts: it is forced",
        "saves@1",
        load(last_completion=95),
        "saves@1",
        None,
    ),
    ("within the pause a user's starts", "user@1", load(last_completion=95), "user@1", None),
    (
        "without a slot a periodic one waits and is not refused",
        "timer@1",
        load(pending=1, last_completion=95),
        None,
        None,
    ),
]


@pytest.mark.parametrize(("text", "now", "start", "refused"), [row[1:] for row in PICKS], ids=[row[0] for row in PICKS])
def test_what_may_start(text, now, start, refused):
    queue, _ = queued(text)
    begun, postponed, pause_left = queue.pick(now)
    assert (begun and begun.name, postponed and postponed.name) == (start, refused)
    assert len(queue) == len(text.split()) - bool(start) - bool(refused)
    assert pause_left == (5 if refused else 0)


LIMITS = [
    ("the lowest is dropped", "timer@1 timer@2 save@3", ["timer@2"]),
    ("which may be the new one", "save@1 timer@2 timer@3", ["timer@3"]),
    ("of users' requests none is dropped for a newer one", "user@1 user@2 save@3", ["save@3"]),
]


@pytest.mark.parametrize(("text", "dropped"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_a_full_queue(text, dropped):
    queue, found = queued(text, limit=2)
    assert found == dropped
    assert len(queue) == 2


@example_settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(list(KINDS)), st.integers(0, 9)), max_size=30), st.integers(1, 5))
def test_the_limit_holds_and_nothing_gets_lost(kinds, limit):
    text = " ".join(f"{kind}@{at}" for kind, at in kinds)
    queue, dropped = queued(text, limit=limit)
    assert len(queue) == min(limit, len(kinds))
    kept = queue.drain()
    assert [request.rank for request in kept] == sorted(request.rank for request in kept)
    assert sorted([*dropped, *(request.name for request in kept)]) == sorted(text.split())


def test_a_thousand_requests_wait_at_most():
    queue, dropped = queued(" ".join(f"timer@{at}" for at in range(1002)))
    assert len(queue) == 1000
    assert dropped == ["timer@1000", "timer@1001"]
