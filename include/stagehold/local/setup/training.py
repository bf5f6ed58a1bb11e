"""A real run of a small pipeline on a server that then writes the archive of the classes it has loaded."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from stagehold.settings import Settings
from stagehold.spark.ports import free_port
from stagehold.spark.processes import python_environment, wait_until
from stagehold.spark.server.class_archive import ArchivePlace, archive_place
from stagehold.spark.server.configuration import class_path
from stagehold.spark.server.java import java_home
from stagehold.spark.server.server_record import read_state

TEMPLATE = Path(__file__).with_name("training")
PLACES = {
    "training.yaml": "include/pipelines/training.yaml",
    "suite.yaml": "include/suites/training.yaml",
    "training.py": "jobs/training.py",
}
CUSTOMERS = ("ann", "bob", "carla", "dana")
RUN_SECONDS = 300.0
ARCHIVE_SECONDS = 180.0

log = logging.getLogger(__name__)


def lacking_archive(settings: Settings) -> ArchivePlace | None:
    """Where the archive for this Java and these JARs has to be made, if it is not there."""
    place = archive_place(settings, java_home(settings), class_path(settings))
    return place if place and not any(place.archives()) else None


def make_archive(settings: Settings, place: ArchivePlace) -> bool:
    """Whether it is there now; without it all works, and every start of Spark takes twice as long."""
    with TemporaryDirectory(prefix="stagehold-training-") as folder:
        project = Path(folder)
        _write_project(project)
        own = _own_settings(settings, project)
        command = [sys.executable, "-m", "stagehold", "run", "training"]
        environment = dict(python_environment(own))
        try:
            subprocess.run(command, env=environment, cwd=folder, capture_output=True, timeout=RUN_SECONDS, check=True)
        except subprocess.CalledProcessError as error:
            log.warning("the training run ended with %s: %s", error.returncode, error.stderr.decode()[-500:].strip())
        except subprocess.TimeoutExpired as error:
            log.warning("the training run: %s", error)
        ended = wait_until(lambda: read_state(own) is None, ARCHIVE_SECONDS)
    return ended and any(place.archives())


def _own_settings(settings: Settings, project: Path) -> Settings:
    """Settings of our own, with nothing of the user's but the cache."""
    include = project / "include"
    return Settings(
        cache=settings.cache,
        project=str(project),
        home=str(project / "home"),
        pipelines=str(include / "pipelines"),
        suites=str(include / "suites"),
        spark_port=free_port(),
    )


def _write_project(project: Path) -> None:
    for name, place in PLACES.items():
        (project / place).parent.mkdir(parents=True, exist_ok=True)
        (project / place).write_text((TEMPLATE / f"{name}.txt").read_text())
    raw = project / "home" / "lake" / "raw"
    for part in range(2):
        _write_orders(raw / "orders" / f"{part}.csv", part)
    (raw / "customers").mkdir()
    table = pa.table({"name": list(CUSTOMERS), "country": ["Malta", "Chad", "Japan", "Ghana"]})
    pq.write_table(table, raw / "customers" / "all.parquet")


def _write_orders(file: Path, part: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = (
        f"{n},{CUSTOMERS[n % len(CUSTOMERS)]},{n}.50,2026-01-0{n % 9 + 1}" for n in range(part * 20, part * 20 + 20)
    )
    file.write_text("\n".join(["id,customer,amount,day", *rows, ""]))
