from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stagehold.run import server_files
from stagehold.run.server_files import read_state, server_configuration, server_fingerprint, write_configuration
from stagehold.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(server_files, "jar_paths", lambda settings: (Path("/jars/delta.jar"), Path("/jars/storage.jar")))
    return Settings(home=str(tmp_path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.connect.grpc.binding.address", "127.0.0.1"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.jars", "/jars/delta.jar,/jars/storage.jar"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.databricks.delta.snapshotPartitions", "1"),
        ("spark.ui.enabled", "false"),
    ],
)
def test_the_server_is_given(settings: Settings, name: str, value: str) -> None:
    assert server_configuration(settings)[name] == value


def test_the_server_is_given_the_users_jars_too(settings: Settings) -> None:
    given = replace(settings, spark_jars="/drivers/a.jar,/drivers/b.jar")
    assert server_configuration(given)["spark.jars"] == "/jars/delta.jar,/jars/storage.jar,/drivers/a.jar,/drivers/b.jar"


def test_everything_the_server_writes_is_under_home(settings: Settings) -> None:
    configuration = server_configuration(settings)
    for name in ("spark.local.dir", "spark.sql.warehouse.dir"):
        assert configuration[name].startswith(settings.home)


def test_no_secret_is_in_the_configuration(settings: Settings) -> None:
    folder = write_configuration(settings)
    assert "token" not in "".join(file.read_text() for file in folder.iterdir())


@pytest.mark.parametrize(
    ("change", "same"),
    [({}, True), ({"airflow_port": 1}, True), ({"spark_memory": "3g"}, False), ({"spark_cores": 7}, False), ({"spark_port": 1}, False)],
)
def test_the_fingerprint_changes_with_what_a_running_server_cannot_take_over(
    settings: Settings, change: dict[str, object], same: bool
) -> None:
    assert (server_fingerprint(replace(settings, **change)) == server_fingerprint(settings)) is same  # type: ignore[arg-type]


def test_the_fingerprint_changes_with_the_jars(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    before = server_fingerprint(settings)
    monkeypatch.setattr(server_files, "pinned_jars", lambda: {"delta.jar": "another hash"})
    assert server_fingerprint(settings) != before


@pytest.mark.parametrize("text", ["", "{}", '{"pid": 1}', "[]"])
def test_a_record_that_cannot_be_read_is_as_good_as_none(settings: Settings, text: str) -> None:
    folder = settings.home_path / "spark"
    folder.mkdir()
    (folder / "server.json").write_text(text)
    assert read_state(settings) is None
