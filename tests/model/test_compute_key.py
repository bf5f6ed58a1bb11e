from __future__ import annotations

from dataclasses import replace

import pytest

from stagehold.model.compute_key import ComputeKey, digest

KEY = ComputeKey(code="c", settings="s", environment="e", params="p", inputs="i")


def test_a_key_reads_back_as_written() -> None:
    assert ComputeKey.parse(str(KEY)) == KEY


@pytest.mark.parametrize("text", ["", "c.s.e.p", "c.s.e.p.i.x"])
def test_a_text_of_another_shape_is_no_key(text: str) -> None:
    assert ComputeKey.parse(text) is None
    assert KEY.changes_since(text) == ("record format",)


def test_a_changed_key_says_what_changed() -> None:
    assert KEY.changes_since(str(KEY)) == ()
    assert replace(KEY, inputs="new", code="new").changes_since(str(KEY)) == ("code", "inputs")


def test_parts_of_a_digest_do_not_run_into_each_other() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(iter(["ab", "c"])) == digest(["ab", "c"])
