"""A secret is planted, used and shouted about; then everything that a run leaves is searched for it."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest
from tests.run.small_project import INTERVAL, NUMBERS, SmallProject, values_of

from stagehold.errors import FunctionFailed, SecretsUnusable
from stagehold.run.here.trial import try_stage
from stagehold.run.planning.planning import RunRequest

pytestmark = pytest.mark.spark

PLANTED = 'plänted-7f3a/9c"2b'
JOBS = """\
from pyspark.sql import functions as F

from stagehold import stage


@stage
def numbers(ctx, source):
    token = ctx.secret("api_token")
    ctx.logger.warning("asks with %s", token)
    if ctx.params["fails"]:
        raise RuntimeError(f"401 for https://api/?token={token}")
    return source.withColumn("length", F.lit(len(token)))


@stage
def in_workers(ctx, numbers):
    token = ctx.secret("api_token")

    def shouting(frames):
        for frame in frames:
            raise ValueError(f"refused: {token}")
            yield frame

    return numbers.mapInPandas(shouting, "number bigint")
"""
SECRETS = {"secrets": ["api_token"], "params": {"fails": False}}


@pytest.fixture
def project(tmp_path: Path, spark_remote: str) -> SmallProject:
    folder = tmp_path / "with_secrets"
    folder.mkdir()
    return SmallProject.make(folder, spark_remote, JOBS)


@pytest.fixture
def planted(project: SmallProject) -> Path:
    file = Path(project.settings.secrets_folder, "api_token")
    file.parent.mkdir()
    file.write_text(PLANTED + "\n")
    file.chmod(0o600)
    return file


def left(project: SmallProject, planted: Path, *texts: str) -> list[str]:
    """The files and texts that have the secret, in any of the ways to write it that are likely."""
    forms = [PLANTED.encode(), ascii(PLANTED)[1:-1].encode(), PLANTED.replace('"', '\\"').encode(), b"7f3a/9c"]
    files = [file for file in Path(project.settings.home).rglob("*") if file.is_file() and file != planted]
    found = [str(file) for file in files if any(form in file.read_bytes() for form in forms)]
    return found + [text for text in texts if any(form in text.encode() for form in forms)]


def test_a_run_leaves_nothing_of_a_secret_that_its_function_used(project, planted, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    pipeline = project.pipeline("told", {"numbers": {"source": NUMBERS}}, **SECRETS)
    records = project.run(pipeline, "r1")
    assert len(records["numbers"]) == 4
    assert {length for record in records["numbers"] for length in values_of(record, "length")} == {len(PLANTED)}
    out = capfd.readouterr()
    assert "asks with ***" in caplog.text
    assert left(project, planted, out.out, out.err, caplog.text, "\0".join(sys.argv)) == []


def test_a_function_that_fails_with_the_secret_in_its_message_tells_it_nobody(project, planted, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    pipeline = project.pipeline("failing", {"numbers": {"source": NUMBERS}}, **{**SECRETS, "params": {"fails": True}})
    with pytest.raises(FunctionFailed) as caught:
        project.run(pipeline, "r1")
    assert "401 for https://api/?token=***" in str(caught.value)
    with project.ledger() as ledger:
        (attempt,) = ledger.attempts.of_run("r1")
    assert "token=***" in str(attempt.failure)
    out = capfd.readouterr()
    texts = (str(caught.value), caught.value.trace, out.out, out.err, caplog.text)
    assert left(project, planted, *texts) == []


def test_a_python_function_that_fails_in_a_worker_tells_it_nobody(project, planted, capfd):
    stages = {"numbers": {"source": NUMBERS}, "in_workers": {"inputs": {"numbers": "forward"}}}
    with pytest.raises(FunctionFailed, match=r"refused: \*\*\*") as caught:
        project.run(project.pipeline("worker", stages, **SECRETS), "r1")
    out = capfd.readouterr()
    assert left(project, planted, str(caught.value), caught.value.trace, out.out, out.err) == []


def test_another_value_makes_nothing_stale_and_a_run_that_reuses_all_needs_none(project, planted):
    pipeline = project.pipeline("kept", {"numbers": {"source": NUMBERS}}, **SECRETS)
    first = project.run(pipeline, "r1")
    planted.write_text("another-value")
    assert project.run(pipeline, "r2") == first
    planted.unlink()
    assert project.run(pipeline, "r3") == first


def test_what_is_missing_is_told_before_anything_is_on_record(project):
    pipeline = project.pipeline("lacking", {"numbers": {"source": NUMBERS}}, **SECRETS)
    with pytest.raises(SecretsUnusable, match="api_token is not found: put it into the environment variable"):
        project.run(pipeline, "r1")
    with project.ledger() as ledger:
        assert ledger.attempts.of_run("r1") == ()
        assert list(ledger.runs.recent(9)) == []


def test_try_finds_it_too(project, planted):
    pipeline = project.pipeline("tried", {"numbers": {"source": NUMBERS}}, **SECRETS)
    tried = try_stage(RunRequest(pipeline, "t", INTERVAL, {}), "numbers", 0, project.settings, print, most=3)
    assert tried.count == 25
