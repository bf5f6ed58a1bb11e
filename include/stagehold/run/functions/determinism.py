"""Looks at what stage functions built before anything is computed, and says what may come out different next time.

It reads the message of a plan that would be sent. The server is asked for one thing only: the types of summed columns,
by one call for each place where a sum is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagehold.code.stage_code import calls_of
from stagehold.plan.determinism.operations import (
    ADDS,
    RULES,
    Finding,
    Kind,
    Order,
    PlanFacts,
    Use,
    findings,
    uses_in_sql,
)
from stagehold.plan.split.regions import scattered_into
from stagehold.run.equipment.workplace import Frames
from stagehold.run.functions.stage_inputs import Reading
from stagehold.spark.connect import ROW_BY_ROW, expression_type, is_expression, parts_of, plan_ids, plan_message
from stagehold.spec.pipeline import Stage
from stagehold.spec.settings.run_settings import DeterminismPolicy

if TYPE_CHECKING:
    from google.protobuf.message import Message  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from stagehold.run.functions.stage_call import StageCall


def inspect(
    frames: Frames, stage: Stage, reading: Reading, partition: int, schema: StructType
) -> tuple[tuple[str, bool], ...]:
    """The findings in ``stage``, which ``frames`` has checked, and in the stages whose output flows into it, in words.
    Each is refused or only reported: as the spec of its stage says, or since rows could get lost.

    ``schema`` is that of the output: if no column is floating-point, the order in which such numbers were added does
    not matter.
    """
    policy_of = {stage.name: reading.pipeline.determinism_of(stage) for stage in reading.pipeline.stages}
    if policy_of[stage.name] is DeterminismPolicy.OFF:
        return ()
    floating = any(_has_floating(field.dataType) for field in schema.fields)
    scattered = scattered_into(stage, reading.pipeline)
    return tuple(
        _told(name, finding, policy_of[name], stage.name if name in scattered else None)
        for name, calls in frames.call_again(stage, partition).items()
        if policy_of[name] is not DeterminismPolicy.OFF
        for finding in _found(reading, name, calls, floating=floating)
    )


def _told(name: str, finding: Finding, policy: DeterminismPolicy | None, scattered_to: str | None) -> tuple[str, bool]:
    """The finding in words, and whether it is refused: as the stage's spec says, or since rows could get lost.

    :param scattered_to: the stage whose partitions share the rows, if they are computed along with it.
    """
    text = f"{finding} (stage {name})"
    moves_rows = finding.kind is not Kind.FLOATING  # an order of additions moves none to another partition
    if not (finding.certain and moves_rows and scattered_to and policy is None):
        return text, finding.certain and policy is DeterminismPolicy.ERROR
    shared = f"Partitions of {scattered_to} share its rows, which are computed along and not stored"
    return f"{text}. {shared}: say `output: {{type: blocking}}` for {name}, or `determinism: warn`", True


def _found(reading: Reading, name: str, calls: Sequence[StageCall], *, floating: bool) -> Iterator[Finding]:
    first, *others = calls
    shown = read_plan(first.planned, first.inputs)
    # If a call had settings in force while its frame was computed, the server can no longer tell its types.
    facts = with_types(first.planned, shown) if floating and not first.at_once else shown.facts
    again = read_plan(others[0].planned, others[0].inputs).facts if others else facts
    job = reading.pipeline.stage(name).entries
    code = calls_of(job, Path(reading.project)) if facts.uses or facts != again else ()
    return (finding for finding in findings(facts, again, code) if floating or finding.kind is not Kind.FLOATING)


def _has_floating(kind: DataType) -> bool:
    """Whether a type is floating-point or contains such a type."""
    text = kind.simpleString()
    return "double" in text or "float" in text


DRAWS = frozenset(name for name, rule in RULES.items() if rule.kind is Kind.RANDOM)  # their constants are seeds


class PlanReading:
    """Everything read of one frame. ``inputs`` are the plans below which other stages begin. ``added`` are the sums:
    the number of its use, the expression, and the relation whose columns it is made of.
    """

    def __init__(self, inputs: frozenset[int]) -> None:
        self.inputs = inputs
        self.uses: list[Use] = []
        self.constants: list[str] = []
        self.added: list[tuple[int, Message, Message]] = []

    @property
    def facts(self) -> PlanFacts:
        return PlanFacts(tuple(self.uses), tuple(self.constants))

    def relation(self, relation: Any) -> None:
        """Read a relation and all below it."""
        if relation.common.plan_id in self.inputs:
            return
        kind = relation.WhichOneof("rel_type")
        body = getattr(relation, kind)
        match kind:
            case "limit" | "offset":
                self.uses.append(Use(kind, order=_order_of(body.input, self.inputs)))
            case "sample":
                self.uses.append(Use(kind, (str(body.seed),)))
            case "sample_by":
                self.uses.append(Use("sampleBy", (str(body.seed),)))
            case "deduplicate" if not body.all_columns_as_keys:
                self.uses.append(Use("dropDuplicates"))
            case "sql":
                self.uses.extend(uses_in_sql(body.query))
            case "local_relation":
                self.constants.append(hashlib.sha256(body.data).hexdigest())
        self._below(body, relation=body.input if "input" in body.DESCRIPTOR.fields_by_name else None)

    def _below(self, message: Any, *, relation: Message | None, inside: str = "", order: Order = Order.NONE) -> None:
        for part in parts_of(message):
            name = part.DESCRIPTOR.name
            if name == "Relation":
                self.relation(part)
            elif is_expression(part):
                self._expression(part, relation, inside, order)
            elif name == "Literal":
                self.constants.append(str(part))
            elif name != "ExpressionCommon":
                self._below(part, relation=relation, inside=inside, order=order)

    def _expression(self, expression: Any, relation: Message | None, inside: str, order: Order) -> None:
        kind = expression.WhichOneof("expr_type")
        body = getattr(expression, kind)
        match kind:
            case "unresolved_function" | "call_function":
                self._function(body, relation, inside, order)
            case "window":
                given = Order.GIVEN if body.order_spec else Order.NONE
                self._expression(body.window_function, relation, inside, given)
                for part in (*body.partition_spec, *body.order_spec):
                    self._below(part, relation=relation)
            case "expression_string":
                self.uses.extend(uses_in_sql(body.expression, inside))
            case "common_inline_user_defined_function" if not body.deterministic:
                self.uses.append(Use("udf"))
            case "literal":
                self.constants.append(str(body))
            case "alias" | "cast":
                self._below(body, relation=relation, inside=inside, order=order)
            case _:
                self._below(body, relation=relation)

    def _function(self, function: Any, relation: Message | None, inside: str, order: Order) -> None:
        name = function.function_name.lower()
        self.uses.append(Use(name, tuple(_literal(argument) for argument in function.arguments), inside, order))
        if name in ADDS and relation is not None and function.arguments:
            self.added += [(len(self.uses) - 1, argument, relation) for argument in function.arguments]
        for argument in function.arguments:
            if name not in DRAWS or not _literal(argument):
                self._expression(argument, relation, name, Order.NONE)


def read_plan(frame: DataFrame, inputs: Collection[DataFrame]) -> PlanReading:
    """Operations of ``frame`` above its ``inputs``; the plans of the inputs belong to other stages."""
    reading = PlanReading(plan_ids(inputs))
    reading.relation(plan_message(frame))
    return reading


def with_types(frame: DataFrame, reading: PlanReading) -> PlanFacts:
    """The facts of a plan with the types of what is added up."""
    uses = list(reading.uses)
    for use, expression, relation in reading.added:
        floating = uses[use].floating or _is_floating(frame, expression, relation)
        uses[use] = replace(uses[use], floating=floating)
    return replace(reading.facts, uses=tuple(uses))


def _is_floating(frame: DataFrame, expression: Message, relation: Message) -> bool:
    from pyspark.sql.types import DoubleType, FloatType

    return isinstance(expression_type(frame.sparkSession, relation, expression), DoubleType | FloatType)


def _order_of(relation: Any, inputs: Collection[int]) -> Order:
    """Whether the rows of a relation come in an order that the frame gave them."""
    while relation.common.plan_id not in inputs:
        kind = relation.WhichOneof("rel_type")
        if kind == "sort":
            return Order.GIVEN if relation.sort.is_global else Order.NONE
        if kind not in ROW_BY_ROW:
            return Order.NONE
        relation = getattr(relation, kind).input
    return Order.NONE


def _literal(argument: Any) -> str:
    """A constant argument as text; empty for any other argument."""
    return str(argument.literal).strip() if argument.WhichOneof("expr_type") == "literal" else ""
