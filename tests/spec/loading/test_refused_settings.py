"""Which settings of Spark a pipeline may have, and what they count for."""

from __future__ import annotations

import pytest
from tests.spec.samples import Project, edited

from stagehold.settings import Settings
from stagehold.spark.server.configuration import server_configuration
from stagehold.spark.session import sessions
from stagehold.spec.loading.refused_texts import OWN, SET_FOR_THE_SERVER, refusal_of


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_settings_of_a_stage_stand_over_those_of_its_pipeline_and_are_texts(project):
    declared = '{"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.shuffle.partitions": 8}'
    own = '{"spark.sql.shuffle.partitions": 2, "spark.sql.ansi.enabled": false}'
    pipeline = project.load(
        edited(f"early_cutoff: true => spark: {declared}", f"gate: joined => gate: joined\\n    spark: {own}")
    )
    of_all = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.shuffle.partitions": "8"}
    assert pipeline.spark_of(pipeline.stage("orders")) == of_all
    assert pipeline.spark_of(pipeline.stage("joined")) == {
        **of_all,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.ansi.enabled": "false",
    }


def test_a_stage_may_write_where_it_or_its_pipeline_says_so(project):
    declared = ("early_cutoff: true => effects: allowed", "gate: joined => gate: joined\\n    effects: refused")
    pipeline = project.load(edited(*declared))
    assert [pipeline.effects_of(pipeline.stage(name)) for name in ("orders", "joined")] == ["allowed", "refused"]
    silent = project.load(edited())
    assert {silent.effects_of(stage) for stage in silent.stages} == {"refused"}


FIXED = "which is fixed when Spark's server starts | a setting that Spark can change in a session"
REFUSED = [
    ("sql.shuffle.partitions", "which names no setting of Spark | a name that begins with `spark.`"),
    ("spark.", "which names no setting of Spark"),
    ("spark.sql.debug.maxToStringFields", "since it reads Spark's plans and needs them whole"),
    ("spark.sql.files.ignoreMissingFiles", "left out without a word"),
    ("spark.master", f"{FIXED}, such as spark.sql.shuffle.partitions; see STAGEHOLD_SPARK_MASTER"),
    ("spark.jars", "see STAGEHOLD_SPARK_JARS"),
    ("spark.jars.packages", "see STAGEHOLD_SPARK_JARS"),
    ("spark.driver.memory", "see STAGEHOLD_SPARK_MEMORY"),
    ("spark.driver.maxResultSize", "start a server of your own with it, which STAGEHOLD_SPARK_REMOTE names"),
    *((name, FIXED) for name in ("spark.app.name", "spark.executor.memory", "spark.remote", "spark.sql.extensions")),
    *((name, FIXED) for name in ("spark.sql.catalog.mine", "spark.sql.warehouse.dir", "spark.connect.extensions")),
]


@pytest.mark.parametrize(("name", "said"), REFUSED)
def test_what_no_session_can_have_is_refused_with_the_reason(project, name, said):
    ((line, field, text),) = project.problems(edited(f'early_cutoff: true => spark: {{"{name}": 1}}'))
    assert (line, field) == (11, f"spark.{name}")
    assert text.startswith(f"'{name}', ")
    assert said in text
    ((line, field, again),) = project.problems(edited(f'gate: joined => spark: {{"{name}": 1}}'))
    assert (line, field, again) == (28, f"stages.joined.spark.{name}", text)


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ("[a]", "spark", "['a'] | a mapping of fields"),
        ("{spark.sql.ansi.enabled: }", "spark.spark.sql.ansi.enabled", "nothing | text"),
        ("{spark: {sql.ansi.enabled: true}}", "spark.spark", "a mapping | text"),
    ],
)
def test_settings_of_another_shape_are_refused(project, given, field, said):
    assert project.problems(edited(f"early_cutoff: true => spark: {given}")) == [(11, field, said)]


def test_what_a_function_may_do_is_one_of_two_words(project):
    problem = (28, "stages.joined.effects", "'allow' | refused, allowed (did you mean allowed?)")
    assert project.problems(edited("gate: joined => effects: allow")) == [problem]


def test_what_sessions_are_opened_with_is_refused():
    names = ("ALWAYS_OWN_CLASSES", "OWN_FILES_AND_WORKERS", "COLUMNAR_UDF_INPUT", "WHOLE_PLANS")
    assert {getattr(sessions, name) for name in names} <= set(OWN)


def test_what_stagehold_starts_its_server_with_and_no_session_can_change_is_refused(tmp_path):
    changeable = {
        "spark.databricks.delta.snapshotPartitions",
        "spark.sql.session.timeZone",
        "spark.sql.shuffle.partitions",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism",
    }
    started = [name for name in server_configuration(Settings(home=str(tmp_path))) if "hadoop" not in name]
    assert {name for name in started if refusal_of(name) is None} == changeable


def test_settings_that_are_named_instead_exist():
    known = Settings().environment
    assert [setting for setting in SET_FOR_THE_SERVER.values() if setting not in known] == []
