from __future__ import annotations

from dataclasses import replace

import pytest

from stagehold.model.keys.compute_key import (
    MOST_MARKS,
    ComputeKey,
    DeclaredRead,
    ReadKind,
    changed_reads,
    digest,
    reads_part,
)

KEY = ComputeKey(code="c", settings="s", environment="e", params="p", inputs="i")


def test_a_key_reads_back_as_written() -> None:
    assert ComputeKey.parse(str(KEY)) == KEY


@pytest.mark.parametrize("text", ["", "c.s.e.p", "c.s.e.p.i.", "c.s.e.p.i.x", f"c.s.e.p.i.{digest(())}.{digest(())}"])
def test_a_text_of_another_shape_is_no_key(text: str) -> None:
    assert ComputeKey.parse(text) is None
    assert KEY.changes_since(text) == ("record format",)


def test_a_changed_key_says_what_changed() -> None:
    assert KEY.changes_since(str(KEY)) == ()
    assert replace(KEY, inputs="new", code="new").changes_since(str(KEY)) == ("code", "inputs")


def test_parts_of_a_digest_do_not_run_into_each_other() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(iter(["ab", "c"])) == digest(["ab", "c"])


RATE = DeclaredRead(ReadKind.ENV, "RATE", "7")
SIDE = DeclaredRead(ReadKind.FILE, "side.csv", "rows")


def reading(*reads: DeclaredRead) -> ComputeKey:
    return replace(KEY, reads=reads_part(reads))


def test_a_key_without_declared_reads_has_the_text_that_it_always_had() -> None:
    assert str(reading()) == str(KEY) == "c.s.e.p.i"


def test_declared_reads_are_a_part_of_the_key_and_their_order_is_not() -> None:
    assert ComputeKey.parse(str(reading(RATE, SIDE))) == reading(SIDE, RATE)
    assert reading(RATE).changes_since(str(KEY)) == ("reads",)
    assert reading(replace(RATE, content="8")).changes_since(str(reading(RATE))) == ("reads",)


def test_a_key_shows_no_value_and_has_room_in_the_ledger() -> None:
    many = [DeclaredRead(ReadKind.ENV, f"NAME_{number}", "secret") for number in range(MOST_MARKS + 1)]
    hashes = [digest((part,)) for part in "csepi"]
    for count in (1, MOST_MARKS, MOST_MARKS + 1):
        text = str(ComputeKey(*hashes, reads_part(many[:count])))
        assert len(text) <= 250
        assert "secret" not in text


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ([RATE, SIDE], [RATE, SIDE], []),
        ([RATE, SIDE], [RATE, replace(SIDE, content="others")], ["file side.csv changed"]),
        ([RATE], [replace(RATE, content="8"), SIDE], ["env RATE changed", "file side.csv is declared now"]),
        ([], [RATE], ["env RATE is declared now"]),
        ([RATE, SIDE], [RATE], ["something is declared no more"]),
        ([RATE], [], ["something is declared no more"]),
    ],
)
def test_a_later_plan_tells_which_read_changed(
    before: list[DeclaredRead], now: list[DeclaredRead], told: list[str]
) -> None:
    assert list(changed_reads(now, reading(*before))) == told


def test_of_very_many_reads_only_the_change_itself_is_told() -> None:
    many = [DeclaredRead(ReadKind.ENV, f"NAME_{number}", "1") for number in range(MOST_MARKS + 1)]
    others = [replace(one, content="2") for one in many]
    assert reading(*others).changes_since(str(reading(*many))) == ("reads",)
    assert list(changed_reads(others, reading(*many))) == []
