"""A pipeline has the same rows on any server: what changes results is set, and everything else is known not to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.conftest import QUICK_JAVA, free_port
from tests.run.small_project import NUMBERS, SmallProject

from stagehold.errors import StageholdError, Terminal, VersionsDiffer
from stagehold.model.keys.compute_key import result_versions
from stagehold.settings import Settings
from stagehold.spark.connect import all_settings
from stagehold.spark.server import configuration
from stagehold.spark.server.server import await_ready, launch_server
from stagehold.spark.session import result_settings
from stagehold.spark.session.result_settings import NONE, RESULT_SETTINGS, differing_settings
from stagehold.spark.session.sessions import open_session, release_session

CLASSES = Path(__file__).with_name("harmless_settings.txt")
FOREIGN = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.nullInEmptyListBehavior": "true",
}


def harmless() -> list[str]:
    lines = CLASSES.read_text().splitlines()
    return [line for line in lines if line and not line.startswith(("#", "["))]


def stands_for(line: str, name: str) -> bool:
    return name == line or (line.endswith(".") and name.startswith(line))


@pytest.fixture(scope="module")
def listed(spark: SparkSession) -> dict[str, str]:
    """Every setting that Spark and Delta list, with its value in a session of ours."""
    return {row.key: row.value for row in spark.sql("SET -v").collect()}


@pytest.mark.spark
def test_every_setting_is_set_or_harmless_for_a_written_reason(listed: dict[str, str]) -> None:
    lines = harmless()
    unknown = [
        name for name in listed if name not in RESULT_SETTINGS and not any(stands_for(line, name) for line in lines)
    ]
    assert unknown == [], "put each into `result_settings.py` or, with a reason, into `harmless_settings.txt`"


@pytest.mark.spark
def test_every_class_has_settings_in_it(listed: dict[str, str]) -> None:
    others = listed.keys() - RESULT_SETTINGS.keys()
    assert [line for line in harmless() if not any(stands_for(line, name) for name in others)] == []


def test_no_setting_is_in_two_classes() -> None:
    lines = harmless()
    assert len(lines) == len(set(lines))
    assert [name for name in RESULT_SETTINGS if name in lines] == []


@pytest.mark.spark
def test_our_values_are_those_that_our_own_server_has_anyway(spark: SparkSession, listed: dict[str, str]) -> None:
    asked = {name: spark.conf.get(name, None) for name in RESULT_SETTINGS}
    assert differing_settings(asked) == {}
    assert RESULT_SETTINGS.keys() & all_settings(spark).keys() <= {
        "spark.sql.session.timeZone",
        "spark.databricks.delta.commit.idempotencyCheck.enabled",
    }
    # One that takes another's value unless it is set would no longer, once we set it.
    assert [name for name in RESULT_SETTINGS if listed.get(name, "").startswith("<value of")] == []


def test_what_a_server_does_not_know_is_left_alone() -> None:
    name = "spark.sql.legacy.nullInEmptyListBehavior"
    assert RESULT_SETTINGS[name] == NONE
    told = {
        name: "true",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.orc.impl": None,
    }
    assert differing_settings(told) == {name: ("true", NONE), "spark.sql.caseSensitive": ("true", "false")}


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server that was started with other settings than ours."""
    home = str(tmp_path_factory.mktemp("foreign"))
    settings = Settings(home=home, spark_port=free_port(), spark_memory="1g", spark_java_options=QUICK_JAVA)
    own = configuration.server_configuration
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configuration, "server_configuration", lambda settings: {**own(settings), **FOREIGN})
        server = launch_server(settings, kept_up=True)
    try:
        await_ready(settings, server)
        yield f"sc://localhost:{server.state.port}/;token={server.state.token};user_id=stagehold"
    finally:
        server.child.terminate()
        server.child.wait()
        server.stop_warm_up()


JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def places(ctx, source):
    moment = F.timestamp_seconds(F.col("NUMBER") * 3000)
    return source.select(
        "Number",
        F.to_date(moment).cast("string").alias("day"),
        F.hour(moment).alias("hour"),
        F.expr("size(cast(null as array<int>))").alias("ansi"),
        F.expr("try_to_timestamp('2024-1-5', 'yyyy-MM-dd') is null").alias("parser"),
    )

