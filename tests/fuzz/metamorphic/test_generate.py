"""The generator itself, with DuckDB alone:
what it makes up can be said in both languages, and what it calls keyed is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import duckdb
import pytest
from fuzz.metamorphic.algebra import Given
from fuzz.metamorphic.answers import multiset
from fuzz.metamorphic.case import SOURCES, Case, Trap, Variant
from fuzz.metamorphic.generate import generate, generate_runnable, generate_with
from fuzz.metamorphic.habits.drawing import FAMILIES
from fuzz.metamorphic.shrink import legal
from fuzz.metamorphic.source_data import TABLES

pytestmark = pytest.mark.slow

SEED = 3
CASES = range(150)
MANY = range(2500)
PLACES = ("source left", "source right", "forward of files", "keyed", "keyed second", "forward second", "gather second")
# What makes other columns than it is given cannot stand where a stage gives what it reads.
OF_KEYS = {"AggregateByName", "JoinByName"}
ONE = (Variant("a", 5, waves_of_one=False),)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for table in TABLES:
        table.write(folder, Random(SEED))
    return folder


@pytest.fixture(scope="module")
def connection():
    made = duckdb.connect()
    made.execute("SET TimeZone = 'UTC'")
    return made


def answer(connection, sql, names):
    return multiset(connection.sql(sql).to_arrow_table(), names)


def test_a_seed_gives_the_same_cases_again_and_a_few_are_traps_or_loose():
    cases = [generate(SEED, number) for number in CASES]
    assert cases == [generate(SEED, number) for number in CASES]
    assert 5 <= sum(case.trap is not None for case in cases) <= 45
    assert 10 <= sum(case.loose for case in cases) <= 60
    assert {case.trap for case in cases} >= set(Trap)


def test_two_thirds_of_the_cases_have_habits_and_each_habit_comes_in_each_place():
    cases = [generate(SEED, number) for number in MANY]
    assert sum(bool(case.habits) for case in cases) >= len(cases) * 2 / 3
    found = {(place, habit.family) for case in cases for place, habit in case.habits}
    for place in PLACES:
        missing = {family for family in FAMILIES if (place, family) not in found}
        assert missing <= (OF_KEYS if place != "keyed" else set()), f"{place} never has {missing}"
    fused = {case.flow.first for case in cases if case.second} | {case.flow.before for case in cases if case.before}
    assert {"pipelined", "pipelined_bounded", "blocking"} <= fused
    assert {1, 2, 3} == {case.flow.tasks for case in cases}


def test_each_way_to_spell_a_habit_is_drawn():
    found = {spelling for number in MANY for _, habit in generate(SEED, number).habits for spelling in habit.spelling}
    possible = {spelling for family in FAMILIES.values() for spelling in family.spellings()}
    assert found >= possible, possible - found


def test_a_runnable_case_can_be_asked_to_have_a_habit():
    for family in FAMILIES:
        case = generate_with(SEED, 7, family)
        assert family in {habit.family for _, habit in case.habits}
        assert case.comparable
        assert case.trap is None


def test_every_case_can_be_said_in_python_and_in_duckdbs_sql(rows, connection):
    empty = 0
    for number in CASES:
        case = generate(SEED, number)
        case.check()
        compile(case.module(ONE), case.name, "exec")
        assert set(case.stages(ONE, rows)) == {stage.split(":")[1] for stage in jobs(case, rows)}
        table = connection.sql(case.sql(rows)).to_arrow_table()
        assert tuple(table.column_names) == case.names
        empty += table.num_rows == 0
    assert empty < len(CASES) / 10


def jobs(case, rows):
    return [stage["job"] for stage in case.stages(ONE, rows).values()]


def only(number: int, groups: int, case: Case, scans: dict[str, str]) -> dict[str, str]:
    """The rows of some keys. Text is what equal keys of like types share, but for the sign of zero."""
    found = dict(scans)
    for side, key in case.keys.items():
        text = " || '/' || ".join(
            f"coalesce(CAST(CASE WHEN {name} = {name} THEN {name} END AS varchar), 'nothing')" for name in key
        )
        plain = f"hash(replace({text}, '-0.0', '0.0')) % {groups} = {number}"
        found[side] = f"SELECT * FROM ({scans[side]}) WHERE {plain}"
    return found


def test_what_is_called_keyed_makes_the_same_of_all_keys_at_once_and_of_some_at_a_time(rows, connection):
    groups, parts = 4, 0
    for number in CASES[::3]:
        case = generate_runnable(SEED, number)
        scans = {name: table.scan(rows) for name, table in SOURCES.items()}
        whole = answer(connection, case.first.sql(scans), case.first.names)
        apart = [
            answer(connection, case.first.sql(only(one, groups, case, scans)), case.first.names)
            for one in range(groups)
        ]
        assert sum(apart, Counter()) == whole, case.text()
        parts += sum(bool(some) for some in apart) > 1
    assert parts > len(CASES[::3]) / 2


def test_leaving_operators_out_gives_smaller_legal_cases(rows, connection):
    smaller = [one for number in CASES for one in legal(generate(SEED, number))]
    assert len(smaller) > len(CASES)
    for case in smaller[::10]:
        compile(case.module(ONE), case.name, "exec")
        connection.sql(case.sql(rows)).fetchall()


def test_a_case_without_its_second_side_does_not_read_it(rows):
    case = generate_runnable(SEED, 0)
    left = Given("left", SOURCES["left"].columns, (frozenset(case.keys["left"]),))
    alone = replace(case, first=left, key=case.keys["left"], second=None)
    assert alone.inputs == ("left",)
    assert "right_rows" not in alone.stages(ONE, rows)
