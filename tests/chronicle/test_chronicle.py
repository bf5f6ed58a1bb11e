"""What the ledger decides by is in the lake before it is in the ledger, and comes back as it was."""

from __future__ import annotations

from datetime import UTC, datetime

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.chronicle.chronicle import LakeChronicle, read_chronicle
from stagehold.lake.store.files import files_at
from stagehold.ledger.fact_lines import from_lines, to_lines
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Acceptance, Waiver
from stagehold.model.records import (
    Attempt,
    Cell,
    Fact,
    GateResult,
    PartitionCount,
    PartitionRecord,
    Restore,
    Run,
    RunState,
    TakenPosition,
)

pytestmark = pytest.mark.slow

NOW = datetime(2026, 3, 2, 3, 4, 5, 678, tzinfo=UTC)
RUN = Run("r1", "nightly", "2026-03-01", "cli", RunState.CREATED, NOW, params={"limit": 3})
WORD = Acceptance("nightly", None, "orders", "old", "new", "me", "a comment, \u2028 and more", NOW)
st.register_type_strategy(datetime, st.datetimes(timezones=st.just(UTC)))
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
anything = st.text(st.characters()) | st.just("a lone \udc80")  # as in an error about a file's name
st.register_type_strategy(str, anything)
params = st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()))
labels = st.dictionaries(st.text(), st.text())  # the ledger stores them as PostgreSQL takes them
others = (PartitionRecord, GateResult, TakenPosition, PartitionCount, Acceptance, Waiver, Restore)
facts = st.one_of(st.builds(Run, params=params), st.builds(Attempt, labels=labels), *map(st.from_type, others))


@pytest.fixture(params=["tmp_path", "s3_lake"])
def lake(request) -> str:
    return str(request.getfixturevalue(request.param))


@given(st.lists(facts, max_size=5))
def test_every_fact_comes_back_as_it_was(told: list[Fact]):
    assert from_lines(to_lines(told)) == tuple(told)


def test_facts_are_read_in_the_order_in_which_they_were_told(lake):
    for number in range(5):
        LakeChronicle(lake)([PartitionCount(Cell("p", "s", str(number)), number, 10, NOW), WORD])
    told = [fact for fact in read_chronicle(lake)[0] if isinstance(fact, PartitionCount)]
    assert [fact.partitions for fact in told] == [0, 1, 2, 3, 4]


def test_an_empty_lake_has_no_chronicle(lake):
    assert read_chronicle(lake)[0] == ()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda content: content[:-9], "checksum"),
        (lambda content: content.replace(b"r1", b"r2"), "checksum"),
        (lambda content: content.replace(b": 1,", b": 2,", 1), "its format is 2; this Stagehold knows format 1"),
        (lambda content: b"", "Expecting value"),
        (lambda content: b"[]\n", "does not begin as"),
        (lambda content: b"\xff\xfe" + content, "decode"),
    ],
)
def test_a_torn_file_is_named_and_not_used(tmp_path, change, problem):
    LakeChronicle(str(tmp_path))([WORD])
    files_at(str(tmp_path)).create("ledger/2026-03-02/030405-x.jsonl", change(to_lines([RUN])))
    facts, torn = read_chronicle(str(tmp_path))
    assert facts == (WORD,)
    assert [(file.path, problem in file.problem) for file in torn] == [("ledger/2026-03-02/030405-x.jsonl", True)]


def test_the_facts_of_a_transaction_are_one_file_that_is_there_before_it_is_committed(tmp_path):
    seen: list[tuple[Fact, ...]] = []

    def keep(facts):
        LakeChronicle(str(tmp_path / "lake"))(facts)
        with Ledger.open(ledger_url) as other:
            seen.append(other.acceptances.of("nightly"))

    ledger_url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(ledger_url, chronicle=keep) as ledger:
        with ledger.together():
            ledger.runs.create(RUN)
            ledger.acceptances.record([WORD])
        assert ledger.acceptances.of("nightly") == (WORD,)
    assert seen == [()]
    assert read_chronicle(str(tmp_path / "lake"))[0] == (RUN, WORD)


def test_nothing_is_in_the_ledger_that_could_not_be_chronicled(tmp_path):
    def fail(facts):
        raise OSError("no space left on device")

    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", chronicle=fail) as ledger:
        with pytest.raises(OSError, match="no space left"):
            ledger.acceptances.record([WORD])
        assert ledger.acceptances.of("nightly") == ()


def test_a_lake_that_takes_nothing_stops_who_builds_on_it_and_nobody_who_says_that_something_ended(tmp_path, caplog):
    (tmp_path / "lake").write_text("a file is in the way")
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", chronicle=LakeChronicle(str(tmp_path / "lake"))) as ledger:
        ledger.runs.create(RUN)
        assert ledger.runs.get("r1").state is RunState.CREATED
        assert "does not know yet" in caplog.text
        with pytest.raises(NotADirectoryError):
            ledger.acceptances.record([WORD])
        assert ledger.acceptances.of("nightly") == ()


def test_duckdb_reads_the_chronicle(tmp_path):
    LakeChronicle(str(tmp_path))([RUN, WORD])
    query = f"SELECT kind, count(*) FROM read_json('{tmp_path}/ledger/*/*.jsonl', union_by_name = true) GROUP BY ALL"
    assert set(duckdb.sql(query).fetchall()) == {(None, 1), ("run", 1), ("acceptance", 1)}
