"""Calls a stage's function, and keeps an eye on what it does beside making a plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from stagehold.model.context import StageContext
from stagehold.run.stage.row_wise import WatchedContext
from stagehold.spark.connect import executions_shown_to

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY = re.compile(r"\s*\(*\s*(select|with|from|values|table)\b", re.IGNORECASE)


@dataclass(frozen=True)
class StageCall:
    """One call of a stage's function: what it was given, what it returned,
    and whether it had Spark do something meanwhile.
    """

    context: WatchedContext
    inputs: tuple[DataFrame, ...]
    frame: DataFrame
    acts: bool = False

    @staticmethod
    def make(
        spark: SparkSession,
        function: Callable[..., DataFrame],
        context: StageContext,
        arguments: Mapping[str, DataFrame],
    ) -> StageCall:
        own, watch = WatchedContext.of(context), Watch()
        with executions_shown_to(watch, spark):
            frame = function(own, **arguments)
        return StageCall(own, tuple(arguments.values()), frame, watch.acts)

    @property
    def partitions(self) -> tuple[int, ...]:
        return cast("tuple[int, ...]", vars(self.context)["partitions"])  # looking is not asking

    @property
    def reasons_against_sharing(self) -> tuple[str, ...]:
        """Reasons that its plan does not show for which several partitions cannot share a call."""
        asked = ("its function, which asks for ctx.partitions",) if self.context.asked else ()
        return (*asked, "its function, which has Spark compute something while it is called") if self.acts else asked


@dataclass
class Watch:
    """Whether Spark was asked for rows, or for something that outlives the call."""

    acts: bool = False

    def on_execute_plan(self, request: Any) -> Any:
        """pyspark calls this before anything runs. `spark.sql` asks for the plan of its query in the same way."""
        command = request.plan.command
        self.acts |= not (
            request.plan.HasField("command") and command.HasField("sql_command") and _is_query(command.sql_command)
        )
        return request


def _is_query(command: Any) -> bool:
    """A query's plan is handed back; all other commands of SQL change something."""
    relation = command.input.with_relations.root if command.input.HasField("with_relations") else command.input
    return bool(QUERY.match(relation.sql.query or command.sql))
