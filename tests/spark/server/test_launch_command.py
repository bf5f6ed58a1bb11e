"""How the server's Java is called, beside how Spark's own launcher would."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stagehold.settings import Settings
from stagehold.spark.server.configuration import class_path, server_command, spark_home

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
