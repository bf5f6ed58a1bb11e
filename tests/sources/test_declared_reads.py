"""What is told of a declared read: another hash whenever the function would read something else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from stagehold.errors import ReadMissing
from stagehold.model.keys.compute_key import DeclaredRead
from stagehold.sources.declared_reads import declared_reads
from stagehold.sources.source_files import SourceRoots
from stagehold.spec.loading.loader import build_pipeline, load_pipeline

JOBS = "def orders(ctx, source): ...\n"
STAGE = {"job": "work:orders", "source": {"kind": "parquet", "path": "x", "splits": 2}}


@pytest.fixture
def roots(tmp_path: Path) -> SourceRoots:
    project, lake = tmp_path / "project", tmp_path / "lake"
    project.mkdir()
    lake.mkdir()
    (project / "work.py").write_text(JOBS)
    return SourceRoots(str(lake), str(project))


def look(roots: SourceRoots, reads: object, environment: Mapping[str, str] | None = None) -> tuple[DeclaredRead, ...]:
    project = Path(roots.project)
    declared = {"pipeline": "small", "stages": {"orders": {**STAGE, "reads": reads}}}
    pipeline = build_pipeline(declared, project=project, suites=project)
    return declared_reads(pipeline.stages[0], pipeline, roots, environment or {})


def test_nothing_is_declared_by_default(roots: SourceRoots) -> None:
    assert look(roots, "strict") == ()


def test_a_variable_is_told_apart_by_its_value_and_by_being_set(roots: SourceRoots) -> None:
    environments = ({}, {"RATE": ""}, {"RATE": "7"}, {"RATE": "8"})
    found = [look(roots, {"env": ["RATE"]}, environment) for environment in environments]
    assert {(one.kind, one.name) for (one,) in found} == {("env", "RATE")}
    assert len({one.content for (one,) in found}) == len(environments)


def test_a_value_stands_in_nothing_that_is_told(roots: SourceRoots) -> None:
    assert "s3cr3t" not in repr(look(roots, {"env": ["PASSWORD"]}, {"PASSWORD": "s3cr3t"}))


def test_a_file_counts_by_its_content_and_by_its_name_below_the_project(roots: SourceRoots) -> None:
    side = Path(roots.project, "side.csv")
    side.write_text("a")
    first = look(roots, {"files": ["side.csv"]})
    side.touch()
    assert look(roots, {"files": ["side.csv"]}) == first
    side.write_text("b")
    second = look(roots, {"files": ["side.csv"]})
    assert str(second[0]) == "file side.csv"
    assert second != first


def test_files_are_those_of_the_project_wherever_it_lies(roots: SourceRoots, tmp_path: Path) -> None:
    for folder in ("project", "elsewhere"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "work.py").write_text(JOBS)
        (tmp_path / folder / "side.csv").write_text("a")
    elsewhere = SourceRoots(roots.lake, str(tmp_path / "elsewhere"))
    assert look(roots, {"files": ["*.csv"]}) == look(elsewhere, {"files": ["*.csv"]})


@pytest.mark.parametrize("pattern", ["conf", "conf/", "conf/**/*.json", "./conf", "${lake}/conf", "${lake}/c*f"])
def test_a_glob_or_a_folder_counts_by_all_its_files(roots: SourceRoots, pattern: str) -> None:
    for root in (roots.project, roots.lake):
        (Path(root, "conf", "deep")).mkdir(parents=True)
        Path(root, "conf", "a.json").write_text("1")
        Path(root, "conf", "deep", "b.json").write_text("2")
    root = roots.lake if "lake" in pattern else roots.project
    seen = {look(roots, {"files": [pattern]})}
    Path(root, "conf", "deep", "b.json").write_text("3")
    seen.add(look(roots, {"files": [pattern]}))
    Path(root, "conf", "deep", "b.json").rename(Path(root, "conf", "deep", "c.json"))
    seen.add(look(roots, {"files": [pattern]}))
    Path(root, "conf", "new.json").write_text("3")
    seen.add(look(roots, {"files": [pattern]}))
    assert len(seen) == 4


def test_a_file_that_is_hidden_counts_if_it_is_named(roots: SourceRoots) -> None:
    Path(roots.project, ".env").write_text("a")
    assert look(roots, {"files": [".env"]})


def test_a_file_of_another_content_but_the_same_size_and_second_is_another(roots: SourceRoots) -> None:
    side = Path(roots.project, "side.csv")
    side.write_text("a")
    os.utime(side, ns=(1, 10**9))
    first = look(roots, {"files": ["side.csv"]})
    side.write_text("b")
    os.utime(side, ns=(1, 10**9 + 1))
    assert look(roots, {"files": ["side.csv"]}) != first


def table(place: Path, *rows: int, mode: str = "append") -> None:
    write_deltalake(str(place), pa.table({"a": pa.array(rows, pa.int64())}), mode=mode)


@pytest.mark.parametrize("name", ["marts.land", "${lake}/marts/land", "ABSOLUTE"])
def test_a_table_counts_by_its_version_however_it_is_called(roots: SourceRoots, name: str) -> None:
    place = Path(roots.lake, "marts", "land")
    declared = {"tables": [str(place) if name == "ABSOLUTE" else name]}
    table(place, 1)
    first = look(roots, declared)
    assert look(roots, declared) == first
    table(place, 2)
    assert look(roots, declared) != first


def test_another_table_of_the_same_name_and_version_is_another(roots: SourceRoots, tmp_path: Path) -> None:
    place = Path(roots.project, "side", "land")
    table(place, 1)
    first = look(roots, {"tables": ["side/land"]})
    place.rename(tmp_path / "old")
    table(place, 1)
    assert look(roots, {"tables": ["side/land"]}) != first


@pytest.mark.parametrize(
    ("reads", "field", "given"),
    [
        ("files: [work.py, side/*.csv]", "stages.orders.reads.files", "side/*.csv"),
        ("tables: [marts.land]", "stages.orders.reads.tables", "marts.land"),
        ("tables: [side/land]", "stages.orders.reads.tables", "side/land"),
    ],
)
def test_what_is_not_there_is_an_error_with_its_line(roots: SourceRoots, reads: str, field: str, given: str) -> None:
    file = Path(roots.project, "p.yaml")
    file.write_text(
        "pipeline: small\nstages:\n  orders:\n    job: work:orders\n    source: {kind: parquet, path: x, splits: 2}\n"
        f"    reads:\n      undeclared: strict\n      {reads}\n"
    )
    pipeline = load_pipeline(file, project=file.parent, suites=file.parent)
    with pytest.raises(ReadMissing, match=r"allowed: a (file|Delta table) that is there") as raised:
        declared_reads(pipeline.stages[0], pipeline, roots)
    assert raised.value.place == f"{file}:8"
    assert (raised.value.field, raised.value.given) == (field, given)


def test_a_pipeline_made_in_python_has_no_line(roots: SourceRoots) -> None:
    with pytest.raises(ReadMissing, match=r"^<python>: stages.orders.reads.files: got 'side.csv'"):
        look(roots, {"files": ["side.csv"]})
