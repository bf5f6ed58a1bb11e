"""What a stage may say of its script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stagehold.errors import InvalidSpec
from stagehold.plan.resume.judgement import _arguments
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import OutputType, Pipeline, Stage

SOURCE = {"kind": "parquet", "path": "x", "splits": 1}
ARGS = ["${source}", "${output}"]


def build(folder: Path, **fields: Any) -> Pipeline:
    (folder / "jobs").mkdir(exist_ok=True)
    (folder / "jobs" / "old_job.py").write_text("print('done')\n")
    (folder / "jobs" / "broken.py").write_text("def x(:\n")
    inputs = {} if "inputs" in fields else {"source": SOURCE}
    numbers = {"script": "jobs/old_job.py", "source": SOURCE, "args": ARGS}
    stages = {"numbers": numbers, "totals": {"script": "jobs/old_job.py", "args": ARGS, **inputs, **fields}}
    return build_pipeline(
        {"pipeline": "small", "params": {"least": 3}, "stages": stages}, project=folder, suites=folder
    )


def totals(folder: Path, **fields: Any) -> Stage:
    return build(folder, **fields).stage("totals")


def test_a_script_is_a_job_of_one_partition_that_is_stored_even_where_outputs_flow(tmp_path):
    stage = totals(tmp_path, args=["--least", "${params.least}", *ARGS])
    assert (stage.job, stage.is_script, stage.partitions) == ("jobs/old_job.py:script", True, 1)
    reader = {"inputs": {"numbers": "forward"}, "args": ["${inputs.numbers}", "${output}"]}
    pipeline = build(tmp_path, **reader)
    assert [stage.output.type for stage in pipeline.stages] == [OutputType.BLOCKING, OutputType.BLOCKING]


REFUSED = [
    ({"script": "jobs/old_jobs.py"}, "'jobs/old_jobs.py', which is not there", "did you mean jobs/old_job.py?"),
    ({"script": "../old_job.py"}, "'../old_job.py'", "a script of Python below the project, such as jobs/old_job.py"),
    ({"script": "old-jobs/a.py"}, "'old-jobs/a.py'", "in folders whose names Python can import"),
    ({"script": "jobs.old_job"}, "'jobs.old_job'", "a script of Python below the project"),
    ({"script": "jobs/broken.py"}, "which cannot be read", "a script that Python can read"),
    ({"args": []}, "no `args`", "arguments with ${output}, the folder that the script writes to"),
    ({"args": ["${source}"]}, "['${source}']", "arguments with ${output}"),
    ({"args": ["${input}", "${output}"]}, "${input}", "output, source, params.least"),
    ({"args": ["${inputs.numbers}", "${output}"]}, "${inputs.numbers}", "output, source"),
    ({"args": ["${interval.begin:%Y}", "${output}"]}, "${interval.begin:%Y}", "${interval.start:%Y-%m-%d}"),
    ({"args": ["$${lake}", "${output}"]}, "${lake}", "output, source"),
    ({"job": "work:orders"}, "'jobs/old_job.py' beside the job work:orders", "one of job, sql, script"),
    ({"source": {**SOURCE, "splits": 2}}, "2 partitions", "one partition: `splits: 1` of a source, inputs by gather"),
    ({"source": {**SOURCE, "splits": {"bytes": "1mb"}}}, "decided later", "one partition"),
    ({"state": {"t": {"key": "n", "columns": {"n": "bigint"}}}}, "a mapping", "no state with a script"),
    (
        {"inputs": {"numbers": {"exchange": "keyed", "key": "n"}}, "partitions": 1, "args": ["${output}"]},
        "'keyed'",
        "gather or broadcast",
    ),
    ({"per_wave": True}, "True", "no per_wave with a script"),
    ({"output": {"type": "pipelined"}}, "pipelined", "blocking or blocking_persistent"),
]


@pytest.mark.parametrize(("fields", "given", "allowed"), REFUSED)
def test_what_a_script_may_not_be_is_told_with_what_is_allowed(tmp_path, fields, given, allowed):
    with pytest.raises(InvalidSpec) as caught:
        build(tmp_path, **fields)
    problems = [problem for problem in caught.value.problems if given in problem.given and allowed in problem.allowed]
    assert problems, str(caught.value)


def test_arguments_are_only_for_scripts(tmp_path):
    with pytest.raises(InvalidSpec, match="only with a `script`; a function has `params`"):
        build(tmp_path, script=None, job="work:orders")


def test_other_arguments_are_another_key(tmp_path):
    stages = [totals(tmp_path, args=args) for args in (ARGS, [*ARGS, "--all"])]
    assert _arguments(stages[0]) != _arguments(stages[1])