@stage
def refused(ctx, source):
    return source.select(F.concat(F.lit("n"), "number").cast("int").alias("number"))
"""


def rows(folder: Path, remote: str) -> list[dict[str, object]]:
    """What the stage `places` is on a server."""
    folder.mkdir()
    project = SmallProject.make(folder, remote, JOBS)
    pipeline = project.pipeline("places", {"places": {"source": NUMBERS}})
    project.run(pipeline, "first")
    written = sorted(Path(project.settings.lake_uri).rglob("_data/**/*.parquet"))
    found = [row for file in written for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted(found, key=lambda row: row["Number"])


@pytest.mark.spark
def test_a_pipeline_has_the_same_rows_on_a_server_with_other_settings(
    tmp_path: Path, spark_remote: str, foreign: str
) -> None:
    ours = rows(tmp_path / "ours", spark_remote)
    assert (ours[-1]["Number"], ours[-1]["day"], ours[-1]["hour"], ours[-1]["ansi"]) == (99, "1970-01-04", 10, None)
    assert rows(tmp_path / "theirs", foreign) == ours


@pytest.mark.spark
def test_a_cast_that_we_refuse_is_refused_by_such_a_server(tmp_path: Path, foreign: str) -> None:
    project = SmallProject.make(tmp_path, foreign, JOBS)
    with pytest.raises(StageholdError, match="CAST_INVALID_INPUT"):
        project.run(project.pipeline("refused", {"refused": {"source": NUMBERS}}), "first")


@pytest.mark.spark
def test_what_a_pipeline_declares_stands_over_it(tmp_path: Path, foreign: str) -> None:
    project = SmallProject.make(tmp_path, foreign, JOBS)
    declared = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    project.run(project.pipeline("places", {"places": {"source": NUMBERS, "spark": declared}}), "first")
    written = Path(project.settings.lake_uri).rglob("_data/**/*.parquet")
    found = {row["Number"]: row["hour"] for file in written for row in pq.ParquetFile(file).read().to_pylist()}
    assert found[0] == 9


@pytest.mark.spark
def test_the_foreign_server_is_foreign_and_our_sessions_of_it_are_ours(foreign: str) -> None:
    bare = SparkSession.builder.remote(foreign).create()
    try:
        assert {name: bare.conf.get(name) for name in FOREIGN} == FOREIGN
    finally:
        bare.stop()
    settings, name = Settings(home="unused", spark_remote=foreign), str(uuid4())
    session = open_session(settings, name)
    assert differing_settings({name: session.conf.get(name, None) for name in RESULT_SETTINGS}) == {}
    release_session(settings, name)


@pytest.mark.spark
@pytest.mark.parametrize(("package", "engine"), [("pyspark", "Spark"), ("delta-spark", "Delta Lake")])
def test_a_server_of_other_versions_is_refused(
    monkeypatch: pytest.MonkeyPatch, spark_settings: Settings, spark_remote: str, package: str, engine: str
) -> None:
    own = result_versions()
    monkeypatch.setattr(result_settings, "result_versions", lambda: {**own, package: "3.0.1"})
    result_settings._asked.clear()
    with pytest.raises(VersionsDiffer) as refused:
        open_session(replace(spark_settings, spark_remote=spark_remote), str(uuid4()))
    assert isinstance(refused.value, Terminal)
    assert f"STAGEHOLD_SPARK_REMOTE has {engine} {own[package]}, and this process {package} 3.0.1" in str(refused.value)


def test_a_server_of_this_home_that_outlived_an_upgrade_is_ended_first() -> None:
    error = VersionsDiffer("Spark", of_server="4.1.0", own="4.2.0", package="pyspark", remote=False)
    assert "of this home has Spark 4.1.0, and this process pyspark 4.2.0" in str(error)
    assert str(error).endswith(
        "End the server with `stagehold down`, so that a new one is started; then run the command again."
    )
