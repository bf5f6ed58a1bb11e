"""Verdicts: the results of gates for each partition, met or not, and for all partitions of a stage together."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, case, func, insert, select, true

from stagehold.ledger.database.column_types import storable
from stagehold.ledger.database.engine import Database, Redact
from stagehold.ledger.database.rows import read_all, row_of
from stagehold.ledger.database.schema import gate_results, stage_verdicts
from stagehold.model.records import Cell, GateResult, StageVerdict


class GateResults:
    """The `gate_results` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, results: Sequence[GateResult]) -> None:
        """Append all results or none. Not fenced: a result is about data, and only `Partitions.record` makes data
        count.
        """
        if not results:
            return
        with self._database.writing() as connection:
            stored = self.as_stored(results)
            connection.execute(insert(gate_results), [row_of(result) for result in stored])
            self._database.tell(*stored)

    def as_stored(self, results: Sequence[GateResult]) -> list[GateResult]:
        """Results as they are told to the lake: without secrets, and with characters that every database can store."""
        return [self._as_stored(result) for result in results]

    def _as_stored(self, result: GateResult) -> GateResult:
        return replace(
            result,
            expectation=storable(result.expectation),
            configuration=storable(result.configuration),
            observed=storable(self._database.redact(result.observed)),
            result=storable(self._redacted_json(result.result)),
        )

    def _redacted_json(self, text: str) -> str:
        """JSON without secrets. Each text in it is looked at by itself: JSON writes a secret with a quote or an umlaut
        differently.
        """
        if "\\" not in text:
            return self._database.redact(text)
        return json.dumps(_each_text(json.loads(text), self._database.redact), sort_keys=True)

    def newest(self, cell: Cell, among: Collection[int] | None = None) -> tuple[GateResult, ...]:
        """All results of each partition when it was judged last; only of the partitions ``among``, if they are
        given.
        """
        return self._judged_last(cell, true(), among)

    def verdicts(self, cell: Cell) -> tuple[GateResult, ...]:
        """`newest` without most of its bytes, which are texts of JSON: ``configuration`` is empty, and so is ``result``
        unless the expectation is not met.
        """
        columns = gate_results.c
        seen = case((columns.passed, ""), else_=columns.result).label("result")
        named = [column for column in columns if column is not columns.configuration and column is not columns.result]
        return self._judged_last(cell, true(), wanted=(*named, seen))

    def of_expectation(
        self, pipeline: str, stage: str, intervals: Collection[str], expectation: str
    ) -> tuple[GateResult, ...]:
        """The last result of this expectation for each partition, by partition; without ``result``."""
        columns = gate_results.c
        of_stage = [columns.pipeline == pipeline, columns.interval.in_(intervals), columns.stage == stage]
        last = select(func.max(columns.id)).where(*of_stage, columns.expectation == expectation)
        among = columns.id.in_(last.group_by(columns.interval, columns.partition))
        query = select(*(column for column in columns if column is not columns.result)).where(among)
        return read_all(self._database, GateResult, query.order_by(columns.partition))

    def failures(self, cell: Cell) -> tuple[GateResult, ...]:
        """The unmet results of each partition when it was judged last, without ``configuration`` and ``result``, which
        are most of the bytes; nothing for a partition that passed then.
        """
        columns = gate_results.c
        named = [column for column in columns if column is not columns.configuration and column is not columns.result]
        return self._judged_last(cell, columns.passed.is_(False), wanted=named)

    def _judged_last(
        self,
        cell: Cell,
        condition: ColumnElement[bool],
        among: Collection[int] | None = None,
        wanted: Sequence[ColumnElement[Any]] = (),
    ) -> tuple[GateResult, ...]:
        columns = gate_results.c
        of_cell = [columns.pipeline == cell.pipeline, columns.interval == cell.interval, columns.stage == cell.stage]
        if among is not None:
            of_cell.append(columns.partition.in_(among))
        last = [
            func.first_value(column)
            .over(partition_by=columns.partition, order_by=columns.id.desc())
            .label(f"last_{column.name}")
            for column in (columns.attempt_id, columns.recorded_at)  # an attempt may judge data that it took over
        ]
        judged = select(columns.id, *last).where(*of_cell).subquery()
        query = (
            select(*(wanted or gate_results.c))
            .join(judged, columns.id == judged.c.id)
            .where(
                columns.attempt_id == judged.c.last_attempt_id,
                columns.recorded_at == judged.c.last_recorded_at,
                condition,
            )
            .order_by(columns.partition, columns.id)
        )
        return read_all(self._database, GateResult, query)


def _each_text(value: Any, redact: Redact) -> Any:
    if isinstance(value, dict):
        return {redact(name): _each_text(part, redact) for name, part in value.items()}
    if isinstance(value, list):
        return [_each_text(part, redact) for part in value]
    return redact(value) if isinstance(value, str) else value


class VerdictsOnStages:
    """The `stage_verdicts` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, verdict: StageVerdict) -> None:
        """Record a verdict. It is not fenced: it is about data, and `Partitions.record` alone makes data count."""
        with self._database.writing() as connection:
            reason = verdict.reason and storable(self._database.redact(verdict.reason))
            stored = replace(verdict, reason=reason, refused=tuple(map(storable, verdict.refused)))
            connection.execute(insert(stage_verdicts), [row_of(stored)])
            self._database.tell(stored)

    def of(self, pipeline: str, interval: str) -> tuple[StageVerdict, ...]:
        """All verdicts on stages of an interval, oldest first."""
        return self.of_each(pipeline, [interval])

    def of_each(self, pipeline: str, intervals: Collection[str]) -> tuple[StageVerdict, ...]:
        """All verdicts on stages of the intervals, oldest first."""
        columns = stage_verdicts.c
        query = select(stage_verdicts).where(columns.pipeline == pipeline, columns.interval.in_(intervals))
        return read_all(self._database, StageVerdict, query.order_by(columns.id))
