"""What a stage may say of what its function reads beside its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import build_pipeline, load_pipeline
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.reads import Reads, Undeclared

JOBS = "def orders(ctx, source): ...\ndef totals(ctx, orders): ...\n"


def build(folder: Path, reads: object = None, of_pipeline: Mapping[str, str] | None = None) -> Pipeline:
    (folder / "work.py").write_text(JOBS)
    source = {"kind": "parquet", "path": "x", "splits": 2}
    orders = {
        "job": "work:orders",
        "source": source,
        "output": {"type": "blocking_persistent", "table": "marts.orders"},
    }
    totals = {"job": "work:totals", "inputs": {"orders": "gather"}, **({} if reads is None else {"reads": reads})}
    return build_pipeline(
        {"pipeline": "small", "stages": {"orders": orders, "totals": totals}, **(of_pipeline or {})},
        project=folder,
        suites=folder,
    )


@pytest.mark.parametrize(
    ("reads", "of_pipeline", "expected"),
    [
        pytest.param(None, None, Reads(), id="nothing is declared, and what is not is told"),
        pytest.param(None, "strict", Reads(undeclared=Undeclared.STRICT), id="the pipeline's word"),
        pytest.param("warn", "strict", Reads(), id="a stage's word wins"),
        pytest.param("strict", None, Reads(undeclared=Undeclared.STRICT), id="a bare word"),
        pytest.param({"env": "RATE"}, None, Reads(env=("RATE",)), id="one name"),
        pytest.param(
            {"env": ["RATE", "LAND", "RATE"], "files": ["a.csv"], "tables": ["marts.t", "/x/t"]},
            "strict",
            Reads(("RATE", "LAND"), ("a.csv",), ("marts.t", "/x/t"), Undeclared.STRICT),
            id="each name once, and the pipeline's word for the rest",
        ),
        pytest.param(
            {"files": ["a.csv"], "undeclared": "warn"},
            "strict",
            Reads(files=("a.csv",)),
            id="names and a word",
        ),
    ],
)
def test_what_a_stage_reads_is_one_value(tmp_path, reads, of_pipeline, expected):
    pipeline = build(tmp_path, reads, {"reads": of_pipeline} if of_pipeline else {})
    assert pipeline.reads_of(pipeline.stage("totals")) == expected


@pytest.mark.parametrize(
    ("reads", "field", "text"),
    [
        ({"env": ["TAX RATE"]}, "env", "got 'TAX RATE'; allowed: the name of an environment variable"),
        ({"env": ["1ST"]}, "env", "got '1ST'"),
        ({"env": [3]}, "env", "got 3; allowed: text"),
        ({"files": [""]}, "files", "got ''; allowed: a file, a folder or a glob"),
        ({"files": ["${home}/x"]}, "files.0", "got ${home}; allowed: ${lake} is the only variable"),
        ({"tables": ["${home}/x"]}, "tables.0", "got ${home}"),
        ({"tables": ["a.b.c"]}, "tables", "got 'a.b.c'; allowed: schema.table of a table that is published"),
        ({"tables": ["marts.orders"]}, "tables", "allowed: a table that no stage of this pipeline publishes"),
        ({"enviroment": ["A"]}, "enviroment", "allowed: env, files, tables, undeclared"),
        ({"undeclared": "loud"}, "undeclared", "got 'loud'; allowed: warn, strict"),
        ("strikt", None, "got 'strikt'; allowed: warn, strict (did you mean strict?)"),
        (7, None, "got 7; allowed: warn, strict, or a mapping with env, files, tables, undeclared"),
        (["RATE"], None, "allowed: warn, strict, or a mapping"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_field(tmp_path, reads, field, text):
    with pytest.raises(InvalidSpec) as raised:
        build(tmp_path, reads)
    (problem,) = raised.value.problems
    assert problem.field == ".".join(("stages.totals.reads", *([field] if field else [])))
    assert text in str(problem)


def test_the_pipelines_word_is_one_of_two(tmp_path):
    with pytest.raises(InvalidSpec, match="reads: got 'never'; allowed: warn, strict"):
        build(tmp_path, of_pipeline={"reads": "never"})


def test_a_problem_has_its_line(tmp_path):
    (tmp_path / "work.py").write_text(JOBS)
    (tmp_path / "p.yaml").write_text(
        "pipeline: small\nstages:\n  orders:\n    job: work:orders\n    source: {kind: parquet, path: x, splits: 2}\n"
        "    reads:\n      files: [a.csv]\n      env: [A-B]\n"
    )
    with pytest.raises(InvalidSpec, match=r"p.yaml:8: stages.orders.reads.env"):
        load_pipeline(tmp_path / "p.yaml", project=tmp_path, suites=tmp_path)
