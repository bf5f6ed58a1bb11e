"""Calls a stage's function, and observes what it does beside making a plan."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stagehold.code.sql_text import selects_row_by_row
from stagehold.lake.store.location import script_uri
from stagehold.model.context import StageContext, restore_function
from stagehold.model.keys.compute_key import ReadKind
from stagehold.plan.determinism.operations import RULES, uses_in_sql
from stagehold.run.functions.function_errors import reporting_code
from stagehold.spark.calls.call_watch import watch_of
from stagehold.spark.calls.function_call import FunctionCall
from stagehold.spark.calls.request_effects import Habit, Touch
from stagehold.spark.connect import ROW_BY_ROW, is_expression, parts_of, plan_ids, plan_message
from stagehold.spark.session.project_modules import send_files, stage_function
from stagehold.spark.session.result_settings import NONE, RESULT_SETTINGS
from stagehold.spark.session.worker import with_environment
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.run_settings import Effects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class StageCall:
    """A call of a stage's function: its arguments, its result, and what it did meanwhile.

    ``planned`` is the frame as the function planned it, and ``frame`` the one that is read: its rows, if they had to be
    computed before the call ended (``at_once``). ``after`` is the state that it leaves. ``reads`` are reads beside its
    inputs, each with its line if that is known.
    """

    context: WatchedContext
    inputs: tuple[DataFrame, ...]
    frame: DataFrame
    planned: DataFrame
    after: Mapping[str, DataFrame] = field(default_factory=dict)
    touches: tuple[Touch, ...] = ()
    reads: Mapping[tuple[ReadKind, str], str] = field(default_factory=dict)
    at_once: bool = False

    @property
    def partitions(self) -> tuple[int, ...]:
        return cast("tuple[int, ...]", vars(self.context)["partitions"])  # this look does not count as asking

    @property
    def is_plan_alone(self) -> bool:
        """Whether all that the function did is in its plan."""
        return not self.touches and not self.context.asked

    @property
    def asks(self) -> Touch | None:
        """What the function had Spark answer, if it did."""
        return next((touch for touch in self.touches if touch.habit is Habit.ASKS), None)

    @property
    def reasons_against_sharing(self) -> tuple[str, ...]:
        """Reasons, not shown by its plan, for which several partitions cannot share a call."""
        what = "counts" if self.context.counters else "asks for ctx.partitions"
        asked = (f"its function, which {what}",) if self.context.asked else ()
        return (*asked, *(f"its function, which {touch}" for touch in dict.fromkeys(self.touches)))

    def counted(self, observed: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        """What the function counted, by name: as it was ``observed`` by the query that wrote its frame, if that had to
        read each row that was counted. Where it had not, as below a limit or a join, Spark counts by a query more.
        """
        whole = {*observations_of_all_rows(plan_message(self.frame))}
        known = {name: observed[name] for name in observed.keys() & whole}
        return tuple(sorted(self.context.counters.sums(known).items()))


class StageCaller:
    """Calls the functions of one pipeline's stages, in one Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        project: str,
        script_output: Callable[[Stage], str] = lambda _: "",
    ) -> None:
        self._spark, self._pipeline, self._project = spark, pipeline, Path(project)
        self._script_output = script_output
        self._watch = watch_of(spark, project)
        self._functions: dict[str, Callable[..., DataFrame]] = {}
        self.restore_reads: dict[str, Mapping[tuple[ReadKind, str], str]] = {}  # of restore functions, by stage

    def function(self, stage: Stage) -> Callable[..., DataFrame]:
        """The stage's function as it was when it was first called: a file that is edited meanwhile has other code than
        the key under which the partitions are recorded.

        :raises FunctionFailed: the project's code cannot be loaded.
        """
        if stage.name not in self._functions:
            with reporting_code(stage, self._project), self._watch.importing(stage.name, RESULT_SETTINGS.__contains__):
                self._functions[stage.name] = stage_function(stage, self._project, self._script_output(stage))
        return self._functions[stage.name]

    def call(
        self, stage: Stage, context: StageContext, arguments: Mapping[str, DataFrame], in_force: Mapping[str, str]
    ) -> StageCall:
        """Call the function.

        :param in_force: settings that the session has now; while the function is called, it has the stage's own.
        :raises StageContractBroken: the function wrote, which its stage does not allow.
        :raises FunctionFailed: it raised.
        """
        send_files(self._spark, context.files.values())
        function, own, inputs = self.function(stage), WatchedContext.of(context), tuple(arguments.values())
        given = (*inputs, *context.state.after.values())
        may_write = self._pipeline.effects_of(stage) is Effects.ALLOWED
        output = script_uri(self._script_output(stage)) if stage.is_script else ""
        with self._watch.calling(
            stage.name,
            given,
            packed=self._packed(stage),
            may_write=may_write,
            output=output,
            changes_results=RESULT_SETTINGS.__contains__,
        ) as watched:
            self._set_meanwhile(stage, in_force)
            with reporting_code(stage, self._project, lambda: own.partitions):
                frame = function(own, **arguments)
            if not is_frame(frame):
                return StageCall(own, inputs, frame, frame, touches=tuple(watched.touches))
            if stage.is_script:  # its frame reads files, whatever the script has set or named
                watched.refuse()
                reads = {read: place for read, place in watched.reads.items() if not read[1].startswith(output)}
                return StageCall(own, inputs, frame, frame, touches=tuple(watched.touches), reads=reads)
            planned, read_on = (
                watched.bound(frame),
                not stage.output.stored,
            )  # other stages are called with such a frame
            after = {name: _settled(watched, kept, read_on=read_on) for name, kept in context.state.after.items()}
            frame = watched.settled(planned, read_on=read_on)
            own.counters.settle(partial(_settled, watched, read_on=read_on))
        return StageCall(own, inputs, frame, planned, after, tuple(watched.touches), watched.reads, watched.at_once)

    def restore(
        self, stage: Stage, context: StageContext, before: Mapping[str, DataFrame], in_force: Mapping[str, str]
    ) -> Any:
        """What the stage's restore function makes of all that was kept before; None if it has none.

        :raises StageContractBroken: that function wrote.
        :raises FunctionFailed: it raised.
        """
        function = restore_function(self.function(stage))
        if function is None:
            return None
        send_files(self._spark, context.files.values())
        changes_results = RESULT_SETTINGS.__contains__
        with self._watch.calling(
            stage.name, before.values(), packed=self._packed(stage), changes_results=changes_results
        ) as watched:
            self._set_meanwhile(stage, in_force)
            with reporting_code(stage, self._project):
                made = function(context, before)
            self.restore_reads[stage.name] = watched.reads
            if not isinstance(made, Mapping):
                return made
            return {name: _settled(watched, frame, read_on=True) for name, frame in made.items()}

    def _packed(self, stage: Stage) -> Callable[[bytes], bytes] | None:
        """Gives its Python functions the declared variables in Spark's workers."""
        declared = {name: os.environ.get(name) for name in self._pipeline.reads_of(stage).env}
        return partial(with_environment, declared) if declared else None

    def _set_meanwhile(self, stage: Stage, in_force: Mapping[str, str]) -> None:
        settings = self._pipeline.spark_of(stage)
        if settings != in_force:
            # Without a value the session would have its server's.
            usual = {name: RESULT_SETTINGS[name] for name in in_force if RESULT_SETTINGS.get(name, NONE) != NONE}
            self._watch.set_meanwhile({**usual, **settings}, tuple(in_force))


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


