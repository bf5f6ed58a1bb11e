from __future__ import annotations

from pathlib import Path

import pytest

from stagehold.errors import InvalidSetting
from stagehold.settings import Settings, load_settings


def test_defaults_follow_from_the_home():
    settings = load_settings({"STAGEHOLD_HOME": "/somewhere"})
    assert settings.lake_uri == "/somewhere/lake"
    assert settings.ledger_url == "sqlite:////somewhere/ledger.db"


def test_settings_survive_the_way_through_an_environment():
    settings = Settings(home="/somewhere", spark_cores=7, lake="s3://bucket/lake", only_spark_writer=True)
    assert load_settings(settings.environment) == settings


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("STAGEHOLD_SPARK_PORT", "many", "a whole number"),
        ("STAGEHOLD_ONLY_SPARK_WRITER", "perhaps", "true or false"),
    ],
)
def test_a_bad_setting_is_named_with_what_is_allowed(name, given, allowed):
    with pytest.raises(InvalidSetting, match=f"{name}.*{given}.*{allowed}"):
        load_settings({name: given})


def test_an_unknown_variable_is_told_once_with_the_nearest_name(caplog):
    environment = {"STAGEHOLD_LAEK": "s3://secret", "STAGEHOLD_SPARK_CORES": "3"}
    assert [load_settings(environment) for _ in range(3)] == [Settings(spark_cores=3)] * 3
    (warning,) = caplog.messages
    assert "STAGEHOLD_LAEK" in warning
    assert "nearest name is STAGEHOLD_LAKE;" in warning
    assert "secret" not in warning


def test_variables_of_others_and_of_the_tests_do_not_matter():
    assert load_settings({"PATH": "/bin", "STAGEHOLD_TEST_POSTGRES_URL": "x"}) == Settings()


def test_a_sandbox_has_a_lake_and_a_ledger_of_its_own():
    own = load_settings({"STAGEHOLD_HOME": "/somewhere", "STAGEHOLD_SANDBOX": "fix-1"})
    assert own.lake_uri == "/somewhere/sandboxes/fix-1/lake"
    assert own.ledger_url == "sqlite:////somewhere/sandboxes/fix-1/ledger.db"
    assert own.production == Settings(home="/somewhere")
    assert load_settings(own.environment) == own


@pytest.mark.parametrize(
    ("lake", "sandboxes", "expected"),
    [
        ("s3://b/some/lake/", "", "s3://b/some/lake-sandboxes/fix/lake"),
        ("s3://b", "s3://b-tries/x/", "s3://b-tries/x/fix/lake"),
        ("/data/lake", "", "/home/sandboxes/fix/lake"),
        ("/data/lake", "/scratch", "/scratch/fix/lake"),
    ],
)
def test_sandboxes_lie_beside_the_lake_or_where_a_setting_says(lake, sandboxes, expected):
    assert Settings(home="/home", lake=lake, sandboxes=sandboxes).in_sandbox("fix").lake_uri == expected


@pytest.mark.parametrize(
    ("ledger", "expected"),
    [
        ("postgresql://u:p%40@h/d", "postgresql://u:p%40@h/d?options=-csearch_path%3Dsandbox_fix_1"),
        (
            "postgresql://u@/d?host=%2Ftmp&options=-csearch_path%3Dfirst",
            "postgresql://u@/d?host=%2Ftmp&options=-csearch_path%3Dfirst+-csearch_path%3Dsandbox_fix_1",
        ),
        ("sqlite:////production/ledger.db", "sqlite:////home/sandboxes/fix-1/ledger.db"),
    ],
)
def test_the_ledger_of_a_sandbox_is_a_schema_or_a_file_of_its_own(ledger, expected):
    assert Settings(home="/home", ledger=ledger).in_sandbox("fix-1").ledger_url == expected


@pytest.mark.parametrize("name", ["Fix", "fix_1", "-fix", "..", "a/b", "a" * 41])
def test_a_name_that_is_no_folder_and_schema_is_refused(name):
    with pytest.raises(InvalidSetting, match=r"STAGEHOLD_SANDBOX.*small letters, digits and -"):
        load_settings({"STAGEHOLD_SANDBOX": name})


@pytest.mark.parametrize(
    ("lake", "sandboxes"),
    [
        ("/home", ""),
        ("/data/lake", "/data/lake/tries"),
        ("/data/tries/fix/lake/production", "/data/tries"),
        ("/data/tries/fix/lake", "/data/tries"),
        ("s3://b/lake", "s3://b/lake/tries"),
        ("s3://b", ""),  # b-sandboxes may be somebody else's
        ("s3://b", "s3://b/tries"),
    ],
)
def test_a_sandbox_that_production_would_overlap_is_refused(lake, sandboxes):
    with pytest.raises(InvalidSetting, match="STAGEHOLD_SANDBOXES"):
        Settings(home="/home", lake=lake, sandboxes=sandboxes).in_sandbox("fix")


