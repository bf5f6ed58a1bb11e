"""Outputs that are computed along with their readers and kept beside them, so that a second reader finds them done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagehold.spark.calls.watch import settings_in_force
from stagehold.spark.connect import WITHOUT_CONSTRAINTS, kept_by_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Keys = Mapping[int, str]  # by partition, what its rows follow from


@dataclass(frozen=True)
class _Kept:
    keys: Keys
    frame: DataFrame


class Intermediates:
    """The `pipelined_bounded` outputs of one Spark session.

    They are in Spark's own storage: memory as far as it goes, then disk. The session holds them, and nothing else does:
    when it is released, by whomever, they are gone. So nobody has to clean up after an attempt that was killed.
    """

    def __init__(self) -> None:
        self._kept: dict[str, list[_Kept]] = defaultdict(list)

    def frame(self, stage: str, keys: Keys, compute: Callable[[], DataFrame]) -> DataFrame:
        """A frame that holds the partitions in ``keys``, and maybe others; ``compute`` makes it if none does yet.

        Its rows are computed when they are first read, those before a shuffle at once.
        """
        for kept in self._kept[stage]:
            if keys.items() <= kept.keys.items():
                return kept.frame
        computed = compute()
        with settings_in_force(computed.sparkSession, WITHOUT_CONSTRAINTS):
            made = _Kept(keys, kept_by_spark(computed))
        self._kept[stage].append(made)
        return made.frame
