"""Gate results: what the gates said, passed or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import func, insert, select

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import gate_result_from, gate_result_row
from stagehold.ledger.database.schema import gate_results
from stagehold.model.records import Cell, GateResult


class GateResults:
    """The `gate_results` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, results: Sequence[GateResult]) -> None:
        """Append all results or none. Not fenced:
        a judgement is about data, and only `Partitions.record` makes data count.
        """
        if not results:
            return
        with self._database.writing() as connection:
            stored = [replace(result, observed=self._database.redact(result.observed)) for result in results]
            connection.execute(insert(gate_results), [gate_result_row(result) for result in stored])
            self._database.tell(*stored)

    def failures(self, cell: Cell) -> tuple[GateResult, ...]:
        """What failed when each partition was judged last; nothing for a partition that passed then."""
        columns = gate_results.c
        judge = func.first_value(columns.attempt_id).over(partition_by=columns.partition, order_by=columns.id.desc())
        where = (columns.pipeline == cell.pipeline, columns.interval == cell.interval, columns.stage == cell.stage)
        judged = select(gate_results, judge.label("last_judge")).where(*where).subquery()
        failed = select(*(judged.c[column.name] for column in columns)).where(
            judged.c.attempt_id == judged.c.last_judge, ~judged.c.passed
        )
        with self._database.reading() as connection:
            rows = connection.execute(failed.order_by(judged.c.partition, judged.c.id)).mappings()
            return tuple(gate_result_from(row) for row in rows)
