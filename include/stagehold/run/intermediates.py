"""Outputs that are computed along with their readers and kept beside them, so that a second reader finds them done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Keys = Mapping[int, str]  # by partition, what its rows follow from


@dataclass(frozen=True)
class _Kept:
    keys: Keys
    frame: DataFrame


class Intermediates:
    """The `pipelined_bounded` outputs of one Spark session.

    They are in Spark's own storage: memory as far as it goes, then disk. The session holds them, and nothing else does: when
    it is released, by whomever, they are gone. So nobody has to clean up after an attempt that was killed.
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
        made = _Kept(keys, _kept_by_spark(compute()))
        self._kept[stage].append(made)
        return made.frame


def _kept_by_spark(frame: DataFrame) -> DataFrame:
    """pyspark (4.2) takes what it keeps for the active session's, which is another one's when a process has several.

    Whoever holds it has Spark drop it when Python does; so it is taken from the wrong holder and given to the right one.
    """
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.plan import CachedRemoteRelation

    session: Any = frame.sparkSession
    held: Any = frame.localCheckpoint(eager=False)
    relation, held._plan._relation_id = held._plan._relation_id, None
    return ConnectFrame(CachedRemoteRelation(relation, session), session)
