"""Whatever kind the registry knows, all who walk it handle it: a new one needs a sample here, and no more."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.ledger.samples import pin
from tests.ledger.test_earlier_formats import LAKE, LATER, stored

from stagehold.chronicle.chronicle import LakeChronicle, read_chronicle
from stagehold.chronicle.differences import Difference, disagreements
from stagehold.chronicle.missing_facts import LakeKnowledge, missing_in_chronicle, missing_in_ledger, still_told
from stagehold.ledger import Ledger
from stagehold.ledger.fact_lines import from_lines, to_lines
from stagehold.ledger.kinds import BY_TYPE, BY_WORD, KINDS
from stagehold.model.records import Fact

EARLIER: Mapping[type, Fact] = {type(fact): fact for fact in read_chronicle(LAKE)[0]}
SAMPLES: Mapping[type, Fact] = {**EARLIER, **{type(fact): fact for fact in (pin(),)}}
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.word)


def test_every_fact_is_of_one_kind_with_a_word_and_a_table_of_its_own():
    assert set(BY_TYPE) == set(Fact.__args__) == set(SAMPLES)
    assert set(EARLIER) == set(SAMPLES) - LATER
    assert len(BY_TYPE) == len(BY_WORD) == len({kind.table.name for kind in KINDS}) == len(KINDS)


@each_kind
def test_its_row_is_read_as_it_was_written(kind, ledger_file):
    fact = SAMPLES[kind.type]
    with Ledger.open(f"sqlite:///{ledger_file}") as ledger:
        assert ledger.facts.mend(lambda _: (fact,)) == (fact,)
        assert ledger.facts.all() == (fact,)
    assert len(stored(ledger_file, kind.table.name)) == 1


@each_kind
def test_its_line_in_the_chronicle_is_read_as_it_was_written(kind, tmp_path):
    fact = SAMPLES[kind.type]
    assert from_lines(to_lines([fact])) == (fact,)
    LakeChronicle(str(tmp_path))([fact])
    assert read_chronicle(str(tmp_path))[0] == (fact,)


@each_kind
def test_what_only_one_of_ledger_and_chronicle_has_the_other_lacks(kind):
    fact = SAMPLES[kind.type]
    assert missing_in_ledger((), LakeKnowledge((fact, fact), {})) == (fact,)
    assert missing_in_ledger((fact,), LakeKnowledge((fact, fact), {})) == ()
    assert missing_in_chronicle((fact,), ()) == (fact,)
    assert missing_in_chronicle((fact,), (fact,)) == ()


@each_kind
def test_a_compaction_leaves_its_last_line_as_long_as_the_ledger_has_it(kind):
    fact = SAMPLES[kind.type]
    told = {"monday": (fact, fact), "tuesday": (fact,)}
    assert still_told((fact,), told) == {"monday": (), "tuesday": (fact,)}
    assert still_told((), told) == {"monday": (), "tuesday": ()}


@each_kind
def test_people_are_told_how_much_of_it_differs(kind):
    fact = SAMPLES[kind.type]
    (differing,) = disagreements(Difference.ROW_MISSING, [fact, fact], {})
    assert (differing.subject, differing.count) == (kind.subject_of(fact), 2)
    assert differing.pipeline == (None if kind.where is None else "sales")
