"""An Airflow that somebody already has: an environment of its own, into which the wheel is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.conftest import free_port

from stagehold.settings import PROJECT, load_settings

PROBE = Path(__file__).with_name("probe.py")
PACKAGED = ("include", "pyproject.toml", "README.md", "LICENSE")
PINS = re.compile(r"^(?!importlib-metadata=)(\S+==\S+(?: ; [^\\\n]+)?) \\$", re.MULTILINE)
# What the own tests of a new project need besides.
TEST_RUNNER = "pytest>=8.3"
# Settings of this process; PySpark notes in the last that it has had a session over Spark Connect.
OURS = ("AIRFLOW", "STAGEHOLD", "PYTHON", "SPARK")


@dataclass(frozen=True)
class OtherAirflow:
    """Nothing of this process's Python path, settings or sessions reaches it, but the cache with Spark's JARs."""

    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def python(self) -> Path:
        return self.folder / "environment" / "bin" / "python"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith(OURS)}
        return kept | {
            "PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}",
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.project / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
            "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of this test run, long enough for signatures to be accepted",
            "STAGEHOLD_CACHE": load_settings().cache,
            "STAGEHOLD_SPARK_PORT": str(self.port),
        }

    def install(self, resolution: str) -> None:
        """The wheel with all its extras, and what they depend on: as locked here, or the lowest that it allows."""
        wheel = build_wheel(self.folder)
        self.make_environment()
        how = ["-c", str(PROJECT / "requirements.txt")] if resolution == "highest" else ["--resolution", resolution]
        self.add(*how, f"{wheel}[all]", TEST_RUNNER)

    def make_environment(self) -> None:
        _run([sys.executable, "-m", "venv", "--without-pip", str(self.folder / "environment")])

    def add(self, *words: str) -> None:
        """Install into the environment; ``words`` are as pip's."""
        _run([*_installer(), "--python", str(self.python), *words])

    def constraints(self) -> tuple[str, str]:
        """For `add`: as locked here, but for what delta-spark bounds and nothing else does, which is the newest."""
        place = self.folder / "constraints.txt"
        place.write_text("\n".join(PINS.findall((PROJECT / "requirements.txt").read_text())))
        return "-c", str(place)

    def megabytes(self) -> int:
        """What all that is installed takes on the disk."""
        return sum(self.folders().values()) // 1024

    def folders(self) -> dict[str, int]:
        """That of each folder and file among what is installed, in kilobytes."""
        (packages,) = self.folder.glob("environment/lib/python3*/site-packages")
        lines = _run(["du", "-sk", *map(str, packages.iterdir())]).splitlines()
        return {Path(place).name: int(size) for size, place in (line.split("\t") for line in lines)}

    def versions(self) -> dict[str, str]:
        """What is installed, by name."""
        code = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
        return dict(json.loads(self.run("python", "-c", code)))

    def run(self, *words: str, folder: Path | None = None, **variables: str) -> str:
        """What the command prints; ``folder`` is where it is called, by default not the project."""
        command = [str(self.python.parent / words[0]), *words[1:]]
        return _run(command, cwd=folder or self.folder, env={**self.environment, **variables})

    def refused(self, *words: str, **variables: str) -> str:
        """What a command says that is refused in the project."""
        command = [str(self.python.parent / words[0]), *words[1:]]
        environment = {**self.environment, **variables}
        done = subprocess.run(command, cwd=self.project, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1, f"{command}\n{done.stdout}\n{done.stderr}"
        return " ".join(done.stderr.split())

    def probe(self, **variables: str) -> dict[str, Any]:
        """What this Airflow says of the project, after it has loaded the DAG files."""
        answer = self.run("python", str(PROBE), str(self.project), **variables)
        return dict(json.loads(answer.splitlines()[-1]))


def build_wheel(folder: Path) -> Path:
    """Of a copy, so that nothing is in it that an earlier build has left."""
    source, built = folder / "source", folder / "wheel"
    source.mkdir()
    for name in PACKAGED:
        place = PROJECT / name
        if place.is_dir():
            shutil.copytree(place, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(place, source / name)
    build = "from setuptools.build_meta import build_wheel; import sys; build_wheel(sys.argv[1])"
    built.mkdir()
    _run([sys.executable, "-c", build, str(built)], cwd=source)
    (wheel,) = built.glob("*.whl")
    return wheel


def _installer() -> list[str]:
    """uv takes a quarter of pip's time; where there is none pip will do, which has no lowest versions."""
    if find_spec("uv"):
        return [sys.executable, "-m", "uv", "pip", "install", "--quiet"]
    if found := shutil.which("uv"):
        return [found, "pip", "install", "--quiet"]
    raise AssertionError("uv is not installed: run `make setup`")


def _run(command: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
    return done.stdout
