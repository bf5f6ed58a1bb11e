"""The reference is what the code says now, and each of its examples is one that the loader takes."""

from __future__ import annotations

from inspect import get_annotations
from pathlib import Path

import pytest
import yaml

from stagehold.settings import PROJECT
from stagehold.spec.form import PipelineForm, StageForm
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Input, InputForm, OutputForm, Pipeline, Stage
from stagehold.spec.reference import SECTIONS, fields_of, reference
from stagehold.spec.settings.airflow_settings import DagSettings, Hook, NotifierDeclaration, ScheduleForm, TaskSettings
from stagehold.spec.settings.launch_settings import Resources
from stagehold.spec.settings.output_settings import ColumnForm, StateForm
from stagehold.spec.settings.reads import ReadsForm
from stagehold.spec.settings.restart import FailureDeclaration, RestartSettings
from stagehold.spec.settings.run_settings import CancellationSettings, CheckpointSettings, Speculation
from stagehold.spec.settings.source import Source, SourceForm

JOBS = """
from stagehold import stage

@stage
def orders(ctx, source): ...

@stage
def totals(ctx, orders): ...

def publish(ctx): ...
"""
# Where each form stands.
PLACES = {
    PipelineForm: (),
    StageForm: ("stages", "totals"),
    InputForm: ("stages", "totals", "inputs", "orders"),
    SourceForm: ("stages", "orders", "source"),
    OutputForm: ("stages", "totals", "output"),
    ColumnForm: ("stages", "totals", "output", "columns", "customer"),
    StateForm: ("stages", "totals", "state", "sums"),
    ReadsForm: ("stages", "totals", "reads"),
    CancellationSettings: ("cancellation",),
    CheckpointSettings: ("checkpoint",),
    TaskSettings: ("stages", "totals", "airflow"),
    DagSettings: ("airflow",),
    Resources: ("resources",),
    RestartSettings: ("restart",),
    ScheduleForm: ("schedule",),
    FailureDeclaration: ("failures",),
    NotifierDeclaration: ("on_failure",),
    Speculation: ("speculation",),
}
EXAMPLES = [(form, name, example) for form in SECTIONS.values() for name, *_, example in fields_of(form)]


def totals():
    return {"job": "jobs.sales:totals", "inputs": {"orders": {"exchange": "keyed", "key": "customer"}}, "partitions": 4}


def declaration():
    source = {"kind": "parquet", "path": "${lake}/orders", "splits": 4}
    stages = {"orders": {"job": "jobs.sales:orders", "source": source}, "totals": totals(), "others": totals()}
    return {"pipeline": "sales", "secrets": ["api_token"], "launcher": "submit", "stages": stages}


def with_example(form, example):
    """The declaration with the example in its place, and what that does not make sense without."""
    declared, given = declaration(), yaml.safe_load(f"{{{example}}}")
    stages = declared["stages"]
    if form is FailureDeclaration:
        return {**declared, "failures": [given]}
    if form is Speculation or "speculation" in given:
        stages["totals"]["max_parallel_tasks"] = 2
    if form is InputForm and isinstance(given.get("key"), list):
        stages["totals"]["key"] = given["key"]
    if form is StateForm or "state" in given:
        declared["schedule"] = "@daily"
    if form is StateForm and given.get("kind") != "split":
        stages["totals"]["state"] = {"sums": {"key": "customer", "columns": {"customer": "bigint"}}}
    elif form is StateForm:
        stages["totals"]["state"] = {"sums": {"columns": {"customer": "bigint"}}}
    stages["others"] |= given if "co_location" in given else {}
    if form is SourceForm and "kind" in given:
        del stages["orders"]["source"]
    place = declared
    if "script" in given:
        stages["orders"]["source"]["splits"] = 1
    for part in ("stages", "orders") if form is StageForm and {"source", "script"} & {*given} else PLACES[form]:
        place = place.setdefault(part, {})
    place |= {"type": "bigint"} if form is ColumnForm else {}
    place.update({**given, "job": None} if {"sql", "script"} & {*given} else given)
    return declared


@pytest.mark.parametrize(
    ("form", "name", "example"), EXAMPLES, ids=[f"{form.__name__}.{name}" for form, name, _ in EXAMPLES]
)
def test_each_example_has_its_field_and_is_taken_by_the_loader(form, name, example, tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "sales.py").write_text(JOBS)
    (tmp_path / "jobs" / "alerts.py").write_text("def tell(context): ...\n")
    (tmp_path / "jobs" / "shop_api.py").write_text("class Orders(Shop): ...\n")
    (tmp_path / "jobs" / "old_job.py").write_text("print('done')\n")
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "clean.sql").write_text("SELECT * FROM orders")
    (tmp_path / "totals.yaml").write_text("suite: totals\nexpectations: []\n")
    assert (None if name == "null" else name) in yaml.safe_load(f"{{{example}}}")
    pipeline = build_pipeline(with_example(form, example), project=tmp_path, suites=tmp_path)
    assert pipeline.name == "sales"


def test_the_page_is_current():
    written = (PROJECT / "docs" / "reference" / "pipeline.md").read_text(encoding="utf-8")
    assert written == reference(), "run `make docs`"


def test_every_form_is_in_the_reference():
    assert set(PLACES) == {*SECTIONS.values()}
    assert Path(PROJECT, "README.md").read_text(encoding="utf-8").count("docs/reference/pipeline.md") == 1


@pytest.mark.parametrize(
    ("form", "spec", "twice"),
    [
        (PipelineForm, Pipeline, {"failures", "schedule", "stages", *Hook}),
        (StageForm, Stage, {"job", "source", "inputs", "partitions", "max_parallelism"}),
        (InputForm, Input, set()),
        (SourceForm, Source, {"kind", "splits", "ddl"}),
    ],
)
def test_a_field_is_declared_once_unless_it_is_read_otherwise_than_it_is_kept(form, spec, twice):
    assert set(get_annotations(form)) & set(get_annotations(spec)) == twice
