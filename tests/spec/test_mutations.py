"""Whatever is done to a valid file, it loads or is refused with problems that have a place; nothing else is raised."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.spec.samples import VALID, Project

from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

DOCUMENT = yaml.safe_load(VALID)
WORDS = [
    "forward",
    "keyed",
    "gather",
    "pipelined",
    "blocking_persistent",
    "orders",
    "joined",
    "top",
    "key",
    "exchange",
    "source",
    "work.jobs:top",
    "1s",
    "${lake}",
]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.dates(),
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), max_size=2),
    st.dictionaries(st.sampled_from(WORDS), st.sampled_from(WORDS), max_size=2),
)
TEXT_EDITS = st.sampled_from(
    [
        "",
        ":",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "'",
        '"',
        "&a ",
        "*a",
        "!!int ",
        "\t",
        "\n",
        "#",
        "@",
        "%",
        "? ",
        "\0",
        "é",
        "0",
        "null",
    ]
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with each key in it."""
    for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
        yield data, key
        if isinstance(value, dict | list):
            yield from places(value)


def accepted(pipeline: Pipeline) -> None:
    """What a loaded pipeline promises to those who use it."""
    seen: set[str] = set()
    for stage in pipeline.stages:
        assert {edge.stage for edge in stage.inputs} <= seen
        assert 1 <= stage.partitions <= stage.max_parallelism
        seen.add(stage.name)


def lines_exist(error: InvalidSpec, text: str) -> None:
    assert all(1 <= problem.line <= text.count("\n") + 2 for problem in error.problems)


def refused(error: InvalidSpec) -> None:
    assert error.problems
    assert all(problem.field and problem.given and problem.allowed for problem in error.problems)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.randoms(use_true_random=False), values=st.lists(ODD, min_size=1, max_size=4))
def test_values_replaced_removed_and_moved(project: Project, seed: random.Random, values: list[Any]) -> None:
    document = copy.deepcopy(DOCUMENT)
    for value in values:
        container, key = seed.choice(list(places(document)) or [(document, "pipeline")])
        match seed.randrange(4):
            case 0:
                container[key] = value
            case 1:
                del container[key]
            case 2 if isinstance(container, dict):
                container[seed.choice(WORDS)] = container.pop(key)
            case _:
                other, place = seed.choice(list(places(document)))
                other[place] = copy.deepcopy(container[key])
    try:
        accepted(build_pipeline(document, project=project.root, suites=project.suites))
    except InvalidSpec as error:
        refused(error)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.tuples(st.integers(0, len(VALID)), st.integers(0, 6), TEXT_EDITS), min_size=1, max_size=3))
def test_characters_replaced_and_removed(project: Project, edits: list[tuple[int, int, str]]) -> None:
    text = VALID
    for start, length, new in edits:
        text = text[:start] + new + text[start + length :]
    try:
        accepted(project.load(text))
    except InvalidSpec as error:
        refused(error)
        lines_exist(error, text)
