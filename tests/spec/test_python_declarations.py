"""Pipelines declared in Python say what their files in YAML would say, and are checked alike."""

from __future__ import annotations

import compileall
import sys
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given, settings
from tests.unseen_edits import edit_unseen

from stagehold import Pipeline, Stage
from stagehold.errors import InvalidSpec, UnknownName
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline, find_pipeline, load_each_pipeline

JOBS = "from stagehold import stage\n@stage\ndef orders(ctx, source): ...\n@stage\ndef totals(ctx, **frames): ...\n"
SALES = """\
from stagehold import Pipeline, Stage

from shapes import orders, path
from jobs.work import totals

SPLITS = {"splits": 4}
for country in ("de", "fr"):
    Pipeline(
        f"sales_{country}",
        schedule="@daily",
        params={"country": country},
        stages={
            "orders": orders(country),
            "totals": Stage(
                job=totals,
                inputs={"orders": {"exchange": "keyed", "key": "id"}},
                partitions=2,
            ),
            "again": Stage(extends="totals", partitions=3),
        },
    )
"""
SHAPES = """\
from stagehold import Stage

def path(country):
    return f"${{lake}}/{country}/*.parquet"

def orders(country):
    return Stage(job="jobs.work:orders", source={"kind": "parquet", "path": path(country), "splits": 4})
"""


class Project:
    def __init__(self, root: Path) -> None:
        self.root, self.pipelines = root, root / "include" / "pipelines"
        self.pipelines.mkdir(parents=True)
        (root / "jobs").mkdir()
        (root / "jobs" / "work.py").write_text(JOBS)
        (root / "shapes.py").write_text(SHAPES)
        self.settings = Settings(
            home=str(root / "home"), project=str(root), pipelines=str(self.pipelines), suites=str(root / "suites")
        )

    def write(self, text: str, name: str = "sales.py") -> None:
        (self.pipelines / name).write_text(text)

    def problems(self) -> list[tuple[int, str, str]]:
        (refused,) = [each for each in load_each_pipeline(self.settings) if isinstance(each, InvalidSpec)]
        return [(each.line, each.field, f"{each.given}; allowed: {each.allowed}") for each in refused.problems]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_file_of_python_declares_pipelines_that_are_found_where_those_of_yaml_are(project):
    project.write(SALES)
    project.write("print('no pipeline')\nraise SystemExit\n", "notes.py")
    assert [each.name for each in load_each_pipeline(project.settings)] == ["sales_de", "sales_fr"]
    found = find_pipeline("sales_fr", project.settings)
    assert found.file == str(project.pipelines / "sales.py")
    assert found.stage("orders").source.path == "${lake}/fr/*.parquet"
    assert [(stage.job, stage.partitions) for stage in found.stages][1:] == [
        *(("jobs.work:totals", 2), ("jobs.work:totals", 3)),
    ]
    with pytest.raises(UnknownName, match="sales_de, sales_fr"):
        find_pipeline("sales_dk", project.settings)


def test_what_a_file_imports_is_imported_anew_and_leaves_nothing_behind(project):
    project.write(SALES)
    before = dict(sys.modules)
    load_each_pipeline(project.settings)
    assert "shapes" not in sys.modules
    assert str(project.root) not in sys.path
    (project.root / "shapes.py").write_text(SHAPES.replace("{country}/*", "{country}/raw/*"))
    found = find_pipeline("sales_de", project.settings)
    assert found.stage("orders").source.path == "${lake}/de/raw/*.parquet"
    assert {name for name in set(sys.modules) - set(before) if not name.startswith("stagehold")} == set()


def test_an_edit_of_what_a_file_imports_counts_though_no_time_tells_of_it(project):
    project.write(SALES)
    load_each_pipeline(project.settings)
    assert compileall.compile_dir(project.root, quiet=2)
    edit_unseen(project.root / "shapes.py", "{country}/*", "{country}?*")
    found = find_pipeline("sales_de", project.settings)
    assert found.stage("orders").source.path == "${lake}/de?*.parquet"


def test_what_a_file_imports_may_lie_in_src(project):
    (project.root / "src").mkdir()
    for name in ("shapes.py", "jobs"):
        (project.root / name).rename(project.root / "src" / name)
    project.write(SALES)
    assert [stage.job for stage in find_pipeline("sales_de", project.settings).stages] == [
        "jobs.work:orders",
        *["jobs.work:totals"] * 2,
    ]
    assert "shapes" not in sys.modules
    assert str(project.root / "src") not in sys.path


