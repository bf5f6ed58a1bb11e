"""Where a stage's table is in the lake, and which token guards its commits."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.model.partition_set import Share

if TYPE_CHECKING:
    from stagehold.spec.pipeline import Stage

STAGES = "stages"  # folder of the tables that stages own; published ones are named by their users
LONGEST = 120  # of one path segment; file systems allow 255 bytes, object stores 1024 for the whole key
CHECKPOINTS = "checkpoints"  # folder of what runs have reached
OBJECT_STORE = "s3://"
# By this setting a server names the class by which Hadoop writes waves to a folder. Its own starts the program `chmod`
# four times for each file, which takes longer than to write a small one. The class that our servers name asks the
# system; it lists no folder through a link to it, so it serves our own writes only, where nobody makes links.
FILES_BY = "spark.waves.fs.file.impl"


@dataclass(frozen=True)
class TableLocation:
    """A Delta table, the part of it that one stage writes for one interval, and the share of that part's partitions.

    ``cell`` marks the commits of that part, whatever their share. ``interval`` is None for a table the stage owns,
    which has no `_interval` column. ``share`` is None for all partitions.
    """

    stage: str
    uri: str
    cell: str
    interval: str | None
    share: Share | None = None

    @property
    def token(self) -> str:
        """Application id of the share's commits: attempts of the same share fence each other by it."""
        return self.cell if self.share is None else f"{self.share}@{self.cell}"

    def of(self, share: Share | None) -> TableLocation:
        """The same part of the table, for another share."""
        return replace(self, share=share)


def table_location(
    lake_uri: str, pipeline: str, stage: Stage, interval: str, share: Share | None = None
) -> TableLocation:
    """The table of a stage and interval. All intervals of a published stage share the table that its author named."""
    cell = f"{cell_prefix(pipeline, stage.id)}{interval}"
    if stage.output.table is not None:
        return TableLocation(stage.name, published_table(lake_uri, stage.output.table), cell, interval, share)
    return TableLocation(stage.name, f"{tables_of(lake_uri, pipeline, stage)}/{path_safe(interval)}", cell, None, share)


def published_table(lake_uri: str, name: str) -> str:
    """The address of a table that its user calls ``schema.table``."""
    return _join(lake_uri, *name.split("."))


def tables_of(lake_uri: str, pipeline: str, stage: Stage) -> str:
    """The folder of the tables, one per interval, that a stage owns."""
    return _join(lake_uri, STAGES, pipeline, stage.id)


def checkpoints_of(lake_uri: str, pipeline: str, interval: str, run_id: str) -> str:
    """The folder of the checkpoints of one run."""
    return _join(lake_uri, CHECKPOINTS, pipeline, interval, run_id)


def cell_prefix(pipeline: str, stage_id: str) -> str:
    """What the cell of every interval of a stage begins with."""
    return f"stagehold/{pipeline}/{stage_id}/"


def path_safe(text: str) -> str:
    """``text`` as one path segment that needs no escaping; different texts stay different."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip("._")  # Spark takes a leading dot or underscore for hidden
    if safe == text and len(safe) <= LONGEST:
        return safe
    return f"{safe[:LONGEST]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def spark_uri(uri: str) -> str:
    """The address for Spark's file systems of what everything else calls s3://, or names as a folder: to Spark that is
    one of HDFS, where Hadoop's configuration says so.
    """
    return f"file://{uri}" if uri.startswith("/") else script_uri(uri)


def script_uri(uri: str) -> str:
    """The same for a script, which may open a folder of this machine itself."""
    return uri.replace(OBJECT_STORE, "s3a://", 1) if uri.startswith(OBJECT_STORE) else uri


def lake_root(lake_uri: str) -> str:
    """The address of the lake in the form in which those of its tables begin."""
    return lake_uri.rstrip("/") if lake_uri.startswith(OBJECT_STORE) else str(Path(lake_uri).absolute())


def _join(lake_uri: str, *names: str) -> str:
    return "/".join((lake_root(lake_uri), *map(path_safe, names)))


REMEMBERS_FILES = "fs.s3a.analytics.accelerator.physicalio.metadatastore.ttl"  # milliseconds


def s3a_options(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Options of Hadoop's s3a, without keys: those it reads itself, from the AWS_ variables of its own process.

    Nothing secret ever has to be written to a file. An address of one's own is asked with the bucket in the path, since
    few such stores have a host name per bucket.
    """
    # Hadoop's reader since 3.4.3 knows for a day what a file was: one that is written anew could not be read.
    endpoint = environment.get("AWS_ENDPOINT_URL", "")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or ""
    options = {REMEMBERS_FILES: "1"} | ({"fs.s3a.endpoint.region": region} if region else {})
    if endpoint:
        options |= {"fs.s3a.endpoint": endpoint, "fs.s3a.path.style.access": "true"}
    if endpoint.startswith("http://"):
        options |= {"fs.s3a.connection.ssl.enabled": "false"}
    return options
