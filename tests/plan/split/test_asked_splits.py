"""Which splits a task takes next: a table of what is to do, who holds what, and what the task had before."""

from __future__ import annotations

from collections import deque

import pytest

from stagehold.model.partition_set import Share
from stagehold.plan.split.shares import next_splits, shares


def share(text: str) -> Share:
    first, _, last = text.partition("-")
    return Share(int(first), int(last or first))


@pytest.mark.parametrize(
    ("to_do", "held", "own", "before", "tasks", "taken"),
    [
        pytest.param(range(8), "", "0-3", "", 2, "0-1", id="half of what each task would get"),
        pytest.param(range(8), "", "4-7", "", 2, "4-5", id="of its own share first"),
        pytest.param(range(8), "4-5", "4-7", "", 2, "6-6", id="what nobody holds"),
        pytest.param(range(4), "0", "0-1", "", 2, "1-1", id="the last ones one by one"),
        pytest.param((0, 1, 7), "", "4-7", "", 2, "7-7", id="its own, though others come before"),
        pytest.param((0, 1), "", "4-7", "", 2, "0-0", id="another's, when its own are done"),
        pytest.param((0, 1), "0", "4-7", "", 2, "1-1", id="another's that the other does not hold"),
        pytest.param((0, 1), "0 1", "4-7", "", 2, None, id="all are held"),
        pytest.param((), "", "4-7", "", 2, None, id="all are done"),
        pytest.param((0, 1, 4, 5), "", "4-7", "1", 2, "1-1", id="after a failure what it had taken"),
        pytest.param((0, 1, 4, 5), "1", "4-7", "1", 2, "4-4", id="unless another has that now"),
        pytest.param((0, 1, 4, 5), "", "4-7", "2-3", 2, "4-4", id="what it had taken and is done is done"),
        pytest.param((0, 2, 4, 6, *range(8, 20)), "", "0-9", "", 1, "0-0", id="neighbours only"),
        pytest.param(range(100), "", "90-99", "", 2, "90-99", id="no more than its own share at once"),
    ],
)
def test_a_task_takes(to_do, held, own, before, tasks, taken):
    found = next_splits(to_do, [*map(share, held.split())], share(own), [*map(share, before.split())], tasks)
    assert (found and str(found)) == taken


@pytest.mark.parametrize(("splits", "tasks", "slow"), [(16, 4, 0), (16, 4, 15), (7, 3, 3), (100, 8, 42), (5, 5, 2)])
def test_each_split_is_taken_once_and_one_slow_task_holds_nobody(splits, tasks, slow):
    """Tasks take turns; whoever has the slow split never comes back."""
    homes = shares(splits, tasks)
    to_do, held, took = set(range(splits)), [], list[int]()
    turns = deque(homes)
    while turns:
        own = turns.popleft()
        if (taken := next_splits(to_do, held, own, (), tasks)) is None:
            continue
        took += taken.partitions
        if slow in taken:
            held.append(taken)
        else:
            to_do -= set(taken.partitions)
            turns.append(own)
    assert sorted(took) == list(range(splits))
    (hanging,) = held
    assert to_do == set(hanging.partitions)
    assert len(to_do) <= max(1, splits // (2 * tasks))
