"""What the JSON Schema of a pipeline file takes and refuses, beside what the loader does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.spec.samples import MISTAKES, VALID, edited
from tests.spec.test_reference import EXAMPLES, with_example

from stagehold.settings import PROJECT
from stagehold.spec.pipeline_schema import FILE, pipeline_schema, schema_text
from stagehold.spec.yaml import parse_document

SCHEMA = Draft202012Validator(pipeline_schema())
SAMPLES = [
    *Path(PROJECT, "include", "pipelines").glob("*.yaml"),
    *Path(PROJECT, "examples").rglob("pipelines/*.yaml"),
    *Path(PROJECT, "include", "stagehold", "local", "project").rglob("pipelines/*.txt"),
]
# What takes several fields, or the project's code, to see: one edit a line. Everything else the schema refuses, too.
BEYOND = Path(__file__).with_name("beyond_schema.txt").read_text(encoding="utf-8").splitlines()


def problems(data: Any) -> list[str]:
    return [f"{'.'.join(map(str, error.path))}: {error.message}" for error in SCHEMA.iter_errors(data)]


def as_text(data: Any) -> Any:
    """The data as editors see it: keys, of which `null` is one, and dates are texts."""
    if isinstance(data, Mapping):
        return {"null" if key is None else str(key): as_text(value) for key, value in data.items()}
    if isinstance(data, date):
        return str(data)
    return [as_text(value) for value in data] if isinstance(data, list | tuple) else data


def test_it_is_a_schema_and_in_the_package_and_the_docs_as_the_code_says_it():
    Draft202012Validator.check_schema(pipeline_schema())
    for written in (FILE, PROJECT / "docs" / "reference" / FILE.name):
        assert written.read_text(encoding="utf-8") == schema_text(), "run `make docs`"


@pytest.mark.parametrize("sample", SAMPLES, ids=[path.parent.parent.parent.name + path.name for path in SAMPLES])
def test_it_takes_every_sample(sample):
    assert problems(parse_document(sample.read_text(encoding="utf-8"), str(sample)).data) == []


@pytest.mark.parametrize(
    ("form", "name", "example"), EXAMPLES, ids=[f"{form.__name__}.{name}" for form, name, _ in EXAMPLES]
)
def test_it_takes_every_example_of_the_reference(form, name, example):
    declared = with_example(form, example)
    for stage in declared["stages"].values():
        if stage.get("job", "") is None:
            del stage["job"]
    assert problems(as_text(declared)) == []


@pytest.mark.parametrize("edit", [edit for edit, *_ in MISTAKES])
def test_what_the_loader_refuses_it_refuses_but_for_a_list_of_what_is_beyond_it(edit):
    document = parse_document(edited(edit), "revenue.yaml")
    refuses = bool(document.problems or problems(document.data))  # that it is no YAML, editors see by themselves
    assert refuses == (edit not in BEYOND), problems(document.data)


def test_the_list_has_nothing_that_is_no_mistake():
    assert set(BEYOND) < {edit for edit, *_ in MISTAKES}
    assert problems(parse_document(VALID, "revenue.yaml").data) == []


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("pipeline: p\nstages: {a: {sql: 'SELECT 1 x FROM b', inputs: {b: forward}}}", True),
        ("pipeline: p\nstages: {a: {sql: x.sql, inputs: {b: backward}}}", False),
        (
            "pipeline: p\nwave: '${vars.w}'\nstages: {a: {job: 'x:y', partitions: '${env.N}', airflow: '${vars.a}'}}",
            True,
        ),
        ("pipeline: p\nstages: {a: {job: 'x:y', partitions: '${lake}'}}", False),
        ("pipeline: p\nenv: [A]\nvars: {a: [1]}\nsecrets: [b]\nstages: {a: {job: 'x:y'}}", True),
        ("pipeline: p\nstages: {a: {job: 'x:y', output: {columns: {id: bigint, n: {type: int, null: false}}}}}", True),
        ("pipeline: p\nstages: {a: {job: 'x:y', output: {columns: {n: {typ: int}}}}}", False),
        ("pipeline: p\nfailures: [{error: 'builtins:KeyError', class: recoverable}]\nstages: {}", True),
        ("pipeline: p\nfailures: [{error: 'builtins:KeyError', class: fatal}]\nstages: {}", False),
        ("pipeline: p\non_failure: {notifier: 'a:B'}\nstages: {}", True),
        ("pipeline: p\non_failure: [{notify: 'a:B'}]\nstages: {}", False),
        ("pipeline: p\nstages: {a: {job: 'x:y', source: {kind: parquet, path: x, splits: {bytes: 64mb}}}}", True),
        ("pipeline: p\nstages: {a: {job: 'x:y', source: {kind: parquet, path: x, splits: {bytes: much}}}}", False),
        ("pipeline: p\nstages: {a: {job: 'x:y', source: {path: x, splits: {count: 4, assignment: dynamic}}}}", True),
        ("pipeline: p\nstages: {a: {job: 'x:y', source: {path: x, splits: {count: 4, assignment: mine}}}}", False),
        ("pipeline: p\ndeterminism: off\nreads: strict\nspark: {a: true, b: 3}\nparams:\nstages: {}", True),
        ("pipeline: p\nwave: 30\nstages: {}", False),
        ("stages: {}", False),
    ],
)
def test_it_knows_what_stands_for_what(text, taken):
    assert (problems(as_text(yaml.safe_load(text))) == []) == taken
