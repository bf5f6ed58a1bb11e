"""A function that is to know of checkpoints is refused at its line if it could never be called."""

from __future__ import annotations

import re

import pytest

from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import load_pipeline

JOBS = """\
from stagehold import stage

@stage
def first(ctx, source): ...

@stage
def second(ctx, first): ...

def told(ctx): ...

def bare(): ...

def greedy(ctx, rows): ...

async def later(ctx): ...
"""
FILE = """\
pipeline: small
stages:
  first:
    job: work:first
    source: {{kind: parquet, path: "${{lake}}/x/*.parquet", splits: 2}}
    {first}
  second:
    job: work:second
    inputs: {{first: forward}}
    {second}
"""


def problems(folder, first: str = "", second: str = "") -> list[str]:
    (folder / "work.py").write_text(JOBS)
    (folder / "small.yaml").write_text(FILE.format(first=first, second=second))
    try:
        pipeline = load_pipeline(folder / "small.yaml", project=folder, suites=folder)
    except InvalidSpec as error:
        return [str(problem) for problem in error.problems]
    return [str(stage.on_complete) for stage in pipeline.stages if stage.on_complete]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("told", "got 'told'; allowed: module:function"),
        ("work:tld", r"got 'work:tld'; allowed: a function defined in work: .*did you mean told"),
        ("gone:told", "got 'gone:told', but there is no gone.py"),
        ("work:bare", r"got def bare\(\); allowed: def bare\(ctx\)"),
        ("work:greedy", r"got def greedy\(ctx, rows\); allowed: def greedy\(ctx\)"),
        ("work:later", r"got async def later\(ctx\); allowed: def later\(ctx\)"),
    ],
)
def test_what_cannot_be_called_is_refused_at_its_line(tmp_path, given, expected):
    (found,) = problems(tmp_path, second=f"on_complete: {given}")
    assert re.search(f"line 10: stages.second.on_complete: {expected}", found), found


def test_a_stage_whose_output_is_not_stored_is_in_no_checkpoint(tmp_path):
    (found,) = problems(tmp_path, first="on_complete: work:told")
    assert "stages.first.on_complete: got 'work:told'; allowed: only where the output is stored" in found
    assert problems(tmp_path, first="on_complete: work:told\n    output: {type: blocking}") == ["work:told"]
