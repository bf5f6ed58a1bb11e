"""Data that gates refuse: of partitions that are blocked, rows that fail first; and rows that were set aside."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stagehold.lake.store.columns import EXPECTATION, PARTITION
from stagehold.model.records import GateResult, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.viewer.database import Tell, database_over
from stagehold.viewer.read_rows import Rows, answer, fetched
from stagehold.viewer.views import DATA, View, data_view, identifier, set_aside_view

SET_ASIDE = "set_aside"  # the view below a stage's own


@dataclass(frozen=True)
class RefusedStage:
    """Newest ``records`` of a stage of which its gate refuses something, and what failed when it judged them last. Of
    columns that are ``masked`` no value is shown.
    """

    name: str
    records: tuple[PartitionRecord, ...]
    failures: tuple[GateResult, ...]
    masked: tuple[str, ...] = ()

    @property
    def blocked(self) -> tuple[PartitionRecord, ...]:
        """The partitions that nobody may read, refused or held."""
        return tuple(record for record in self.records if record.state.kept_back)

    def why_held(self, record: PartitionRecord) -> str | None:
        """What its gate says of all of the stage, if that is what it waits for."""
        if record.state is not PartitionState.HELD:
            return None
        said = (
            f"{result.expectation}: got {result.observed}"
            for result in self.failures
            if result.is_of_stage and result.blocks
        )
        return f"held with all others: {'; '.join(said) or 'not all are there and pass'}"

    @property
    def with_rows_aside(self) -> tuple[PartitionRecord, ...]:
        """Whether the others are published, or blocked because these are too many."""
        return tuple(record for record in self.records if record.set_aside and record.state.has_data)


def rows_of_refused(stages: Sequence[RefusedStage], text: str, limit: int | None, tell: Tell) -> Rows:
    """The answer to one SELECT: each stage is a view of its blocked partitions, with `STAGE.set_aside` below it."""
    names = [name for stage in stages for name in ((DATA, stage.name), (stage.name, SET_ASIDE))]
    return answer(text, names, partial(_views, stages), limit, tell)


def blocked_rows(stage: RefusedStage, limit: int | None, tell: Tell) -> Rows:
    """Rows of its blocked partitions, behind what each is known to fail, those first. Known are values of which the
    verdict has samples, so others may fail as well.
    """
    view = data_view(DATA, stage.name, stage.blocked, stage.masked)
    if not view.files:
        return Rows((), (), ())
    found = [*_failing(stage)]
    fails = ", ".join(f"CASE WHEN {condition} THEN ? END" for condition, _ in found)
    why = f"concat_ws('; ', {fails})" if found else "''"
    place = f"{why} AS {EXPECTATION}, *"
    query = f"SELECT {place} FROM {view} ORDER BY {EXPECTATION} = '', {PARTITION}, {EXPECTATION}"
    with database_over([view], tell) as connection:
        return fetched(connection.execute(query, [value for _, values in found for value in values]), limit)


def set_aside_rows(stage: RefusedStage, limit: int | None, tell: Tell) -> Rows:
    view = set_aside_view(stage.name, SET_ASIDE, stage.with_rows_aside, stage.masked)
    if not view.files:
        return Rows((), (), ())
    with database_over([view], tell) as connection:
        return fetched(connection.execute(f"SELECT * FROM {view} ORDER BY {PARTITION}, {EXPECTATION}"), limit)


def _views(stages: Sequence[RefusedStage], wanted: Collection[tuple[str, str]]) -> list[View]:
    by_name = {stage.name: stage for stage in stages}
    return [
        data_view(DATA, name, by_name[name].blocked, by_name[name].masked)
        if schema == DATA
        else set_aside_view(schema, name, by_name[schema].with_rows_aside, by_name[schema].masked)
        for schema, name in wanted
    ]


def _failing(stage: RefusedStage) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Conditions of SQL that hold for rows that fail an expectation, with what stands for their question marks."""
    blocked = {record.partition for record in stage.blocked}
    for result in stage.failures:
        column, samples = _samples(result)
        if (result.partition in blocked or result.is_of_stage) and result.blocks and column and samples:
            texts = [_as_text(value) for value in samples if value is not None]
            own = identifier(column)
            unexpected = f"CAST({own} AS VARCHAR) IN ({', '.join('?' * len(texts))})" if texts else "false"
            missing = f" OR {own} IS NULL" if None in samples else ""
            place = "true" if result.is_of_stage else f"{PARTITION} = {result.partition}"
            yield f"{place} AND ({unexpected}{missing})", (*texts, result.expectation)


def _samples(verdict: GateResult) -> tuple[str | None, list[Any]]:
    """The column that an expectation is about, and values in it that it did not expect."""
    if not verdict.configuration or not verdict.result:
        return None, []
    column = json.loads(verdict.configuration)["kwargs"].get("column")
    found = json.loads(verdict.result).get("partial_unexpected_list") or []
    simple = [value for value in found if not isinstance(value, list | dict)]
    return column, list(dict.fromkeys(simple))


def _as_text(value: Any) -> str:
    """The value as DuckDB writes it. Moments are in ISO's form in a verdict."""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text.replace("T", " ", 1) if text[10:11] == "T" and text[:4].isdigit() else text
