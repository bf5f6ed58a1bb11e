"""Which files a stage may declare to work with."""

from __future__ import annotations

import re

import pytest

from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import build_pipeline

JOBS = "from stagehold import stage\n\n@stage\ndef first(ctx, source): ...\n"


def problems(folder, files: object) -> list[str]:
    (folder / "work.py").write_text(JOBS)
    (folder / "models").mkdir(exist_ok=True)
    stage = {"job": "work:first", "source": {"kind": "parquet", "path": "${lake}/x/*.parquet", "splits": 2}}
    try:
        build_pipeline(
            {"pipeline": "small", "stages": {"first": {**stage, "files": files}}}, project=folder, suites=folder
        )
    except InvalidSpec as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("/etc/passwd", "got '/etc/passwd'; allowed: the path of a file below the project"),
        ("../rates.csv", "allowed: the path of a file below the project, without `..`"),
        ("side/*.csv", r"declared in `reads: \{files"),
        ("${lake}/rates.csv", "without `..`, a glob or a variable|no variable"),
        ("s3://shop/rates.csv", "allowed: the path of a file below the project"),
        ("", "allowed: the path of a file below the project"),
        ("models", "got 'models', which is a folder; allowed: the path of a file"),
        (["a/rates.csv", "b/rates.csv"], "got 'b/rates.csv'; allowed: files of different names; a/rates.csv has this"),
        ({"rates": 1}, "allowed: a name or a list of names"),
    ],
)
def test_what_a_function_could_not_ask_for_is_refused(tmp_path, files, expected):
    found = problems(tmp_path, files)
    assert found
    assert all("stages.first.files" in problem for problem in found)
    assert any(re.search(expected, problem) for problem in found), found


def test_files_of_any_name_are_taken_and_need_not_be_there_yet(tmp_path):
    assert problems(tmp_path, ["side/rates.csv", "models/a b.pkl", "side/rates.csv"]) == []
