"""`launcher:` and `resources:` of a pipeline and its stages, and what is refused, at its line."""

from __future__ import annotations

import pytest
from tests.spec.loading.test_airflow_settings import problems

SUBMIT = "launcher: submit"


@pytest.mark.parametrize(
    ("pipeline", "first", "expected"),
    [
        ("launcher: yarn", "", "line 2: launcher: got 'yarn'; allowed: server, submit"),
        (f"{SUBMIT}\nresources: {{cores: 2}}", "", "line 3: resources.cores: got 2; allowed: executor_memory, exec"),
        (f"{SUBMIT}\nresources: {{executor_memory: 4gb}}", "", "executor_memory: got '4gb'; allowed: a size as Spark"),
        (f"{SUBMIT}\nresources: {{instances: 0}}", "", "line 3: resources.instances: got 0; allowed: 1 or more"),
        ("resources: {instances: 2}", "", "line 2: resources: got a mapping; allowed: only with `launcher: submit`"),
        ("", "resources: {instances: 2}", "line 7: stages.first.resources: got a mapping; allowed: only with"),
        (
            SUBMIT,
            "resources: {conf: {spark.sql.ansi.enabled: false}}",
            "line 7: stages.first.resources.conf.spark.sql.ansi.enabled: got 'spark.sql.ansi.enabled', which may "
            "change results, so that it has to count in keys; allowed: `spark:` of the pipeline or stage",
        ),
    ],
)
def test_what_cannot_be_given_is_refused_at_its_line(tmp_path, pipeline, first, expected):
    (found,) = problems(tmp_path, pipeline, first)
    assert expected in found


def test_stages_that_are_one_task_have_one_application(tmp_path):
    said = ("resources: {executor_memory: 1g}", "resources: {executor_memory: 2g}")
    found = problems(tmp_path, f"{SUBMIT}\nexecution_mode: batch", *said)
    assert [line.partition(";")[0] for line in found] == [
        "line 8: stages.first.resources.executor_memory: got '1g'",
        "line 12: stages.second.resources.executor_memory: got '2g'",
    ]
    assert problems(tmp_path, f"{SUBMIT}\nexecution_mode: batch", said[0], said[0]) == []
