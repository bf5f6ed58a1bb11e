"""What a gate said of a wave lies beside the wave's files until it is on record."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.ledger.samples import gate_result

from stagehold.lake.commit.wave_verdicts import WaveVerdicts

SAID = (gate_result(0, passed=True), gate_result(1, passed=False))


@pytest.fixture
def beside(tmp_path: Path) -> WaveVerdicts:
    return WaveVerdicts(str(tmp_path), "attempt-1", 2)


def test_they_are_there_from_when_they_are_kept_until_they_are_forgotten(beside):
    assert beside.read() == ()
    beside.keep(SAID)
    assert beside.read() == SAID
    assert WaveVerdicts(beside.uri, "attempt-1", 3).read() == ()
    assert WaveVerdicts(beside.uri, "attempt-2", 2).read() == ()
    beside.forget()
    assert beside.read() == ()
    beside.forget()


def test_without_a_gate_there_is_no_file(beside, tmp_path):
    beside.keep(())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("harm", [lambda content: content[:-9], lambda content: b"", lambda content: b"{}\n"])
def test_what_is_torn_says_nothing(beside, tmp_path, harm):
    beside.keep(SAID)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    file.write_bytes(harm(file.read_bytes()))
    assert beside.read() == ()
