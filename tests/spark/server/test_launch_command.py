"""How the server's Java is called, beside how Spark's own launcher would."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stagehold.errors import InvalidSetting, SparkUnavailable
from stagehold.settings import Settings
from stagehold.spark.server.configuration import class_path, require_submittable, server_command, spark_home
from stagehold.spark.server.server import LaunchedServer, await_ready, server_environment
from stagehold.spark.server.server_record import ServerState, server_log

JARS = (Path("/jars/a.jar"), Path("/jars/b.jar"))
# Unknown to Java 17 or 21, for another program, or what keeps Java from taking its own modules from an archive.
LEFT_OUT = {
    "--add-modules=jdk.incubator.vector",
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    return Settings(home=str(tmp_path))


def command(settings: Settings) -> list[str]:
    return server_command(settings, Path("/java"), JARS, ("-XX:SharedArchiveFile=/a.jsa",))


def test_java_has_every_option_that_sparks_launcher_would_give_it(settings: Settings) -> None:
    launcher = [spark_home() / "bin" / "spark-class", "org.apache.spark.deploy.SparkSubmit", "--version"]
    told = subprocess.run(
        launcher, env={**os.environ, "SPARK_PRINT_LAUNCH_COMMAND": "1"}, capture_output=True, text=True, check=True
    )
    (line,) = (line for line in told.stderr.splitlines() if line.startswith("Spark Command: "))
    options = {word for word in line.split() if word.startswith("-") and word not in ("-cp", "--version")}
    sparks = {option for option in options if not option.startswith("-Xmx")}
    assert sparks - LEFT_OUT == sparks & set(command(settings))


def test_no_folder_is_on_the_class_path_but_those_of_hadoop_behind_all_jars(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command(settings)[:3] == ["/java/bin/java", "-cp", "/jars/a.jar:/jars/b.jar"]
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/yarn")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert command(settings)[2] == "/jars/a.jar:/jars/b.jar:/etc/hadoop:/etc/yarn"


def test_the_users_options_of_java_come_behind_ours_and_are_read_as_a_shell_does(settings: Settings) -> None:
    given = Settings(home=settings.home, spark_memory="3g", spark_java_options='-Xss2m -Da="b c"')
    words = command(given)
    assert "-Xmx3g" in words
    assert words[words.index("-Xss2m") + 1] == "-Da=b c"
    assert words.index("-Xss2m") > words.index("-XX:+ExitOnOutOfMemoryError")


def test_the_class_path_is_always_in_one_order() -> None:
    jars = class_path(Settings())
    spark = [jar for jar in jars if jar.parent == spark_home() / "jars"]
    assert list(jars[: len(spark)]) == sorted(spark)
    assert len(jars) > len(spark) > 200


@pytest.mark.parametrize(
    ("conf", "python"),
    [
        ("", sys.executable),
        ('{"spark.pyspark.python": "/opt/python/bin/python"}', "/opt/python/bin/python"),
        ('{"spark.pyspark.python": "./py/bin/python", "spark.archives": "py.tar.gz#py"}', "../py/bin/python"),
    ],
)
def test_functions_run_in_the_python_that_the_settings_of_spark_name(
    settings: Settings, conf: str, python: str
) -> None:
    """Spark Connect asks the environment, and never looks at the setting. It runs functions in a folder of the session,
    below the one in which an executor unpacks archives.
    """
    given = replace(settings, spark_conf=conf)
    assert server_environment(given, Path("/java"), "token")["PYSPARK_PYTHON"] == python


def test_yarn_is_found_by_a_folder_of_its_configuration(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_yarn = replace(settings, spark_master="yarn")
    with pytest.raises(InvalidSetting, match=r"STAGEHOLD_SPARK_MASTER is 'yarn'.*HADOOP_CONF_DIR or YARN_CONF_DIR"):
        require_submittable(on_yarn)
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path / "no folder"))
    with pytest.raises(InvalidSetting, match=r"YARN_CONF_DIR is '.*no folder'"):
        require_submittable(on_yarn)
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    require_submittable(on_yarn)


def test_a_driver_in_the_cluster_is_refused_since_nobody_here_could_reach_it(settings: Settings) -> None:
    with pytest.raises(InvalidSetting, match=r"spark\.submit\.deployMode of STAGEHOLD_SPARK_CONF is 'cluster'"):
        require_submittable(replace(settings, spark_conf='{"spark.submit.deployMode": "cluster"}'))
    require_submittable(replace(settings, spark_conf='{"spark.submit.deployMode": "client"}'))


@pytest.mark.parametrize(
    ("is_abandoned", "told"),
    [(True, "nobody waits for it any more"), (False, r"did not start within 1 s \(STAGEHOLD_SPARK_START_SECONDS\)")],
)
def test_a_server_that_waits_in_a_queue_is_waited_for_as_long_as_somebody_wants_it_and_the_settings_say(
    settings: Settings, is_abandoned: bool, told: str
) -> None:
    given = replace(settings, spark_start_seconds=1)
    server_log(given).parent.mkdir(parents=True)
    server_log(given).write_text("Application report for application_1_0001 (state: ACCEPTED)\n")
    with subprocess.Popen(["sleep", "60"]) as child, subprocess.Popen(["sleep", "60"]) as warm_up:
        server = LaunchedServer(child, warm_up, ServerState(child.pid, 0, 0, "", "", "", 0, 0, False), None)
        try:
            with pytest.raises(SparkUnavailable, match=told) as refused:
                await_ready(given, server, lambda: is_abandoned)
        finally:
            child.kill()
            warm_up.kill()
    assert ("state: ACCEPTED" in str(refused.value)) is not is_abandoned
