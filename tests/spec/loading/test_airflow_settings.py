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
        ("airflow: {executor_config: large}", "", "line 2: airflow.executor_config: got 'large'; allowed: a mapping"),
        (
            "airflow: {executor_config: {KubernetesExecutor: {image: x}}}",
            "",
            "airflow.executor_config.KubernetesExecutor: got a mapping; allowed: `pod_override` instead: a mapping of",
        ),
        (
            "airflow: {executor_config: {pod_template_file: [x]}}",
            "",
            r"executor_config.pod_template_file: got \['x'\]; allowed: the path of a file",
        ),
        (
            "",
            "airflow: {executor_config: {pod_override: large}}",
            "line 7: stages.first.airflow.executor_config.pod_override: got 'large'; allowed: a mapping of apiVersion, "
            "kind, metadata, spec, as in a manifest of Kubernetes",
        ),
        (
            "",
            "airflow: {executor_config: {pod_override: {spce: {}}}}",
            r"pod_override.spce: got a mapping; allowed: apiVersion, kind, metadata, spec \(did you mean spec\?\)",
        ),
        (
            "",
            "airflow: {executor_config: {pod_override: {spec: [x]}}}",
            r"pod_override.spec: got \['x'\]; allowed: a mapping of fields",
        ),
        (
            "",
            "airflow: {executor_config: {pod_override: {spec: {containers: {name: base}}}}}",
            "pod_override.spec.containers: got a mapping; allowed: a list of containers",
        ),
        (
            "",
            "airflow: {executor_config: {pod_override: {spec: {containers: [{name: task}, {name: base}]}}}}",
            "pod_override.spec.containers.0.name: got 'task'; allowed: base, which Airflow calls the container of the",
        ),
        (
            "",
            "airflow: {executor_config: {pod_override: {spec: {containers: [{image: x}]}}}}",
            "pod_override.spec.containers.0.name: got nothing; allowed: base",
        ),
        ("airflow: {on_run_failure_callback: 'no:f'}", "", "got 'no:f', but there is no no.py; allowed: a module"),
    ],
)
def test_what_cannot_be_done_is_refused_at_its_line(tmp_path, pipeline, first, expected):
    import re

    (found,) = problems(tmp_path, pipeline, first)
    assert re.search(expected, found), found


def test_what_an_executor_takes_that_nobody_here_knows_is_let_through(tmp_path):
    pod = "pod_override: {metadata: {labels: {team: sales}}, spec: {nodeSelector: {disk: ssd}, containers: []}}"
    for config in ("overrides: {cpu: 2, tags: [x]}", pod, "pod_template_file: /pods/large.yaml", ""):
        assert problems(tmp_path, f"airflow: {{executor_config: {{{config}}}}}") == []


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
    differ = [f"airflow: {{executor_config: {{cpu: {count}}}}}" for count in (1, 2)]
    assert [text.partition(": got")[0] for text in problems(tmp_path, "execution_mode: batch", *differ)] == [
        "line 7: stages.first.airflow.executor_config",
        "line 11: stages.second.airflow.executor_config",
    ]
