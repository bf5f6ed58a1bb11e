"""Compares what is recorded with its fingerprints, by reading it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from stagehold.model.records import PartitionRecord
from stagehold.plan.determinism.verification import Mismatch, same_content
from stagehold.run.equipment.engine import Fingerprints
from stagehold.spark.session.sessions import translate


def mismatches(records: Sequence[PartitionRecord], session: Fingerprints) -> list[Mismatch]:
    """Those of ``records``, all with files, whose content is not what was recorded."""
    by_attempt = groupby(sorted(records, key=_writer), key=_writer)
    return [found for _, written in by_attempt for found in _differing(list(written), session)]


def _writer(record: PartitionRecord) -> str:
    return record.written_by


def _differing(records: list[PartitionRecord], session: Fingerprints) -> list[Mismatch]:
    """Those of one attempt. What cannot even be read is found by reading one after the other."""
    try:
        measured = session.fingerprints(records)
    except Exception as error:
        if translate(error) is not None:
            raise
        if len(records) == 1:
            return [Mismatch(records[0], None)]
        return [bad for record in records for bad in _differing([record], session)]
    return [
        Mismatch(record, measured[record.partition])
        for record in records
        if not same_content(record.fingerprint, measured[record.partition])
    ]
