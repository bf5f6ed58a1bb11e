"""A few of the hostile cases that `make hostile` makes by the thousand, and those that were wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fuzz.hostile.cases import BOMB, KINDS, Outcome, Target, good_manifest, spec

from stagehold.errors import InvalidSpec
from stagehold.gates.suite_files import load_suite
from stagehold.lake.checkpoints.manifest import decode_manifest
from stagehold.spec.loading.loader import load_pipeline

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_hostile_is_read_or_refused_in_words_and_no_file_is_written(
    tmp_path, kind: Callable[[Target, str], Outcome]
) -> None:
    target = Target.make(tmp_path)
    outcomes = [kind(target, f"test/{number}") for number in range(40)]
    assert [(each.wrong, each.given[:200]) for each in outcomes if each.wrong] == []
    assert {each.word for each in outcomes} >= {"refused"}


def test_a_case_follows_from_its_seed(tmp_path) -> None:
    one, other = Target.make(tmp_path / "a"), Target.make(tmp_path / "b")
    assert spec(one, "7").given == spec(other, "7").given != spec(one, "8").given


def test_what_the_cases_begin_with_is_good() -> None:
    assert decode_manifest(good_manifest(), 1, "x").stages


@pytest.mark.parametrize("text", ["{}", "# nothing", "suite: {}", "expectations: []"])
def test_a_suite_in_which_nothing_is_said_is_refused_with_what_is_missing(tmp_path, text) -> None:
    file = Target.make(tmp_path).put("suites/hostile.yaml", text.encode())
    with pytest.raises(InvalidSpec, match=r"expectations|a mapping of fields"):
        load_suite(file, tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BOMB, "values, aliases included"),
        ('pipeline: "\\ud800"', "halves of characters"),
        ('"\\ud800": x', "a key on line 1 that is no text"),
    ],
)
def test_a_file_of_endless_aliases_or_half_characters_is_refused(tmp_path, text, told) -> None:
    target = Target.make(tmp_path)
    file = target.put("pipelines/hostile.yaml", text.encode())
    with pytest.raises(InvalidSpec, match=told):
        load_pipeline(file, project=target.project, suites=target.project)
