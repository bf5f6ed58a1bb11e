from __future__ import annotations

import pytest
from pydantic_core import PydanticCustomError

from stagehold.model.size import read_size, write_size


@pytest.mark.parametrize(
    ("text", "size"), [("1b", 1), ("512kb", 524288), ("128mb", 134217728), ("1gb", 1 << 30), ("2tb", 2 << 40), ("1025b", 1025)]
)
def test_a_size_reads_back_as_it_was_written(text, size):
    assert read_size(text) == size
    assert write_size(size) == text


def test_units_may_be_written_in_capitals_and_apart():
    assert read_size(" 128 MB ") == read_size("128mb")


@pytest.mark.parametrize("given", ["", "128", "0mb", "-1mb", "1.5gb", "1pb", 0, True, None, 1.5])
def test_what_is_no_size_is_refused(given):
    with pytest.raises(PydanticCustomError):
        read_size(given)
