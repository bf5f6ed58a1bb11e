from __future__ import annotations

import pytest

from stagehold.model.share import Share, overlap


@pytest.mark.parametrize(
    ("text", "expected"), [("0-15", Share(0, 15)), ("7-7", Share(7, 7)), ("", None), ("a-b", None), ("1-2/3-4", None)]
)
def test_a_share_is_read_back_from_its_name(text, expected):
    assert Share.parse(text) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Share(0, 3), Share(4, 7), False),
        (Share(0, 3), Share(3, 7), True),
        (Share(0, 7), Share(2, 3), True),
        (None, Share(2, 3), True),
        (None, None, True),
    ],
)
def test_shares_overlap_where_they_have_a_partition_in_common(one, other, expected):
    assert (overlap(one, other), overlap(other, one)) == (expected, expected)
