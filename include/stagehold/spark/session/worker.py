"""What Spark's Python workers do before they import a module of the project; it is sent to them along with those."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def prepare() -> None:
    """Let a module say ``@pandas_udf("string")`` where there is no session that could parse the type.

    A worker needs just the functions of a module, never the types that plans are made with. Over Connect, nothing else
    in making a column or a function asks for a session.
    """
    from pyspark.sql import types

    os.environ.setdefault("SPARK_CONNECT_MODE_ENABLED", "1")
    types._parse_datatype_string = _any_type


def _any_type(s: str) -> DataType:  # noqa: ARG001
    from pyspark.sql.types import NullType

    return NullType()
