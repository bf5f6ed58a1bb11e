"""Which reads count as declared, however code and declaration call them, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from stagehold.code.side_reads import SideRead
from stagehold.model.keys.compute_key import ReadKind
from stagehold.sources.declared_reads import side_read_text, undeclared, undeclared_error
from stagehold.sources.source_files import SourceRoots
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.settings.reads import Reads

ROOTS = SourceRoots("/lake", "/project")
RATE = SideRead(ReadKind.ENV, "RATE", "jobs/x.py:3", "rate = os.environ['RATE']")


def env(name: str | None) -> SideRead:
    return SideRead(ReadKind.ENV, name, "jobs/x.py:3")


def file(name: str | None) -> SideRead:
    return SideRead(ReadKind.FILE, name, "jobs/x.py:3")


def table(name: str | None) -> SideRead:
    return SideRead(ReadKind.TABLE, name, "jobs/x.py:3")


@pytest.mark.parametrize(
    ("read", "reads", "declared"),
    [
        (env("RATE"), Reads(), False),
        (env("RATE"), Reads(env=("RATE",)), True),
        (env("RATE"), Reads(env=("rate",)), False),
        (env("RATE"), Reads(files=("RATE",)), False),
        (env(None), Reads(), False),
        (env(None), Reads(env=("ANY",)), True),
        (env(None), Reads(files=("a.csv",), tables=("a.b",)), False),
        (file("side.csv"), Reads(files=("side.csv",)), True),
        (file("/project/side.csv"), Reads(files=("side.csv",)), True),
        (file("side.csv"), Reads(files=("/project/side.csv",)), True),
        (file("./conf/../side.csv"), Reads(files=("side.csv",)), True),
        (file("file:///project/side.csv"), Reads(files=("side.csv",)), True),
        (file("file:/project/side.csv"), Reads(files=("side.csv",)), True),
        (file("conf/de/side.csv"), Reads(files=("conf",)), True),
        (file("conf/side.csv"), Reads(files=("conf/*.csv",)), True),
        (file("conf/side.json"), Reads(files=("conf/*.csv",)), False),
        (file("conf/de/side.csv"), Reads(files=("conf/*.csv",)), False),
        (file("conf/de/side.csv"), Reads(files=("conf/**/*.csv",)), True),
        (file("conf/*.csv"), Reads(files=("conf/*.csv",)), True),
        (file("conf"), Reads(files=("conf/*.csv",)), True),
        (file("conf"), Reads(files=("conf/side.csv",)), False),
        (file("configuration/x"), Reads(files=("conf",)), False),
        (file("conf/.hidden"), Reads(files=("conf",)), False),
        (file("conf/.hidden"), Reads(files=("conf/.hidden",)), True),
        (file("/lake/side/a.json"), Reads(files=("${lake}/side/*.json",)), True),
        (file("s3a://shop/side/a.json"), Reads(files=("s3://shop/side",)), True),
        (file("https://x/side.csv"), Reads(files=("side.csv",)), False),
        (file("side/land"), Reads(tables=("side/land",)), True),
        (file("/lake/marts/land"), Reads(tables=("marts.land",)), True),
        (file(None), Reads(files=("a.csv",)), True),
        (file(None), Reads(env=("A",)), False),
        (table("marts.land"), Reads(tables=("marts.land",)), True),
        (table("Marts.Land"), Reads(tables=("marts.land",)), True),
        (table("spark_catalog.marts.land"), Reads(tables=("marts.land",)), True),
        (table("marts.land"), Reads(tables=("marts.lands",)), False),
        (table("marts.land"), Reads(files=("marts.land",)), False),
        (table("/lake/marts/land"), Reads(tables=("marts.land",)), True),
        (table("s3a://shop/land/"), Reads(tables=("s3://shop/land",)), True),
        (table("/project/side/land"), Reads(files=("side/land",)), True),
        (table(None), Reads(tables=("marts.land",)), True),
        (table(None), Reads(), False),
    ],
)
def test_a_read_is_declared_if_a_name_or_a_pattern_means_it(read: SideRead, reads: Reads, declared: bool) -> None:
    assert bool(undeclared([read], reads, ROOTS)) is not declared


def test_a_read_is_told_once_and_by_its_short_name() -> None:
    found = [file("side.csv"), SideRead(ReadKind.FILE, "/project/side.csv"), file("/lake/a"), env("A"), env("A")]
    assert [(one.kind, one.name) for one in undeclared(found, Reads(), ROOTS)] == [
        ("file", "side.csv"),
        ("file", "${lake}/a"),
        ("env", "A"),
    ]


def test_of_what_the_text_does_not_name_the_name_is_told_if_somebody_saw_it() -> None:
    assert undeclared([file(None), file("/project/a.csv")], Reads(), ROOTS) == (file("a.csv"),)
    elsewhere = SideRead(ReadKind.FILE, None, "jobs/x.py:9", "open(path)")
    assert undeclared([elsewhere, file("a.csv")], Reads(), ROOTS) == (elsewhere, file("a.csv"))


def test_what_is_told_names_place_and_the_way_out() -> None:
    assert side_read_text("totals", RATE) == (
        "totals reads env RATE (jobs/x.py:3), which its `reads` does not declare: a change of it is not seen, and old "
        "data is reused; take it from an input, or add `reads: {env: [RATE]}` to the stage"
    )
    unnamed = SideRead(ReadKind.FILE, None, "jobs/x.py:4", "open(path)")
    assert side_read_text("totals", unnamed).startswith("totals reads a file by `open(path)` (jobs/x.py:4), which")
    assert "`reads: {files: [PATH]}`" in side_read_text("totals", unnamed)


def test_what_is_refused_ends_with_the_lines_that_declare_it(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("def orders(ctx, source): ...\n")
    stage = {"job": "work:orders", "source": {"kind": "parquet", "path": "x", "splits": 2}}
    stage["reads"] = {"env": ["LAND"], "undeclared": "strict"}
    pipeline = build_pipeline({"pipeline": "small", "stages": {"orders": stage}}, project=tmp_path, suites=tmp_path)
    found = [RATE, env("NO"), file("${lake}/a: b.csv"), table("marts.land")]
    error = undeclared_error(pipeline, {"orders": found})
    text, _, lines = str(error).partition("stages:\n")
    assert "  orders reads env RATE (jobs/x.py:3)\n" in text
    assert yaml.safe_load(f"stages:\n{lines}")["stages"]["orders"]["reads"] == {
        "env": ["LAND", "RATE", "NO"],
        "files": ["${lake}/a: b.csv"],
        "tables": ["marts.land"],
        "undeclared": "strict",
    }
    assert list(error.reads) == ["orders"]
