"""Tools for the tests of a project's functions."""

from __future__ import annotations

import atexit
import functools
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from stagehold.code.project_archive import whole_archive
from stagehold.settings import Settings, load_settings
from stagehold.spark.calls.call_watch import watch_of
from stagehold.spark.ports import free_port
from stagehold.spark.server.server import spark_server, stop_server
from stagehold.spark.session.project_modules import as_active, send_archive
from stagehold.spark.session.sessions import open_session, release_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests are short: Java's second compiler, and Spark's own, cost them more than they save.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
MEMORY = "1g"

_sessions: list[SparkSession] = []


def local_spark() -> SparkSession:
    """A Spark session as a run's functions get it, in whose lake nothing is: frames are the test's own.

    It is of Spark Connect, with the settings and the project's modules that runs have, and names of views mean what
    they mean there. Its server is started by the
    first call in a process, which takes some 10 seconds, and ends with that process, however that ends. Until the
    session is stopped, it is the one that every call and `SparkSession.builder.getOrCreate()` give.

    :raises JarsUnusable: `python -m stagehold.local.setup` has to get Spark's JARs first.
    """
    if not _sessions:
        _sessions.append(_new_session(_server()))
    return _sessions[-1]


@functools.cache
def _server() -> Settings:
    """The settings of a server that runs until this process ends, in a home that is deleted then."""
    ending = ExitStack()
    home = ending.enter_context(TemporaryDirectory(prefix="stagehold-tests-"))
    settings = _settings(home)
    with ending:
        ending.callback(stop_server, settings)  # before its home goes
        ending.enter_context(spark_server(settings, f"tests of {settings.project}"))
        atexit.register(ending.pop_all().close)
    return settings


def _settings(home: str) -> Settings:
    """The project's settings, but for those that must not be shared with its runs."""
    found = load_settings()
    usual: Any = dict.fromkeys(("lake", "ledger", "sandbox", "spark_remote", "spark_master"), "")
    return replace(
        found,
        **usual,
        home=home,
        spark_port=free_port(),
        spark_cores=1,
        spark_linger=0,  # nobody comes to this home again
        spark_memory=MEMORY,
        spark_java_options=f"{QUICK_JAVA} {found.spark_java_options}".strip(),
    )


def _new_session(settings: Settings) -> SparkSession:
    from stagehold.spark.session.stage_session import LocalSession

    name = str(uuid4())
    with ExitStack() as ending:
        ending.callback(_sessions.clear)
        ending.callback(release_session, settings, name)
        spark: Any = LocalSession.of(open_session(settings, name))
        send_archive(spark, whole_archive(Path(settings.project)))
        ending.enter_context(as_active(spark))
        # As in a run, a view's name means what it meant when it was used.
        ending.enter_context(watch_of(spark, settings.project).calling("tests", (), may_write=True))
        spark.ending = ending.pop_all()
    return spark  # type: ignore[no-any-return]
