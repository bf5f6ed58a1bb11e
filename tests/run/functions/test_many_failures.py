"""Parts of a query that fail side by side come as one error of Spark's, and are told as what they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.errors.exceptions.connect import SparkException
from tests.plan.restart.test_rules import raised, several

from stagehold.errors import FunctionFailed, StageFailed, StrayKey
from stagehold.run.functions.function_errors import reporting_queries
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Stage

JOB = (
    "from stagehold import stage\n\n\n@stage\ndef made(ctx, source):\n    return source.select(source.a.cast('int'))\n"
)
STRAY = (
    "SparkRuntimeException: [USER_RAISED_EXCEPTION] [STAGEHOLD_STRAY_KEY] "
    '{"stage":"made","key":{"id":"11 \\"x\\""},"computed":1,"belongs":10} SQLSTATE: P0001'
)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "jobs.py").write_text(JOB)
    source = {"kind": "parquet", "path": "rows/*.parquet", "splits": 1}
    declared = {"pipeline": "p", "stages": {"made": {"job": "jobs:made", "source": source}}}
    return build_pipeline(declared, project=tmp_path, suites=tmp_path).stage("made")


def told(stage: Stage, project: Path, failures: Sequence[str]) -> Exception:
    with pytest.raises((StageFailed, StrayKey)) as caught, reporting_queries(stage, [0, 1], project):
        raise several(*failures)
    return caught.value


def test_a_stray_key_among_them_is_the_users_answer(stage: Stage, tmp_path: Path) -> None:
    error = told(stage, tmp_path, ["SparkException: [SOMETHING] else SQLSTATE: XX000", STRAY, STRAY])
    assert isinstance(error, StrayKey)
    assert """partition 1 a row with id = '11 "x"', which belongs to partition 10""" in str(error)


def test_what_a_function_raised_in_a_worker_is_told_as_its_error(stage: Stage, tmp_path: Path) -> None:
    error = told(stage, tmp_path, [str(raised("ValueError: no 1 here")), str(raised("ValueError: no 2 here"))])
    assert isinstance(error, FunctionFailed)
    assert str(error).startswith("ValueError: no 1 here\n")


def test_of_others_the_first_is_told_with_its_line_and_how_many_there_are(stage: Stage, tmp_path: Path) -> None:
    cast = (
        "SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'x' cannot be cast. SQLSTATE: 22018\n"
        f'== DataFrame ==\n"cast" was called from\n{tmp_path / "jobs.py"}:6\n'
    )
    error = told(stage, tmp_path, [cast] * 9)
    assert type(error) is StageFailed
    assert isinstance(error.__cause__, SparkException)
    first, place, *_ = str(error).splitlines()
    assert first == (
        "SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'x' cannot be cast. SQLSTATE: 22018 "
        "(9 such failures at once)"
    )
    assert place == "  at jobs.py:6"
