"""What an application is given: one stage's over the pipeline's, and what no file may say of it."""

from __future__ import annotations

import pytest

from stagehold.spec.settings.launch_settings import Resources, conf_refusal


def test_what_a_stage_says_stands_over_what_its_pipeline_says():
    pipeline = Resources.model_validate({"executor_memory": "2G", "instances": 3, "conf": {"spark.task.cpus": 1}})
    stage = Resources.model_validate({"executor_memory": "8g", "conf": {"spark.memory.fraction": 0.7}})
    assert pipeline.under([]) == pipeline
    assert pipeline.under([Resources(), stage]).settings == {
        "spark.executor.memory": "8g",
        "spark.executor.cores": "1",
        "spark.executor.instances": "3",
        "spark.cores.max": "3",
        "spark.task.cpus": "1",
        "spark.memory.fraction": "0.7",
    }


@pytest.mark.parametrize(
    ("given", "cores", "settings"),
    [
        ({}, None, {}),
        ({"executor_cores": 4}, 4, {"spark.executor.cores": "4"}),  # as many executors as there is room for
        (
            {"executor_cores": 4, "instances": 2},
            8,
            {"spark.executor.cores": "4", "spark.executor.instances": "2", "spark.cores.max": "8"},
        ),
    ],
)
def test_a_standalone_master_goes_by_the_cores_of_all_executors(given, cores, settings):
    resources = Resources.model_validate(given)
    assert (resources.cores, dict(resources.settings)) == (cores, settings)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("spark.executor.memoryOverhead", None),
        ("spark.dynamicAllocation.enabled", None),
        ("spark.kubernetes.container.image", None),
        ("spark.yarn.queue", None),
        ("spark.executor.memory", "a field of its own"),
        ("spark.sql.ansi.enabled", "may change results"),
        ("spark.databricks.delta.schema.autoMerge.enabled", "may change results"),
        ("spark.executorEnv.TAX_RATE", "more than what"),
        ("spark.yarn.appMasterEnv.TAX_RATE", "more than what"),
        ("spark.kubernetes.driverEnv.TAX_RATE", "more than what"),
        ("spark.executor.extraJavaOptions", "more than what"),
        ("spark.executor.extraClassPath", "more than what"),
        ("spark.jars", "more than what"),
        ("spark.master", "more than what"),
        ("spark.connect.grpc.binding.port", "more than what"),
        ("spark.speculation", "more than what"),  # two tasks at once would write one file
        ("spark.hadoop.fs.s3a.secret.key", "more than what"),
        ("spark.kubernetes.authenticate.submission.oauthToken", "a secret's"),
        ("executor.memory", "more than what"),
    ],
)
def test_what_may_change_a_result_or_is_a_secret_is_refused(name, why):
    refusal = conf_refusal(name)
    assert (refusal is None) == (why is None)
    assert why is None or (refusal is not None and why in refusal[0])
