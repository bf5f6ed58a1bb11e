"""Where a stage's table is in the lake, and which token guards its commits."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from stagehold.model.spec import Stage

STAGES = "stages"  # folder of the tables that stages own; published ones are named by their users
LONGEST = 120  # of one path segment; file systems allow 255 bytes, object stores 1024 for the whole key
OBJECT_STORE = "s3://"


@dataclass(frozen=True)
class TableLocation:
    """A Delta table, and the share of it that one stage writes for one interval.

    ``token`` is the application id of that share's commits: attempts of the same share fence each other, others do not.
    ``interval`` is None for a table the stage owns, which has no `_interval` column.
    """

    stage: str
    uri: str
    token: str
    interval: str | None


def table_location(lake_uri: str, pipeline: str, stage: Stage, interval: str) -> TableLocation:
    """One table per stage and interval; or, for a published stage, the table its user named, shared by all intervals."""
    token = f"stagehold/{pipeline}/{stage.id}/{interval}"
    if stage.output.table is not None:
        return TableLocation(stage.name, _join(lake_uri, *stage.output.table.split(".")), token, interval)
    return TableLocation(stage.name, _join(lake_uri, STAGES, pipeline, stage.id, interval), token, None)


def path_safe(text: str) -> str:
    """``text`` as one path segment that no file system, URL or Delta log has to escape; different texts stay different."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip("._")  # Spark takes a leading dot or underscore for hidden
    if safe == text and len(safe) <= LONGEST:
        return safe
    return f"{safe[:LONGEST]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def spark_uri(uri: str) -> str:
    """The address under which Spark's file system finds what others call s3://."""
    return uri.replace(OBJECT_STORE, "s3a://", 1) if uri.startswith(OBJECT_STORE) else uri


def _join(lake_uri: str, *names: str) -> str:
    lake = lake_uri.rstrip("/") if lake_uri.startswith(OBJECT_STORE) else str(Path(lake_uri).absolute())
    return "/".join((lake, *map(path_safe, names)))
