"""The two ways in which a staged wave becomes part of its table, behind one interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from stagehold.lake.commit.committed_waves import Landed
from stagehold.lake.commit.delta_spark_committer import DeltaSparkCommitter
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.wave_commit import Claim, WaveCommit
from stagehold.lake.store.location import TableLocation
from stagehold.spec.settings.output_settings import CommitterKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Committer(Protocol):
    """Changes one share of a table for one attempt. What both promise is in tests/lake/commit/test_committer.py."""

    def fence(self, location: TableLocation, claim: Claim, rivals: Sequence[TableLocation] = ()) -> None:
        """Keep every attempt with a lower epoch from publishing here, including those in the middle of a commit.

        Does nothing when there is no table yet, or when this attempt has fenced it before.

        :param rivals: the same cut into other shares, as far as they overlap; their attempts are kept out, too. A
            higher epoch there does not matter here: it belongs to a share that overlaps the rival and not this one.
        :raises Fenced: a newer epoch was here first.
        :raises CommitContested: others kept committing to the table.
        """

    def publish(self, location: TableLocation, commit: WaveCommit) -> Landed:
        """Replace the wave's partitions by its staged rows in one atomic commit.

        Before the commit nothing is visible, after it everything. A call whose answer was lost may be repeated: it
        changes nothing and returns the same. The files to record are those of the result.

        :raises Fenced: a newer epoch published or fenced this share.
        :raises CommitContested: others kept committing to the table.
        """


def committer_for(kind: CommitterKind, spark: SparkSession, location: TableLocation, *, only_writer: bool) -> Committer:
    """The committer of this kind.

    :raises CommitterRefused: commits by delta-spark could get lost there.
    """
    if kind is CommitterKind.DELTA_SPARK:
        return DeltaSparkCommitter(spark, location, only_writer=only_writer)
    return StagedCommitter()
