"""Finds out whether the partitions of a keyed stage may share one call of its function, and checks that rows stay in
their partitions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stagehold.errors import KeyMayBeNull, StrayKey
from stagehold.lake.store.columns import quoted
from stagehold.plan.isolation.key_checks import Key
from stagehold.plan.isolation.tree import GivenInput, is_plain, mark
from stagehold.plan.isolation.verdict import Isolation, isolation_of
from stagehold.plan.restart.error_facts import failures_in
from stagehold.spark.connect import explained, plan_ids, plan_message
from stagehold.spec.pipeline import Exchange, Input, Stage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from stagehold.run.functions.stage_call import StageCall

# Functions of Python, by their number in pyspark.util.PythonEvalType, that see one row, or the rows of one group. Those
# that see rows in batches, whose bounds nobody chose, are left out.
ROW_OR_GROUP = frozenset({100, 101, 201, 202, 203, 206, 209, 210, 215, 216, 217, 252, 253, 254})
WITH_SQL = (("SQL", "query"), ("ExpressionString", "expression"))  # messages and their fields
# Relations, and pyspark's names for them, whose rows Spark has to read to know their columns.
LEARNT_FROM_ROWS = {"StatCrosstab": "crosstab", "Transpose": "transpose", "Parse": "read.json of a frame of texts"}
QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""", re.DOTALL)
STRAY = "[STAGEHOLD_STRAY_KEY] "
RAISED = "USER_RAISED_EXCEPTION"


def marked(frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The frames under aliases, with their columns listed, so that the analysed plan shows where they begin."""
    return {name: frame.select("*").alias(mark(place)) for place, (name, frame) in enumerate(frames.items())}


def given_input(edge: Input, keys: Sequence[Key]) -> GivenInput:
    """Facts about an input that are not in a plan. ``keys`` are those of all keyed inputs, one for each schema that was
    written.
    """
    if edge.exchange is not Exchange.KEYED:
        return GivenInput(edge.stage, () if edge.exchange is Exchange.FORWARD else None)
    written: dict[str, set[str]] = {}
    for key_column in (column for key in keys for column in key if column.stage == edge.stage):
        written.setdefault(key_column.name, set()).add(key_column.type.text)
    return GivenInput(edge.stage, edge.key, {name: min(kinds) for name, kinds in written.items() if len(kinds) == 1})


def judged(stage: Stage, call: StageCall, given: Sequence[GivenInput], columns: Sequence[str]) -> Isolation:
    """The isolation that follows from the analysed plan of the function's frame with these ``columns``, and from what
    the function did beside it.

    :raises KeyMayBeNull: rows of the output would have no key, so that they belong to none of the partitions that make
        them.
    """
    texts = _Texts.of(call.frame, call.inputs)
    found = isolation_of(explained(call.frame), given, stage.key, columns, texts.functions)
    if found.nullable:
        raise KeyMayBeNull(stage.name, {key.column: key.expression for key in found.nullable})
    odd = (
        ()
        if texts.plain
        else ("a name or a constant with brackets, # or more than one line, which its plan does not quote",)
    )
    return Isolation((*call.reasons_against_sharing, *dict.fromkeys(texts.of_rows), *odd, *found.blame))


def require_own_keys(stage: Stage, partition: int, belongs: Column, key: Sequence[str]) -> Column:
    """True for rows whose ``key`` belongs to the partition that is computed; Spark fails at the first other row.

    The condition depends on the place of a row, so that Spark evaluates it for the rows that come out, and not for rows
    that are dropped on the way or joined with them. A comparison of `rand` does not work: Spark (4.2) knows its bounds.
    """
    from pyspark.sql import functions as F

    values = F.struct(*(F.col(quoted(column)).cast("string").alias(column) for column in key))
    facts = F.struct(
        F.lit(stage.name).alias("stage"),
        values.alias("key"),
        F.lit(partition).alias("computed"),
        belongs.alias("belongs"),
    )
    error = F.raise_error(F.concat(F.lit(STRAY), F.to_json(facts, {"ignoreNullFields": "false"})))
    return F.when(belongs == partition, F.monotonically_increasing_id() >= 0).otherwise(error.cast("boolean"))


@contextmanager
def reporting_stray_keys() -> Iterator[None]:
    """Turn the error that `require_own_keys` makes Spark raise into one that says what to do.

    :raises StrayKey: a row has a key of another partition.
    """
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raised = (error.getMessageParameters() or {}).get("errorMessage", "") if error.getCondition() == RAISED else ""
        told = next((text for text in (raised, *failures_in(error)) if STRAY in text), None)
        if told is None:
            raise
        facts, _ = json.JSONDecoder().raw_decode(told.partition(STRAY)[2])
        raise StrayKey(facts["stage"], facts["key"], computed=facts["computed"], belongs=facts["belongs"]) from None


class _Texts:
    """The contents of a frame's unsent plan above its inputs: Python functions, and whether all names and literals are
    plain.
    """

    def __init__(self, inputs: frozenset[int]) -> None:
        self.inputs, self.plain = inputs, True
        self.allowed: set[str] = set()
        self.refused: set[str] = set()
        self.of_rows: list[str] = []  # relations whose columns follow from rows, which Spark reads when it plans

    @staticmethod
    def of(frame: DataFrame, inputs: Collection[DataFrame]) -> _Texts:
        texts = _Texts(plan_ids(inputs))
        texts.read(plan_message(frame))
        return texts

    @property
    def functions(self) -> frozenset[str]:
        return frozenset(self.allowed - self.refused)

    def read(self, message: Any) -> None:
        kind = message.DESCRIPTOR.name
        if kind in ("RelationCommon", "ExpressionCommon") or (
            kind == "Relation" and message.common.plan_id in self.inputs
        ):
            return
        if kind == "CommonInlineUserDefinedFunction":
            known = message.python_udf.eval_type in ROW_OR_GROUP
            (self.allowed if known else self.refused).add(message.function_name)
        if kind == "Aggregate" and message.HasField("pivot") and not message.pivot.values:
            self.of_rows.append("its `pivot` without a list of values, whose columns follow from rows")
        elif kind in LEARNT_FROM_ROWS and not (kind == "Parse" and message.HasField("schema")):
            self.of_rows.append(f"its `{LEARNT_FROM_ROWS[kind]}`, whose columns follow from rows")
        for descriptor, value in message.ListFields():
            self._field(kind, descriptor, value)

    def _field(self, kind: str, descriptor: Any, value: Any) -> None:
        values = [value] if not descriptor.is_repeated else list(value.items() if hasattr(value, "items") else value)
        for item in values:
            for part in item if isinstance(item, tuple) else (item,):
                if hasattr(part, "DESCRIPTOR"):
                    self.read(part)
                elif isinstance(part, str):
                    self.plain &= _is_plain_sql(part) if (kind, descriptor.name) in WITH_SQL else is_plain(part)


def _is_plain_sql(text: str) -> bool:
    return "#" not in text and all("\\" not in quote and is_plain(quote) for quote in QUOTED.findall(text))