@pytest.mark.parametrize(
    "ledger", ["sqlite:////home/sandboxes/fix-1/ledger.db", "postgresql://u@h/d?options=-csearch_path%3Dsandbox_fix_1"]
)
def test_a_sandbox_whose_ledger_would_be_productions_is_refused(ledger):
    with pytest.raises(InvalidSetting, match="STAGEHOLD_SANDBOX is 'fix-1'; allowed: another name"):
        Settings(home="/home", ledger=ledger).in_sandbox("fix-1")


def test_links_do_not_hide_that_two_lakes_are_one(tmp_path):
    (tmp_path / "lake").mkdir()
    (tmp_path / "tries").symlink_to(tmp_path / "lake")
    with pytest.raises(InvalidSetting, match="STAGEHOLD_SANDBOXES"):
        Settings(lake=str(tmp_path / "lake"), sandboxes=str(tmp_path / "tries")).in_sandbox("fix")


def test_tables_of_production_are_only_read_in_a_sandbox():
    production = Settings(home="/home", lake="/data/lake/")
    own = production.in_sandbox("fix")
    assert own.reads_only("/data/lake/stages/sales/orders/2026-11-20")
    assert not own.reads_only("/data/lake-2/stages")
    assert not own.reads_only(f"{own.lake_uri}/stages/sales")
    assert not production.reads_only("/data/lake/stages")


def test_the_folders_of_a_project_have_their_usual_names(tmp_path):
    pipelines = tmp_path / "include" / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines / "one.yaml").touch()
    usual = load_settings({"STAGEHOLD_PROJECT": str(tmp_path)})
    assert (usual.project, usual.pipelines, usual.home) == (str(tmp_path), str(pipelines), str(tmp_path / ".stagehold"))
    assert load_settings({}, project=str(tmp_path)) == load_settings({}, project=str(pipelines)) == usual


def test_a_project_that_a_dag_file_names_counts_more_than_a_variable_but_for_where_its_state_is(tmp_path):
    environment = {"STAGEHOLD_PROJECT": "/other", "STAGEHOLD_PIPELINES": "/other", "STAGEHOLD_HOME": "/state"}
    found = load_settings(environment, project=str(tmp_path))
    assert (found.project, found.home) == (str(tmp_path), "/state")
    assert found.pipelines == str(tmp_path / "include" / "pipelines")


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A project, from another folder than its own."""
    for folder in ("project", "shell"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "shell")
    return tmp_path / "project"


RELATIVE = {
    "STAGEHOLD_HOME": ("home", "state", "{project}/state"),
    "STAGEHOLD_CACHE": ("cache", "../cache", "{project}/../cache"),
    "STAGEHOLD_IVY_SETTINGS": ("ivy_settings", "ivy.xml", "{project}/ivy.xml"),
    "STAGEHOLD_LAKE": ("lake_uri", "data/lake", "{project}/data/lake"),
    "STAGEHOLD_LEDGER": ("ledger_url", "sqlite:///data/ledger.db?timeout=9", "sqlite:///{project}/data/ledger.db?timeout=9"),
    "STAGEHOLD_PIPELINES": ("pipelines", "flows", "{project}/flows"),
    "STAGEHOLD_SUITES": ("suites", "./gates", "{project}/gates"),
    "STAGEHOLD_SANDBOXES": ("sandboxes_uri", "tries", "{project}/tries"),
    "STAGEHOLD_SPARK_JARS": ("spark_jars", "a.jar,/b.jar,s3a://c/d.jar", "{project}/a.jar,/b.jar,s3a://c/d.jar"),
}  # fmt: skip


@pytest.mark.parametrize("project", ["{project}", "../project"])
def test_relative_places_are_seen_from_the_projects_folder_and_that_from_the_shells(elsewhere, project):
    environment = {variable: text for variable, (_, text, _) in RELATIVE.items()}
    found = load_settings({**environment, "STAGEHOLD_PROJECT": project.format(project=elsewhere)})
    read = {variable: getattr(found, field) for variable, (field, _, _) in RELATIVE.items()}
    assert read == {variable: text.format(project=elsewhere) for variable, (_, _, text) in RELATIVE.items()}
    assert Path(found.project).resolve() == elsewhere
    assert load_settings(found.environment) == found


def test_relative_places_are_those_of_the_project_that_a_dag_file_names(elsewhere):
    assert load_settings({"STAGEHOLD_LAKE": "lake"}, project=str(elsewhere)).lake_uri == f"{elsewhere}/lake"


def test_relative_places_are_called_as_they_were_from_the_projects_folder(elsewhere, monkeypatch):
    (elsewhere.parent / "link").symlink_to(elsewhere)
    monkeypatch.chdir(elsewhere.parent / "link")
    found = load_settings({"STAGEHOLD_LAKE": "lake", "STAGEHOLD_PROJECT": str(elsewhere.parent / "link")})
    assert found.lake_uri == str(Path("lake").absolute())


@pytest.mark.parametrize(
    "ledger",
    ["sqlite:////a/b.db", "sqlite:///:memory:", "sqlite://", "postgresql://u@h/d", "sqlite:///file:x?uri=true"],
)
def test_a_ledger_that_is_in_no_relative_file_is_left_as_it_is(elsewhere, ledger):
    assert load_settings({"STAGEHOLD_LEDGER": ledger}, project=str(elsewhere)).ledger_url == ledger
