from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stagehold.errors import InvalidSetting
from stagehold.settings import Settings
from stagehold.spark.server.configuration import server_configuration, server_fingerprint, write_configuration
from stagehold.spark.server.java import jar_folder, jar_paths, pinned_jars
from stagehold.spark.server.server_record import read_state, server_log


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A home whose cache has the pinned JARs, as far as their names tell."""
    made = Settings(home=str(tmp_path), cache=str(tmp_path / "cache"))
    jar_folder(made).mkdir(parents=True)
    for name in pinned_jars():
        (jar_folder(made) / name).touch()
    return made


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.connect.grpc.binding.address", "127.0.0.1"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.databricks.delta.snapshotPartitions", "1"),
        ("spark.ui.enabled", "false"),
    ],
)
def test_the_server_is_given(settings: Settings, name: str, value: str) -> None:
    assert server_configuration(settings)[name] == value


@pytest.mark.parametrize(
    ("master", "users", "jars"),
    [
        ("", "", None),
        ("", "/drivers/a.jar,/drivers/b.jar", "/drivers/a.jar,/drivers/b.jar"),
        ("spark://master:7077", "", "OURS"),
        ("spark://master:7077", "/drivers/a.jar", "OURS,/drivers/a.jar"),
    ],
)
def test_jars_that_are_not_on_the_servers_class_path_are_sent(
    settings: Settings, master: str, users: str, jars: str | None
) -> None:
    given = replace(settings, spark_master=master, spark_jars=users)
    ours = ",".join(map(str, jar_paths(settings)))
    assert server_configuration(given).get("spark.jars") == (jars and jars.replace("OURS", ours))


def test_the_users_options_of_java_come_last_so_they_win(settings: Settings) -> None:
    """Of two values of one option Java takes the second."""
    given = replace(settings, spark_java_options="-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=64m")
    ours, cache, users = server_configuration(given)["spark.driver.extraJavaOptions"].partition(
        "ReservedCodeCacheSize="
    )
    assert "ExitOnOutOfMemoryError" in ours
    assert cache
    assert users.startswith("512m")
    assert users.endswith(given.spark_java_options)


def test_more_settings_of_spark_come_last_so_they_win(settings: Settings) -> None:
    given = replace(settings, spark_conf='{"spark.memory.fraction": "0.7", "spark.driver.memory": "3g"}')
    found = server_configuration(given)
    assert (found["spark.memory.fraction"], found["spark.driver.memory"]) == ("0.7", "3g")
    assert server_fingerprint(given) != server_fingerprint(settings)


@pytest.mark.parametrize("given", ["{", "[1]", '{"spark.x": 1}', "spark.x=hush"])
def test_settings_that_are_no_object_of_texts_are_refused_and_not_shown(settings: Settings, given: str) -> None:
    with pytest.raises(InvalidSetting, match="STAGEHOLD_SPARK_CONF") as refused:
        server_configuration(replace(settings, spark_conf=given))
    assert "hush" not in str(refused.value)


def test_a_server_may_have_a_folder_of_its_own(settings: Settings, tmp_path: Path) -> None:
    given = replace(settings, spark_folder=str(tmp_path / "fast" / "disk"))
    assert server_configuration(given)["spark.local.dir"] == str(tmp_path / "fast" / "disk" / "local")
    assert server_log(given) == tmp_path / "fast" / "disk" / "spark.log"
    assert server_log(settings) == tmp_path / "logs" / "spark.log"


def test_everything_the_server_writes_is_under_home(settings: Settings) -> None:
    configuration = server_configuration(settings)
    for name in ("spark.local.dir", "spark.sql.warehouse.dir"):
        assert configuration[name].removeprefix("file://").startswith(settings.home)


def test_no_secret_is_in_the_configuration(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "hush-hush")
    folder = write_configuration(settings)
    written = "".join(file.read_text() for file in folder.iterdir())
    assert "token" not in written
    assert "hush" not in written


def test_spark_is_told_of_the_object_store_that_everybody_else_finds_by_the_environment(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    before = server_fingerprint(settings)
    assert "s3a.endpoint" not in "".join(server_configuration(settings))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    found = {name: text for name, text in server_configuration(settings).items() if "s3a" in name}
    assert found == {
        "spark.hadoop.fs.s3a.committer.magic.track.commits.in.memory.enabled": "true",
        "spark.hadoop.fs.s3a.analytics.accelerator.physicalio.metadatastore.ttl": "1",
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-central-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }
    assert server_fingerprint(settings) != before
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://store.example")
    assert "spark.hadoop.fs.s3a.connection.ssl.enabled" not in server_configuration(settings)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"airflow_port": 1}, True),
        ({"spark_memory": "3g"}, False),
        ({"spark_cores": 7}, False),
        ({"spark_port": 1}, False),
    ],
)
def test_the_fingerprint_changes_with_what_a_running_server_cannot_take_over(
    settings: Settings, change: dict[str, object], same: bool
) -> None:
    assert (server_fingerprint(replace(settings, **change)) == server_fingerprint(settings)) is same  # type: ignore[arg-type]


def test_the_fingerprint_changes_with_the_jars(settings: Settings) -> None:
    assert server_fingerprint(settings, {"delta.jar": "another hash"}) != server_fingerprint(settings)


@pytest.mark.parametrize("text", ["", "{}", '{"pid": 1}', "[]"])
def test_a_record_that_cannot_be_read_is_as_good_as_none(settings: Settings, text: str) -> None:
    folder = settings.home_path / "spark"
    folder.mkdir()
    (folder / "server.json").write_text(text)
    assert read_state(settings) is None


@pytest.mark.parametrize(
    ("master", "cluster", "here"),
    [
        ("", False, True),
        ("local[4]", False, True),
        ("local", False, True),
        ("local-cluster[2,1,1024]", True, True),
        ("spark://127.0.0.1:7077", True, True),
        ("spark://spark-master:7077", True, False),
        ("yarn", True, False),
    ],
)
def test_on_a_cluster_bad_hosts_are_left_out_and_executors_can_reach_the_server(
    settings: Settings, master: str, cluster: bool, here: bool
) -> None:
    configuration = server_configuration(replace(settings, spark_master=master))
    assert configuration["spark.master"] == (master or "local[2]")
    assert configuration.get("spark.excludeOnFailure.enabled") == ("true" if cluster else None)
    assert configuration.get("spark.driver.bindAddress") == ("127.0.0.1" if here else None)
    assert configuration["spark.connect.grpc.binding.address"] == "127.0.0.1"
    if cluster:
        assert int(configuration["spark.excludeOnFailure.task.maxTaskAttemptsPerNode"]) < int(
            configuration["spark.task.maxFailures"]
        )


def test_the_log_tells_what_yarn_says_of_the_application(settings: Settings) -> None:
    """Its id, by which `yarn logs` finds it, and that it waits in a queue, are told below the level of the rest."""
    levels = (write_configuration(settings) / "log4j2.properties").read_text().splitlines()
    assert "rootLogger.level = warn" in levels
    assert "logger.yarn.name = org.apache.spark.deploy.yarn.Client" in levels
    assert "logger.yarn.level = info" in levels
