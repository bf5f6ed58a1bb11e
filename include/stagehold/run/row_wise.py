"""Whether a stage function makes its rows one by one, so that one call can make many partitions and one scan can read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from stagehold.model.context import StageContext
from stagehold.plan.nondeterminism import RULES
from stagehold.plan.sql_uses import uses_in_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

OPERATIONS = ("project", "filter", "with_columns", "with_columns_renamed", "drop", "subquery_alias", "to_df", "to_schema", "hint")
PLAIN = (
    "literal",
    "unresolved_attribute",
    "unresolved_star",
    "unresolved_regex",
    "unresolved_extract_value",
    "update_fields",
    "lambda_function",
    "unresolved_named_lambda_variable",
    "alias",
    "cast",
)
BEYOND_THE_ROW = re.compile(r"\b(over|select)\b", re.IGNORECASE)


class WatchedContext(StageContext):
    """A context that knows whether the function asked for which partitions it is called, or sent it to where nobody sees that."""

    asked: bool = False

    @classmethod
    def of(cls, context: StageContext) -> WatchedContext:
        return cls(**vars(context))

    def __getattribute__(self, name: str) -> Any:
        if name in ("partitions", "__reduce_ex__"):
            object.__setattr__(self, "asked", True)
        return super().__getattribute__(name)


def is_row_wise(frame: DataFrame, given: DataFrame) -> bool:
    """Whether ``frame`` is ``given``, row by row, as far as the plan tells.

    It cannot tell an aggregate from a function of one row. Spark does: above an aggregate there is no file of a row to ask for.
    """
    built, below = cast("ConnectFrame", frame), cast("ConnectFrame", given)._plan._plan_id
    relation: Any = built._plan.plan(built._session.client)
    while relation.common.plan_id != below:
        kind = relation.WhichOneof("rel_type")
        if kind not in OPERATIONS:
            return False
        body = getattr(relation, kind)
        if not all(map(_is_plain, _expressions(body))):
            return False
        relation = body.input
    return True


def _is_plain(expression: Any) -> bool:
    kind = expression.WhichOneof("expr_type")
    if kind == "expression_string":
        text = expression.expression_string.expression
        return not BEYOND_THE_ROW.search(text) and not any(use.name in RULES for use in uses_in_sql(text))
    if kind == "unresolved_function":
        function = expression.unresolved_function
        return function.function_name.lower() not in RULES and not function.is_user_defined_function
    return kind in PLAIN


def _expressions(message: Any) -> Iterator[Any]:
    """All expressions in a relation, outer ones first; its input is another relation's."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None or descriptor.message_type.name == "Relation":
            continue
        is_map = descriptor.is_repeated and descriptor.message_type.GetOptions().map_entry
        for part in (value.values() if is_map else value) if descriptor.is_repeated else (value,):
            if not hasattr(part, "DESCRIPTOR"):
                continue
            if part.DESCRIPTOR.full_name == "spark.connect.Expression":
                yield part
            yield from _expressions(part)
