"""The session that a project's own tests get is as a run's functions get it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from stagehold.settings import LIBRARY, load_settings
from stagehold.spark.processes import wait_until

pytestmark = pytest.mark.spark

RULES = """
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[2]").getOrCreate()


@F.pandas_udf("long")
def doubled(numbers):
    return numbers * 2
"""
PROGRAM = """
import sys, tempfile
sys.path.insert(0, ".")
from pathlib import Path
from pyspark.sql import SparkSession
from stagehold.local.testing import local_spark

spark = local_spark()
from jobs.rules import doubled, spark as taken
assert spark is taken is local_spark() is SparkSession.builder.appName("mine").getOrCreate()
print(spark.conf.get("spark.sql.session.timeZone"), [row[0] for row in spark.range(3).select(doubled("id")).collect()])
spark.range(3).createOrReplaceTempView("rows")
three = spark.table("rows")
spark.sql("CREATE OR REPLACE TEMP VIEW rows AS SELECT id + 1 AS id FROM rows")
assert [three.count(), spark.sql("SELECT sum(id) FROM rows").first()[0]] == [3, 6]
(server,) = Path(tempfile.gettempdir()).glob("stagehold-tests-*/spark/server.json")
first = server.read_text()
spark.stop()
spark.stop()
again = local_spark()
assert again is not spark and again.range(3).count() == 3
assert server.read_text() == first, "one server serves them all"
print(server, flush=True)
"""


@dataclass(frozen=True)
class OwnProject:
    folder: Path

    @property
    def temporary(self) -> Path:
        return self.folder / "temporary"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("STAGEHOLD_", "SPARK_"))}
        own = {"TMPDIR": self.temporary, "STAGEHOLD_PROJECT": self.folder, "STAGEHOLD_CACHE": load_settings().cache}
        return {**kept, **{name: str(text) for name, text in own.items()}, "PYTHONPATH": str(LIBRARY)}

    def start(self, program: str, **variables: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error::ResourceWarning", "-c", program]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment | variables,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def processes(self) -> list[str]:
        """Command lines of whatever works for one of its servers."""
        found = subprocess.run(["ps", "axeww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        return [line for line in found.splitlines() if str(self.temporary) in line and "ps axeww" not in line]


@pytest.fixture
def project(tmp_path: Path) -> OwnProject:
    for folder in ("temporary", "jobs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "jobs" / "rules.py").write_text(RULES)
    return OwnProject(tmp_path)


def test_one_server_gives_every_session_and_ends_with_the_process(project: OwnProject) -> None:
    program = project.start(PROGRAM)
    said, complaints = program.communicate(timeout=120)
    assert program.returncode == 0, complaints
    assert said.splitlines()[0] == "UTC [0, 2, 4]"
    assert list(project.temporary.glob("stagehold-tests-*")) == []
    assert wait_until(lambda: not project.processes(), 20), project.processes()


def test_the_server_ends_with_a_process_that_is_killed(project: OwnProject) -> None:
    program = project.start(f"{PROGRAM}\nimport time\ntime.sleep(600)\n")
    assert program.stdout is not None
    assert [program.stdout.readline() for _ in range(2)][1].startswith(str(project.temporary))
    assert project.processes()
    program.send_signal(signal.SIGKILL)
    program.communicate(timeout=60)
    assert wait_until(lambda: not project.processes(), 20), project.processes()


def test_without_jars_it_says_what_to_run(project: OwnProject) -> None:
    program = project.start(PROGRAM, STAGEHOLD_CACHE=str(project.folder / "cache"))
    _, complaints = program.communicate(timeout=60)
    assert "JarsUnusable" in complaints
    assert "run `python -m stagehold.local.setup`" in complaints
    assert list(project.temporary.glob("stagehold-tests-*")) == []
