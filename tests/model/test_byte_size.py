"""Amounts of data in pipeline files."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from stagehold.model.byte_size import ByteSize, read_byte_size, write_byte_size


@pytest.mark.parametrize(("text", "bytes"), [("1kb", 1024), ("128mb", 128 << 20), (" 2 GB", 2 << 30), ("1tb", 1 << 40), (4096, 4096)])
def test_sizes_are_read_as_people_write_them(text, bytes):
    assert read_byte_size(text) == bytes


@pytest.mark.parametrize("text", ["", "128", "1.5gb", "0kb", "-1mb", "12mib", 0, 1023, True, None, 1.5])
def test_anything_else_is_refused(text):
    with pytest.raises(ValidationError, match="a whole number with a unit, 1kb or more"):
        TypeAdapter(ByteSize).validate_python(text)


@given(st.integers(1024, 1 << 45))
@example(1_957_216 << 10)  # more kb than a file may say
def test_what_is_written_reads_back(size):
    assert read_byte_size(write_byte_size(size)) == size
