"""A text of SQL as the stage function that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stagehold.code.sql_job import bound_values, statements
from stagehold.code.sql_text import is_dynamic, names_in, with_arguments, with_views
from stagehold.model.context import StageContext, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def query_function(text: str) -> Callable[..., DataFrame]:
    """A function that runs the statements of ``text``. One query is made of its frames alone, as a function's frame is;
    several find them as views, which are names and let each partition be called by itself.
    """
    *before, last = statements(text)

    @stage
    def query(ctx: StageContext, **frames: DataFrame) -> DataFrame:
        spark = next(iter(frames.values())).sparkSession
        values = bound_values(ctx, text)
        if not before and not is_dynamic(last.text):
            return _one_query(spark, with_arguments(last.in_its_line, values), frames)
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        for statement in before:
            spark.sql(with_arguments(statement.in_its_line, values))
        return spark.sql(with_arguments(last.in_its_line, values))

    return query


def _one_query(spark: SparkSession, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """pyspark takes frames by names in braces, so the text's own are doubled."""
    used = {name: f"frame_{number}" for number, name in enumerate(frames) if name in names_in(text)}
    if not used:
        return spark.sql(text)
    given: Any = {other: frames[name] for name, other in used.items()}
    own = text.replace("{", "{{").replace("}", "}}")
    return spark.sql(with_views(own, {name: f"{{{other}}}" for name, other in used.items()}), **given)
