"""Keeps a wave's verdicts beside its files, from before its commit until the ledger has them.

A commit says that a gate let its partitions through, and nothing more of the verdicts. So an attempt that adopts the
commit of a dead attempt finds the verdicts here. An attempt that lives deletes its own; those of others are deleted
with everything else that dead attempts leave.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from stagehold.lake.commit.staging import DATA_FOLDER, VERDICTS_FOLDER
from stagehold.lake.store.files import files_at
from stagehold.ledger.fact_lines import from_lines, to_lines
from stagehold.model.records import GateResult, PartitionRecord

log = logging.getLogger(__name__)

FILE = "said.jsonl"  # a line for each, as in a file of the chronicle


@dataclass(frozen=True)
class WaveVerdicts:
    """The verdicts of a wave of an attempt, in the table at ``uri``."""

    uri: str
    attempt_id: str
    wave: int

    @classmethod
    def of(cls, record: PartitionRecord) -> WaveVerdicts:
        """The verdicts of the wave that published the partition."""
        return cls(record.table, record.attempt_id, record.wave)

    def keep(self, results: Sequence[GateResult]) -> None:
        """Write the verdicts beside the wave's files, before the wave is published."""
        if results:
            files_at(self.uri).create(self._path, to_lines(results))

    def read(self) -> tuple[GateResult, ...]:
        """The verdicts that were kept. None if the wave was not judged, or if an old version published it, which did
        not keep verdicts.
        """
        try:
            facts = from_lines(files_at(self.uri).read(self._path))
        except FileNotFoundError:
            return ()
        except ValueError as error:
            log.warning("%s/%s is not what was written: %s", self.uri, self._path, error)
            return ()
        return tuple(result for result in facts if isinstance(result, GateResult))

    def forget(self) -> None:
        """Delete the verdicts, since the ledger has them. Files that cannot be deleted do no harm."""
        try:
            files_at(self.uri).remove([self._path])
        except Exception as error:  # noqa: BLE001 - whatever the store says, the wave is recorded
            log.warning("%s/%s is left: %s", self.uri, self._path, error)

    @property
    def _path(self) -> str:
        return f"{DATA_FOLDER}/{self.attempt_id}/{self.wave}/{VERDICTS_FOLDER}/{FILE}"
