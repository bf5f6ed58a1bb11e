"""Whether a stage function makes its rows one by one,
so that one call can make many partitions and one scan can read them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stagehold.model.context import StageContext
from stagehold.plan.determinism.operations import RULES
from stagehold.plan.determinism.sql import uses_in_sql
from stagehold.spark.connect import ROW_BY_ROW, is_expression, parts_of, plan_ids, plan_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    """A context that knows whether the function asked for which partitions it is called,
    or sent it to where nobody sees that.
    """

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

    It cannot tell an aggregate from a function of one row. Spark does: above an aggregate there is no file of a row to
    ask for.
    """
    relation, below = plan_message(frame), plan_ids([given])
    while relation.common.plan_id not in below:
        kind = relation.WhichOneof("rel_type")
        if kind not in ROW_BY_ROW:
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
    for part in parts_of(message):
        if part.DESCRIPTOR.name == "Relation":
            continue
        if is_expression(part):
            yield part
        yield from _expressions(part)
