"""Whatever happened to a ledger, and whenever it is lost or an old copy is put back: the chronicle brings it back."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chronicle.ledger_histories import Step, facts_in, steps
from tests.ledger.blank import lay_blank_ledger

from stagehold.chronicle.chronicle import LakeChronicle, read_chronicle
from stagehold.chronicle.missing_facts import LakeKnowledge, missing_in_chronicle, missing_in_ledger
from stagehold.ledger.ledger import Ledger

pytestmark = pytest.mark.slow


@settings(max_examples=20, deadline=None)
@given(st.lists(steps, min_size=1, max_size=12), st.integers(0, 12), st.booleans())
def test_a_ledger_that_was_lost_or_is_old_is_as_it_was_after_the_repair(history: list[Step], kept: int, copied: bool):
    with tempfile.TemporaryDirectory() as folder:
        file, copy, lake = Path(folder, "ledger.db"), Path(folder, "copy"), str(Path(folder, "lake"))
        for number, step in enumerate(history, 1):
            with Ledger.open(f"sqlite:///{lay_blank_ledger(file)}", chronicle=LakeChronicle(lake)) as ledger:
                step(ledger, number)
            if copied and number == kept:
                shutil.copy(file, copy)
        known = facts_in(file)
        file.unlink()
        if copy.exists():
            copy.rename(file)
        told = LakeKnowledge(read_chronicle(lake)[0], {})
        with Ledger.open(f"sqlite:///{lay_blank_ledger(file)}") as ledger:
            ledger.facts.mend(lambda facts: missing_in_ledger(facts, told))
            assert missing_in_ledger(ledger.facts.all(), told) == ()
            assert missing_in_chronicle(ledger.facts.all(), told.told) == ()
        assert facts_in(file) == known
