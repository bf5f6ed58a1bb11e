"""How partitions are split over tasks, as tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.samples import attempt

from stagehold.model.partition_set import Share
from stagehold.model.records import AttemptState
from stagehold.plan.split.shares import all_finished, newest_covering, shares


@pytest.mark.parametrize(
    ("partitions", "tasks", "expected"),
    [
        (16, 1, "0-15"),
        (16, 4, "0-3 4-7 8-11 12-15"),
        (10, 4, "0-1 2-4 5-6 7-9"),
        (3, 3, "0-0 1-1 2-2"),
        (3, 8, "0-0 1-1 2-2"),
        (1, 1, "0-0"),
    ],
)
def test_shares_are_contiguous_nearly_equal_and_never_empty(partitions, tasks, expected):
    assert " ".join(map(str, shares(partitions, tasks))) == expected


@pytest.mark.parametrize("partitions", [1, 2, 7, 16, 100])
@pytest.mark.parametrize("tasks", [1, 2, 3, 5, 16, 101])
def test_every_partition_is_in_exactly_one_share_and_the_cut_is_the_same_each_time(partitions, tasks):
    cut = shares(partitions, tasks)
    assert [partition for share in cut for partition in share.partitions] == list(range(partitions))
    assert cut == shares(partitions, tasks)
    sizes = [len(share.partitions) for share in cut]
    assert max(sizes) - min(sizes) <= 1


def history(*cut: tuple[str | None, str]):
    """Attempts with epochs from 1 on; ``f`` has finished, ``r`` runs."""
    states = {"f": AttemptState.FINISHED, "r": AttemptState.RUNNING}
    return [
        replace(attempt(epoch), share=share, state=states[letter]) for epoch, (share, letter) in enumerate(cut, start=1)
    ]


@pytest.mark.parametrize(
    ("attempts", "share", "newest", "finished"),
    [
        pytest.param(history(), Share(0, 3), [], False, id="none yet"),
        pytest.param(history(), None, [], False, id="none yet, not split"),
        pytest.param(history((None, "r"), (None, "f")), None, [2], True, id="not split"),
        pytest.param(history(("0-3", "f")), Share(0, 7), [1], False, id="half of it was never tried"),
        pytest.param(
            history(("0-3", "f"), ("4-7", "f")), Share(0, 7), [2, 1], True, id="two small ones make a large one"
        ),
        pytest.param(
            history((None, "f"), ("0-3", "r")), Share(4, 7), [1], True, id="the whole counts where nothing newer is"
        ),
        pytest.param(history((None, "f"), ("0-3", "r")), Share(2, 5), [2, 1], False, id="old and new together"),
        pytest.param(history(("0-3", "r"), (None, "f")), Share(0, 3), [2], True, id="a newer whole covers all"),
        pytest.param(
            history(("0-7", "r"), ("0-3", "f"), ("4-7", "f")),
            Share(0, 7),
            [3, 2],
            True,
            id="an old one that is covered is out",
        ),
        pytest.param(history((None, "r"), ("0-3", "f")), None, [2, 1], False, id="a whole of which a part is newer"),
    ],
)
def test_the_newest_attempt_of_every_partition_counts(attempts, share, newest, finished):
    assert [found.epoch for found in newest_covering(attempts, share)] == newest
    assert all_finished(attempts, share) is finished
