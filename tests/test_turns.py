from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import turns
from tests.turns import dealt, together

from stagehold.settings import PROJECT

MANY = st.dictionaries(st.text(min_size=1), st.floats(1.0, 200.0), max_size=60)


@given(seconds=MANY, within=st.floats(1.0, 1000.0))
def test_every_test_is_in_one_turn_and_none_is_longer_than_it_may_be_but_by_one_test(seconds, within) -> None:
    hands = dealt(seconds, within)
    assert sorted(name for hand in hands for name in hand) == sorted(seconds)
    longest = max(seconds.values(), default=0.0)
    assert all(sum(seconds[name] for name in hand) <= within + longest for hand in hands)


def test_what_is_dealt_does_not_depend_on_the_order_of_collection() -> None:
    seconds = {f"test_{number}": float(number % 7 + 1) for number in range(50)}
    assert dealt(seconds, 40.0) == dealt(dict(reversed(seconds.items())), 40.0)


@given(seconds=st.lists(st.integers(5, 900).map(lambda tenths: tenths / 10), min_size=1), order=st.randoms())
def test_the_seconds_of_a_story_do_not_depend_on_the_order_in_which_its_chapters_are_met(seconds, order) -> None:
    known = {f"test_story.py::test_{number}": took for number, took in enumerate(seconds)}
    shuffled = order.sample(sorted(known), len(known))
    assert together(dict.fromkeys(known, "story"), known) == {"story": math.fsum(seconds)}
    assert together(dict.fromkeys(shuffled, "story"), {name: known[name] for name in shuffled}) == together(
        dict.fromkeys(known, "story"), known
    )


def test_two_processes_with_other_hashes_leave_out_the_same(suite) -> None:
    story = """\
import pytest

pytestmark = pytest.mark.one_story

@pytest.mark.parametrize("chapter", range(3))
def test_chapter(chapter): ...
"""
    seconds = {}
    for number in range(6):
        Path(suite, f"test_story_{number}.py").write_text(story)
        chapters = [0.1, 0.2, 0.3][number % 3 :] + [0.1, 0.2, 0.3][: number % 3]
        seconds |= {f"test_story_{number}.py::test_chapter[{at}]": took for at, took in enumerate(chapters)}
    Path(suite, "pytest.ini").write_text("[pytest]\nmarkers =\n  in_each_turn\n  one_story\n")
    Path(suite, "tests", "seconds.json").write_text(json.dumps(seconds))
    turns = [passed(suite, "--within", "1.2", "--turn", "0", hashes=str(number))[0] for number in range(3)]
    assert [turn ^ turns[0] for turn in turns] == [set()] * 3


SUITE = """\
import pytest

@pytest.mark.parametrize("number", range(6))
def test_long(number): ...

@pytest.mark.in_each_turn
def test_promise(): ...

def test_new(): ...
"""
LONG = {f"test_it.py::test_long[{number}]": 10.0 for number in range(6)} | {"test_it.py::test_promise": 10.0}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    Path(tmp_path, "test_it.py").write_text(SUITE)
    Path(tmp_path, "tests", "__init__.py").touch()
    Path(tmp_path, "tests", "turns.py").write_text(Path(turns.__file__).read_text())
    Path(tmp_path, "tests", "seconds.json").write_text(json.dumps(LONG))
    Path(tmp_path, "pytest.ini").write_text("[pytest]\nmarkers = in_each_turn\n")
    return tmp_path


def passed(suite: Path, *words: str, hashes: str = "random") -> tuple[set[str], str]:
    command = [sys.executable, "-m", "pytest", "-p", "tests.turns", "-p", "no:cacheprovider", "-rp", "-q", *words]
    alone = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # what other plugins import takes longer than the tests
        "PYTHONHASHSEED": hashes,
    }
    answer = subprocess.run(command, cwd=suite, capture_output=True, text=True, timeout=60, check=False, env=alone)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return {line.split()[1] for line in answer.stdout.splitlines() if line.startswith("PASSED ")}, answer.stdout


@pytest.mark.parametrize("processes", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "two processes"])
def test_turns_together_are_all_tests_and_each_has_what_is_new_or_promised(suite, processes) -> None:
    each = [passed(suite, "--within", "20", "--turn", str(number), *processes)[0] for number in range(3)]
    assert [len(turn) for turn in each] == [4, 4, 4]
    assert set.intersection(*each) == {"test_it.py::test_promise", "test_it.py::test_new"}
    assert set.union(*each) == {*LONG, "test_it.py::test_new"}


def test_a_turn_says_how_to_have_it_again_and_one_of_a_tree_without_commits_is_the_first(suite) -> None:
    assert "this was TURN=0; TURN=all runs all" in passed(suite, "--within", "20")[1]


def test_all_are_run_and_what_they_took_is_kept_without_those_of_files_that_are_gone(suite) -> None:
    known = suite / "tests" / "seconds.json"
    known.write_text(json.dumps(LONG | {"test_gone.py::test_it": 5.0}))
    Path(suite, "test_other.py").write_text("import time\n\ndef test_slow():\n    time.sleep(1.1)\n")
    assert len(passed(suite, "--within", "20", "--turn", "all")[0]) == 9
    assert json.loads(known.read_text()).keys() == {"test_other.py::test_slow"}


def test_tests_that_go_on_from_each_other_take_turns_together(suite) -> None:
    story = """\
import pytest

pytestmark = pytest.mark.one_story

@pytest.mark.parametrize("chapter", range(4))
def test_chapter(chapter): ...
"""
    Path(suite, "test_story.py").write_text(story)
    Path(suite, "pytest.ini").write_text("[pytest]\nmarkers =\n  in_each_turn\n  one_story\n")
    chapters = [f"test_story.py::test_chapter[{number}]" for number in range(4)]
    Path(suite, "tests", "seconds.json").write_text(json.dumps(LONG | dict.fromkeys(chapters[:3], 10.0)))
    turns = [passed(suite, "--within", "20", "--turn", str(number))[0] for number in range(5)]
    assert [len({*chapters} & turn) for turn in turns if {*chapters} & turn] == [4]


def test_what_is_known_to_be_long_is_of_tests_that_are_there() -> None:
    names = json.loads(turns.KNOWN.read_text())
    assert not [name for name in names if not Path(PROJECT, name.split("::")[0]).exists()]