MISTAKES = [
    (("partitions=2", "partitions='two'"), 17, "stages.totals.partitions", "'two'; allowed: a whole number"),
    (("partitions=2", "partitons=2"), 17, "stages.totals.partitons", "did you mean partitions?"),
    (('"key": "id"', '"keys": "id"'), 16, "stages.totals.inputs.orders.keys", "did you mean key?"),
    (('schedule="@daily"', 'schedule="@dayly"'), 10, "schedule", "a cron expression or @once"),
    (('extends="totals"', 'extends="totels"'), 19, "stages.again.extends", "did you mean totals?"),
    (("orders(country)", "Stage(**{'job': 'jobs.work:nobody'})"), 13, "stages.orders.job", "nobody"),
    (
        ("for country in", "1 / 0\nfor country in"),
        7,
        "file",
        "ZeroDivisionError: division by zero; allowed: Python that",
    ),
    (("SPLITS = {", "SPLITS = {{"), 6, "file", "SyntaxError"),
    (("import totals", "import nothing"), 4, "file", "ImportError: cannot import name 'nothing'"),
]


@pytest.mark.parametrize(("edit", "line", "field", "text"), MISTAKES)
def test_a_mistake_is_told_with_the_line_of_its_argument(project, edit, line, field, text):
    text_of_file = SALES.replace('("de", "fr")', '("de",)').replace(*edit)
    assert text_of_file != SALES
    project.write(text_of_file)
    found = [problem for problem in project.problems() if problem[1] == field]
    assert [problem[0] for problem in found][:1] == [line]
    assert text in found[0][2]


def test_a_mistake_in_a_stage_of_another_file_is_told_where_it_is_put_into_the_pipeline(project):
    (project.root / "shapes.py").write_text(SHAPES.replace('"splits": 4', '"splits": -4'))
    project.write(SALES.replace('("de", "fr")', '("de",)'))
    assert (13, "stages.orders.source.splits") in [problem[:2] for problem in project.problems()]


def test_a_query_in_a_file_of_python_is_refused_with_what_to_write(project):
    project.write(SALES.replace("job=totals", 'sql="SELECT * FROM orders"').replace('("de", "fr")', '("de",)'))
    assert any(field == "stages.totals.sql" and "a file of SQL" in text for _, field, text in project.problems())


def test_a_name_that_a_file_of_yaml_has_is_taken(project):
    project.write(SALES)
    pipeline = {"pipeline": "sales_de", "stages": {"a": {"job": "jobs.work:orders", "source": {"kind": "parquet"}}}}
    pipeline["stages"]["a"]["source"] |= {"path": "x", "splits": 1}
    project.write(yaml.safe_dump(pipeline), "sales_de.yaml")
    refused = [each for each in load_each_pipeline(project.settings) if isinstance(each, InvalidSpec)]
    assert "'sales_de', which" in str(refused[0])
    assert find_pipeline("sales_de", project.settings).file.endswith("sales_de.yaml")


NAMES = st.sampled_from(["orders", "returns", "totals", "by_day", "last"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab: -#'\"ü{}\n", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)
PARAMS = st.dictionaries(st.text("abc", min_size=1, max_size=3), VALUES, max_size=3)


@st.composite
def declarations(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    stages: dict[str, Any] = {}
    for place, name in enumerate(names):
        stages[name] = {"job": "jobs.work:orders", "params": draw(PARAMS)}
        if place == 0 or draw(st.booleans()):
            stages[name]["source"] = {
                "kind": "parquet",
                "path": "${lake}/x/*.parquet",
                "splits": draw(st.integers(1, 9)),
            }
        else:
            keyed = {"exchange": "keyed", "key": draw(st.sampled_from(["id", ["id", "day"]]))}
            edge = draw(st.sampled_from(["gather", "broadcast", keyed]))
            stages[name] |= {"job": "jobs.work:totals", "inputs": {draw(st.sampled_from(names[:place])): edge}}
            stages[name] |= {"partitions": draw(st.integers(1, 9))} if edge is keyed else {}
    wave = draw(st.sampled_from(["30s", "auto"]))
    return {"pipeline": "made", "schedule": "@daily", "wave": wave, "params": draw(PARAMS), "stages": stages}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "jobs").mkdir()
    (folder / "jobs" / "work.py").write_text(JOBS)
    return folder


def outcome(declaration: Any, folder: Path) -> Any:
    try:
        return build_pipeline(declaration, project=folder, suites=folder)
    except InvalidSpec as error:
        return sorted((problem.field, problem.given, problem.allowed) for problem in error.problems)


@settings(max_examples=60, deadline=None)
@given(declarations())
def test_python_and_yaml_say_the_same(jobs, declared):
    fields = {name: value for name, value in declared.items() if name not in ("pipeline", "stages")}
    stages = {name: Stage(**stage) for name, stage in declared["stages"].items()}
    pipeline = Pipeline(declared["pipeline"], **fields, stages=stages)
    assert pipeline.declaration == declared
    assert yaml.safe_load(pipeline.to_yaml()) == declared
    again = eval(repr(pipeline), {"Pipeline": Pipeline, "Stage": Stage})
    assert again.declaration == declared
    assert outcome(again.declaration, jobs) == outcome(declared, jobs)