def _settled(call: FunctionCall, kept: DataFrame, *, read_on: bool) -> DataFrame:
    return call.settled(call.bound(kept), read_on=read_on) if is_frame(kept) else kept


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
# Kinds of relations that Spark can answer only by reading all of their input, and does by reading it once.
READ_WHOLE = (*ROW_BY_ROW, "collect_metrics", "aggregate", "deduplicate", "repartition")
BEYOND_THE_ROW = re.compile(r"\b(over|select)\b", re.IGNORECASE)


class WatchedContext(StageContext):
    """A context that knows whether the function asked for the partitions of its call, or sent the context to where
    nobody sees that.
    """

    asked: bool = False

    @classmethod
    def of(cls, context: StageContext) -> WatchedContext:
        return cls(**vars(context))

    def __reduce__(self) -> tuple[type[StageContext], tuple[Any, ...]]:
        """Spark's workers have no watch."""
        return StageContext, tuple(vars(self)[each.name] for each in fields(StageContext))

    def __getattribute__(self, name: str) -> Any:
        if name in ("partitions", "__reduce_ex__"):
            object.__setattr__(self, "asked", True)
        return super().__getattribute__(name)


def is_row_wise(frame: DataFrame, given: DataFrame) -> bool:
    """Whether ``frame`` is ``given``, row by row, as far as the plan tells.

    The plan cannot tell an aggregate from a function of one row. Spark can: above an aggregate, a row has no file.
    """
    relation, below = plan_message(frame), plan_ids([given])
    while relation.common.plan_id not in below:
        kind = relation.WhichOneof("rel_type")
        if kind == "with_relations" and _is_plain_query(relation.with_relations):
            relation = relation.with_relations.references[0].subquery_alias.input
            continue
        if kind not in ROW_BY_ROW:
            return False
        body = getattr(relation, kind)
        if not all(map(_is_plain, _expressions(body))):
            return False
        relation = body.input
    return True


def observations_of_all_rows(relation: Any) -> Iterator[str]:
    """The observations of a plan that see every row of their input, once, whatever rows there are beside it."""
    kind = relation.WhichOneof("rel_type")
    body = getattr(relation, kind)
    if kind == "collect_metrics":
        yield body.name
    if kind in READ_WHOLE:
        yield from observations_of_all_rows(body.input)
    elif kind == "set_op" and body.set_op_type == body.SET_OP_TYPE_UNION:
        yield from observations_of_all_rows(body.left_input)
        yield from observations_of_all_rows(body.right_input)


def _is_plain_query(wrapped: Any) -> bool:
    """Whether a text of SQL makes each row of its only frame from one row of it."""
    text = str(wrapped.root.sql.query)
    names = [reference.subquery_alias.alias for reference in wrapped.references]
    single = len(names) == 1 and selects_row_by_row(text, names[0])
    return single and not any(use.name in RULES for use in uses_in_sql(text))


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
