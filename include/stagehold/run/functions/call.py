"""Calls a stage's function, and keeps an eye on what it does beside making a plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from stagehold.model.context import StageContext
from stagehold.model.keys.compute_key import ReadKind
from stagehold.plan.determinism.operations import RULES
from stagehold.plan.determinism.sql import uses_in_sql
from stagehold.spark.calls.function_call import FunctionCall
from stagehold.spark.calls.touches import Habit, Touch
from stagehold.spark.calls.watch import watch_of
from stagehold.spark.connect import ROW_BY_ROW, is_expression, parts_of, plan_ids, plan_message
from stagehold.spark.session.worker import with_environment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Manner:
    """How a stage's function is called, whatever it is called with.

    ``environment`` are the declared variables that its Python functions find in Spark's workers. ``read_on`` says that
    functions of other stages are called with its frame. ``settings`` are what the session has meanwhile in place of
    those ``instead_of``, where it has others.
    """

    stage: str
    project: str = ""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    may_write: bool = False
    read_on: bool = False
    settings: Mapping[str, str] | None = None
    instead_of: Collection[str] = ()


@dataclass(frozen=True)
class StageCall:
    """One call of a stage's function: what it was given, what it returned, and what it did meanwhile.

    ``planned`` is the frame as the function planned it, and ``frame`` what is read of it: its rows, if they had to be
    computed before the call ended (``at_once``). ``after`` is the state that it leaves. ``reads`` are what was
    seen to be read beside its inputs, each with its line if that is known.
    """

    context: WatchedContext
    inputs: tuple[DataFrame, ...]
    frame: DataFrame
    planned: DataFrame
    after: Mapping[str, DataFrame] = field(default_factory=dict)
    touches: tuple[Touch, ...] = ()
    reads: Mapping[tuple[ReadKind, str], str] = field(default_factory=dict)
    at_once: bool = False

    @staticmethod
    def make(
        spark: SparkSession,
        function: Callable[..., DataFrame],
        context: StageContext,
        arguments: Mapping[str, DataFrame],
        manner: Manner,
    ) -> StageCall:
        """:raises StageContractBroken: the function wrote, which its stage does not say that it may."""
        own, inputs = WatchedContext.of(context), tuple(arguments.values())
        given = (*inputs, *context.state.after.values())
        watch = watch_of(spark, manner.project)
        packed = partial(with_environment, manner.environment) if manner.environment else None
        with watch.calling(manner.stage, given, packed=packed, may_write=manner.may_write) as call:
            if manner.settings is not None:
                watch.set_meanwhile(manner.settings, manner.instead_of)
            frame = function(own, **arguments)
            if not is_frame(frame):
                return StageCall(own, inputs, frame, frame, touches=tuple(call.touches))
            planned = call.bound(frame)
            after = {name: _settled(call, kept, manner) for name, kept in context.state.after.items()}
            frame = call.settled(planned, read_on=manner.read_on)
        return StageCall(own, inputs, frame, planned, after, tuple(call.touches), call.reads, call.at_once)

    @property
    def partitions(self) -> tuple[int, ...]:
        return cast("tuple[int, ...]", vars(self.context)["partitions"])  # looking is not asking

    @property
    def is_plan_alone(self) -> bool:
        """Whether all that the function did is in its plan."""
        return not self.touches and not self.context.asked

    @property
    def asks(self) -> Touch | None:
        """What it had Spark answer, if it did."""
        return next((touch for touch in self.touches if touch.habit is Habit.ASKS), None)

    @property
    def reasons_against_sharing(self) -> tuple[str, ...]:
        """Reasons that its plan does not show for which several partitions cannot share a call."""
        asked = ("its function, which asks for ctx.partitions",) if self.context.asked else ()
        return (*asked, *(f"its function, which {touch}" for touch in dict.fromkeys(self.touches)))


def is_frame(returned: Any) -> bool:
    """Whether a function returned a frame of Spark's."""
    return hasattr(returned, "toArrow")


def returned_text(returned: Any) -> str:
    """What a function returned in place of a frame of Spark's, and what to return."""
    kind = type(returned)
    if returned is None:
        return "nothing; return the DataFrame"
    if kind.__module__.startswith("pyspark.pandas"):
        return f"a {kind.__name__} of pandas on Spark; return a Spark DataFrame (`.to_spark()`)"
    if kind.__module__.startswith("pandas"):
        return f"a pandas {kind.__name__}; return a Spark DataFrame (`spark.createDataFrame(...)`)"
    return f"{kind.__name__}, not a DataFrame"


def _settled(call: FunctionCall, kept: DataFrame, manner: Manner) -> DataFrame:
    return call.settled(call.bound(kept), read_on=manner.read_on) if is_frame(kept) else kept


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
