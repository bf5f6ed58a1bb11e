"""Can pipelines run on the Spark server that the settings name, and what is missing there?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from stagehold.errors import StageholdError
from stagehold.lake.store.files import Files, files_at
from stagehold.lake.store.location import OBJECT_STORE, REMEMBERS_FILES, spark_uri
from stagehold.settings import Settings
from stagehold.spark.server.configuration import on_cluster
from stagehold.spark.server.java import pinned_jars
from stagehold.spark.session.result_settings import DELTA_VERSION
from stagehold.spark.session.sessions import open_session, release_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS = 8  # tasks, so that more than one worker is asked
FEW, MANY = 1, 1000  # rows, of files that differ in length
PROBES = "_check"  # no table's name begins so
DELTA_JARS = ("delta", "unitycatalog")
_REMEMBERS = (
    "It knows a file of a bucket as it was before somebody wrote it anew: start the server with "
    f"spark.hadoop.{REMEMBERS_FILES}=1."
)


@dataclass(frozen=True)
class ServerFact:
    """Something that a pipeline needs of its server. ``said`` is what is there; ``change`` what to do where it is
    not, empty if it is.
    """

    what: str
    said: str
    change: str = ""

    @property
    def well(self) -> bool:
        return not self.change


def server_facts(settings: Settings) -> Iterator[ServerFact]:
    """Each as it is found out; the first that is not there may be the last. Leaves nothing behind."""
    name = str(uuid4())
    try:
        spark = open_session(settings, name, wait_seconds=0)
    except StageholdError as error:
        yield ServerFact("session", type(error).__name__, str(error))
        return
    try:
        yield ServerFact("session", f"Spark {spark.version}, as here, lets us in")
        for what, look, change in (
            ("Delta", _delta, _how_to_add("Delta's JARs", DELTA_JARS)),
            ("Python of workers", _python, _python_change(settings)),
        ):
            yield _looked(what, spark, look, change)
        lake = _looked("lake", spark, lambda spark: _lake(spark, settings), _lake_change(settings))
        yield lake
        if lake.well and settings.lake_uri.startswith(OBJECT_STORE):
            yield _looked("changed files", spark, lambda spark: _written_anew(spark, settings), _REMEMBERS)
    finally:
        release_session(settings, name)


def _looked(what: str, spark: SparkSession, look: Callable[[SparkSession], str], change: str) -> ServerFact:
    try:
        return ServerFact(what, look(spark))
    except Exception as error:  # noqa: BLE001 - whatever it is, is what is wrong with the server
        return ServerFact(what, _first_line(error), change)


def _delta(spark: SparkSession) -> str:
    return f"Delta {spark.sql(DELTA_VERSION).collect()[0][0]}"


def _python(spark: SparkSession) -> str:
    """What Python functions find where they run. The function is sent as it is, so that workers need no Stagehold."""
    from pyspark.sql.functions import udf

    def about_worker() -> str:
        import importlib.metadata
        import json
        import os
        import platform
        import socket

        packages = {}
        for package in ("pyarrow", "pandas"):
            try:
                packages[package] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                packages[package] = ""
        worker = f"{socket.gethostname()} {os.getppid()}"
        return json.dumps({"python": platform.python_version(), "worker": worker, **packages})

    asked = spark.range(0, PARTS, 1, PARTS).select(udf(lambda _: about_worker(), "string")("id").alias("said"))
    found = [json.loads(row.said) for row in asked.collect()]
    missing = sorted({package for each in found for package in ("pyarrow", "pandas") if not each[package]})
    if missing:
        raise RuntimeError(f"{' and '.join(missing)} not installed for the Python of the workers")
    versions = ", ".join(sorted({each["python"] for each in found}))
    workers = len({each["worker"] for each in found})
    return f"Python {versions} in {workers} {'worker' if workers == 1 else 'workers'}"


def _lake(spark: SparkSession, settings: Settings) -> str:
    """Whether what each task writes is read here, and is gone when it is deleted here."""
    with _probe(settings) as (files, folder, place):
        spark.range(0, PARTS, 1, PARTS).write.parquet(place)
        found = _parquet(files, folder)
        if len(found) < PARTS:
            raise FileNotFoundError(f"{PARTS} files were written, and {len(found)} of them are there for this process")
        return f"{settings.lake_uri} is written there and read here"


def _written_anew(spark: SparkSession, settings: Settings) -> str:
    """Whether a file of a bucket that is written anew, as files of sources are, is read as it is then."""
    with _probe(settings) as (files, folder, place):
        for rows in (FEW, MANY):
            spark.range(0, rows, 1, 1).write.parquet(f"{place}/{rows}")
        (changed,), (other,) = (_parquet(files, f"{folder}/{rows}") for rows in (FEW, MANY))
        spark.read.parquet(f"{place}/{FEW}").count()
        anew = files.read(other)
        files.remove([changed])
        files.create(changed, anew)
        if (count := spark.read.parquet(f"{place}/{FEW}").count()) != MANY:
            raise RuntimeError(f"a file of {MANY} rows was read as one of {count}")
        return "a file that is written anew is read as it is then"


@contextmanager
def _probe(settings: Settings) -> Iterator[tuple[Files, str, str]]:
    """A folder of the lake, and where it is for Spark, which is gone behind the block."""
    files, folder = files_at(settings.lake_uri), f"{PROBES}-{uuid4()}"
    try:
        yield files, folder, f"{spark_uri(settings.lake_uri)}/{folder}"
    finally:
        with suppress(OSError):
            files.delete(folder)


def _parquet(files: Files, folder: str) -> list[str]:
    return [path for path in files.sizes(folder) if path.endswith(".parquet")]


def _first_line(error: Exception) -> str:
    """A Python error of a worker ends with what it is; Java's begins so."""
    text = str(error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    python = [line for line in lines if "Error" in line or "Exception" in line]
    told = next((line for line in lines if "PYTHON_VERSION_MISMATCH" in line), "")
    return (told or (python or lines or [type(error).__name__])[0])[:300]


def _how_to_add(what: str, beginnings: tuple[str, ...]) -> str:
    names = ", ".join(name for name in pinned_jars() if name.startswith(beginnings))
    return f"Start the server with {what} in spark.jars: {names}."


def _python_change(settings: Settings) -> str:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if settings.spark_remote or on_cluster(settings):
        return f"Have Python {own} with pyarrow and pandas on each worker, named by spark.pyspark.python of the server."
    return "Run `python -m stagehold.local.setup` again."


def _lake_change(settings: Settings) -> str:
    if settings.lake_uri.startswith(OBJECT_STORE):
        jars = _how_to_add("the JARs of hadoop-aws and the AWS SDK", ("hadoop-aws", "s3-"))
        return f"{jars} It needs spark.hadoop.fs.s3.impl (S3AFileSystem), fs.s3a.endpoint and keys for the bucket."
    return "Mount the same folder on the server, on each worker and here, for the same user; or set a bucket as lake."
