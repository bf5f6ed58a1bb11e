"""Opens Delta tables by their log, without Spark."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from stagehold.lake.location import OBJECT_STORE

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG_FOLDER = "_delta_log"


def table_exists(uri: str) -> bool:
    from deltalake import DeltaTable

    return DeltaTable.is_deltatable(uri, storage_options=storage_options(uri))


def open_table(uri: str, version: int | None = None) -> DeltaTable:
    """A handle that sees the table as it is now, or as it was at ``version``; it does not follow later commits."""
    from deltalake import DeltaTable

    return DeltaTable(uri, version=version, storage_options=storage_options(uri))


def schema_fields(table: DeltaTable) -> dict[str, Any]:
    """Type of each column by name, in order; types as Delta's JSON has them."""
    return {field["name"]: field["type"] for field in json.loads(table.schema().to_json())["fields"]}


def storage_options(uri: str) -> dict[str, str] | None:
    """delta-rs reads AWS_ENDPOINT_URL as boto3 does, but takes one without TLS only when told so."""
    if uri.startswith(OBJECT_STORE) and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        return {"AWS_ALLOW_HTTP": "true"}
    return None
