"""What `airflow:` may say, and what is refused with file, field and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import load_pipeline

JOBS = "def first(ctx, source): ...\ndef second(ctx, first): ...\ndef tell(context): ...\ndef bare(): ...\n"
FILE = """\
pipeline: small
{pipeline}
stages:
  first:
    job: work:first
    source: {{kind: parquet, path: x, splits: 2}}
    {first}
  second:
    job: work:second
    inputs: {{first: forward}}
    {second}
"""


def problems(folder: Path, pipeline: str = "", first: str = "", second: str = "") -> list[str]:
    (folder / "work.py").write_text(JOBS)
    (folder / "small.yaml").write_text(FILE.format(pipeline=pipeline, first=first, second=second))
    try:
        load_pipeline(folder / "small.yaml", project=folder, suites=folder)
    except InvalidSpec as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("pipeline", "first", "expected"),
    [
        ("airflow: {ownr: me}", "", "line 2: airflow.ownr: got 'me'; allowed: .*owner.*did you mean owner"),
        ("", "airflow: {tags: x}", "line 7: stages.first.airflow.tags: got 'x'; allowed: owner, pool"),
        ("airflow: {weight_rule: up}", "", "airflow.weight_rule: got 'up'; allowed: downstream, upstream, absolute"),
        ("airflow: {pool_slots: 2}", "", "airflow.pool_slots: got 2; allowed: only with a pool"),
        ("airflow: {retries: 2}", "", "airflow.retries: got 2; allowed: .*owner"),
        ("schedule_mode: eager\nairflow: {priority_weight: 2}", "", "priority_weight: got 2; allowed: nothing with"),
        ("schedule_mode: eager\nairflow: {max_active_runs: 2}", "", "max_active_runs: got 2; allowed: 1 with"),
        (
            "",
            "airflow: {on_failure_callback: 'work:gone'}",
            "on_failure_callback: got 'work:gone'; allowed: a function",
        ),
        ("", "airflow: {on_failure_callback: 'work:bare'}", r"got def bare\(\); allowed: def bare\(context\)"),
        ("airflow: {on_run_failure_callback: 'no:f'}", "", "got 'no:f', but there is no no.py; allowed: a module"),
    ],
)
def test_what_cannot_be_done_is_refused_at_its_line(tmp_path, pipeline, first, expected):
    import re

    (found,) = problems(tmp_path, pipeline, first)
    assert re.search(expected, found), found


def test_stages_that_are_one_task_have_to_agree(tmp_path):
    found = problems(tmp_path, "execution_mode: batch", "airflow: {queue: large}", "airflow: {queue: small}")
    allowed = "allowed: one value for all stages that run together as one task: first, second"
    assert found == [
        f"line 7: stages.first.airflow.queue: got 'large'; {allowed}",
        f"line 11: stages.second.airflow.queue: got 'small'; {allowed}",
    ]
    apart = "output: {type: blocking}\n    airflow: {queue: large}"
    assert problems(tmp_path, "", apart, "airflow: {queue: small}") == []
    assert problems(tmp_path, "", "airflow: {queue: large}", "") == []
