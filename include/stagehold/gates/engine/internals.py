"""What the engine uses of private parts of pyspark's expressions and of Great Expectations; no other module does.

tests/gates/engine/test_internals.py checks each part against what is installed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.metrics.map_metric_provider.map_condition_auxilliary_methods import (
    _spark_map_condition_unexpected_count_value,
)
from pyspark.sql import functions as F
from pyspark.sql.connect.column import Column
from pyspark.sql.connect.expressions import (
    ColumnAlias,
    CommonInlineUserDefinedFunction,
    Expression,
    UnresolvedFunction,
    UnresolvedStar,
    WindowExpression,
)
from pyspark.sql.connect.window import WindowSpec

AGGREGATES = frozenset(
    [
        "any",
        "any_value",
        "approx_count_distinct",
        "array_agg",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bool_and",
        "bool_or",
        "collect_list",
        "collect_set",
        "corr",
        "count",
        "count_if",
        "covar_pop",
        "covar_samp",
        "every",
        "first",
        "first_value",
        "kurtosis",
        "last",
        "last_value",
        "listagg",
        "max",
        "max_by",
        "mean",
        "median",
        "min",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "product",
        "skewness",
        "some",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "sum",
        "sum_distinct",
        "try_avg",
        "try_sum",
        "var_pop",
        "var_samp",
        "variance",
    ]
)


# These take the first or any row, whatever its value is, or choose rows by another column.
COUNT_NULLS = frozenset(["any_value", "first", "first_value", "last", "last_value", "max_by", "min_by"])
# Spark computes these, and all others in the same query, by an aggregation that it does not compile.
COLLECT = frozenset(
    ["array_agg", "collect_list", "collect_set", "listagg", "mode", "percentile", "percentile_approx", "string_agg"]
)
count_unexpected = (
    _spark_map_condition_unexpected_count_value  # the metric of all conditions by row that have no aggregate
)


def is_aggregate(found: Any) -> bool:
    """Whether an expression is an aggregate: selecting it makes a frame with one row."""
    return any(map(_is_of_rows, _parts(found)))


def has_window(column: Column) -> bool:
    return any(isinstance(part, WindowExpression) for part in _parts(column))


def apart(columns: tuple[Column, ...]) -> str | None:
    """A text that is equal for aggregates which can share a query at little cost."""
    parts = [part for part in _parts(columns) if isinstance(part, UnresolvedFunction)]
    distinct = [str(part) for part in parts if part._is_distinct]
    collected = any(part._name.lower() in COLLECT for part in parts)
    return "; ".join(distinct) or ("collected" if collected else None)


def only_where(condition: Column, aggregate: Column) -> Column | None:
    """An aggregate of all rows that equals ``aggregate`` over the rows that meet ``condition``; None if none is known.

    Nearly all aggregates skip rows in which their first argument is null.
    """
    parts = list(_parts(aggregate))
    known = all(part._name.lower() in AGGREGATES - COUNT_NULLS for part in parts if _is_of_rows(part))
    # a function in Python sees all rows, and might fail with others
    if not known or any(isinstance(part, CommonInlineUserDefinedFunction | WindowExpression) for part in parts):
        return None

    def within_rows(found: Expression) -> Expression | None:
        if not _is_of_rows(found) or not found._args:
            return None
        first = F.lit(1) if isinstance(found._args[0], UnresolvedStar) else Column(found._args[0])
        anew = copy.copy(found)
        anew._args = [F.when(condition, first)._expr, *found._args[1:]]
        return anew

    return Column(_mapped(aggregate._expr, within_rows))


def _is_of_rows(found: Any) -> TypeGuard[UnresolvedFunction]:
    return isinstance(found, UnresolvedFunction) and (found._is_distinct or found._name.lower() in AGGREGATES)


def _parts(found: Any) -> Iterator[Any]:
    """All expressions within, except those inside windows."""
    if isinstance(found, Column):
        yield from _parts(found._expr)
    elif isinstance(found, list | tuple):
        for part in found:
            yield from _parts(part)
    elif isinstance(found, Expression):
        yield found
        if not isinstance(found, WindowExpression):
            for value in vars(found).values():
                yield from _parts(value)


def said(column: Column, session: Any) -> bytes:
    """Bytes that are equal for equal expressions."""
    message: bytes = column._expr.to_plan(session.client).SerializeToString()
    return message


def alias_of(column: Column) -> str | None:
    """The name that a column was given, if any."""
    expression = column._expr
    return expression._alias[0] if isinstance(expression, ColumnAlias) else None


def verdict(expectation: Expectation, metrics: dict[str, Any], result_format: Mapping[str, Any], engine: Any) -> Any:
    """The expectation's verdict on these metrics. Its public method wants samples of all partitions first."""
    runtime = {"result_format": dict(result_format)}
    return expectation._validate(metrics=metrics, runtime_configuration=runtime, execution_engine=engine)


def within(column: Column, partition: Column) -> Column:
    """The expression with ``partition`` added to the columns by which each of its windows is partitioned."""

    def kept(found: Expression) -> Expression | None:
        if not isinstance(found, WindowExpression):
            return None
        spec, anew = found._windowSpec, copy.copy(found)
        anew._windowSpec = WindowSpec([partition._expr, *spec._partitionSpec], spec._orderSpec, spec._frame)
        return anew

    changed = _mapped(column._expr, kept)
    return column if changed is column._expr else Column(changed)


def _mapped(found: Any, change: Callable[[Expression], Expression | None]) -> Any:
    """The expression with parts of it replaced; the same object where nothing changes."""
    if isinstance(found, list | tuple):
        parts = [_mapped(part, change) for part in found]
        same = all(new is old for new, old in zip(parts, found, strict=True))
        return found if same else type(found)(parts)
    if not isinstance(found, Expression):
        return found
    changed = change(found)
    if changed is not None:
        return changed
    fields = {name: _mapped(value, change) for name, value in vars(found).items()}
    if all(value is getattr(found, name) for name, value in fields.items()):
        return found
    anew = copy.copy(found)
    vars(anew).update(fields)
    return anew
