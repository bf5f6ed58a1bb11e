"""Versions of Spark and Delta that a server computes with: they have to be this process's own, which keys count."""

from __future__ import annotations

import importlib.metadata
import logging
from typing import TYPE_CHECKING

from stagehold.errors import VersionsDiffer
from stagehold.spark.connect import spark_version

if TYPE_CHECKING:
    from pyspark.sql.connect.client import SparkConnectClient

DELTA_VERSION = "SELECT java_method('io.delta.package', 'VERSION')"
NO_DELTA = "DATATYPE_MISMATCH.UNEXPECTED_CLASS_TYPE"  # what Spark says of that where the class is missing

log = logging.getLogger(__name__)

# Servers elsewhere that were asked for Delta's version by this process: unlike Spark's, it takes a query.
_asked: set[str] = set()


def require_versions(client: SparkConnectClient, remote: str) -> None:
    """Ask the server that ``client`` has a session with; ``remote`` is its address where we did not start it.

    A server without Delta is let pass: it reads and writes none.

    :raises VersionsDiffer: it has other versions than this process.
    """
    _require("Spark", spark_version(client), "pyspark", remote)
    if remote and remote not in _asked:
        if delta := _delta_version(client):
            _require("Delta Lake", delta, "delta-spark", remote)
        _asked.add(remote)


def _require(engine: str, of_server: str, package: str, remote: str) -> None:
    own = importlib.metadata.version(package)
    if of_server != own:
        raise VersionsDiffer(engine, of_server=of_server, own=own, package=package, remote=bool(remote))


def _delta_version(client: SparkConnectClient) -> str | None:
    from pyspark.errors import AnalysisException
    from pyspark.sql.connect.plan import SQL

    try:
        table, *_ = client.to_table(SQL(DELTA_VERSION).to_proto(client), {})
    except AnalysisException as error:
        if error.getCondition() != NO_DELTA:
            log.warning("the version of the server's Delta is unknown: %s", str(error).partition("\n")[0])
        return None
    return str(table.column(0)[0].as_py())
