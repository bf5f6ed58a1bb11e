"""The key hash of `model.key_groups` as a Spark expression; both must agree for every value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagehold.model.key_groups import NULL, SEPARATOR

if TYPE_CHECKING:
    from pyspark.sql import Column


def key_group(columns: Sequence[str], max_parallelism: int) -> Column:
    """Key group of a row: crc32 over the UTF-8 text of the key, modulo ``max_parallelism``."""
    from pyspark.sql import functions as F

    texts = (F.coalesce(F.col(column).cast("string"), F.lit(NULL)) for column in columns)
    return F.pmod(F.crc32(F.concat_ws(SEPARATOR, *texts).cast("binary")), F.lit(max_parallelism)).cast("int")


def partition_of_key(columns: Sequence[str], partitions: int, max_parallelism: int) -> Column:
    """Partition of a row, by the key group it falls into."""
    from pyspark.sql import functions as F

    return F.floor(key_group(columns, max_parallelism) * F.lit(partitions) / F.lit(max_parallelism)).cast("int")
