"""What the engine uses of private parts of pyspark's expressions and of Great Expectations; no other module does.

tests/gates/engine/test_internals.py checks each part against what is installed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from great_expectations.expectations.expectation import Expectation
from pyspark.sql.connect.column import Column
from pyspark.sql.connect.expressions import ColumnAlias, Expression, UnresolvedFunction, WindowExpression
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


def is_aggregate(found: Any) -> bool:
    """Whether it is of many rows: a frame with one row is what selecting it makes."""
    if isinstance(found, Column):
        return is_aggregate(found._expr)
    if isinstance(found, list | tuple):
        return any(map(is_aggregate, found))
    if not isinstance(found, Expression) or isinstance(found, WindowExpression):
        return False
    own = isinstance(found, UnresolvedFunction) and (found._is_distinct or found._name.lower() in AGGREGATES)
    return own or any(map(is_aggregate, vars(found).values()))


def said(column: Column, session: Any) -> bytes:
    """Equal for equal expressions."""
    message: bytes = column._expr.to_plan(session.client).SerializeToString()
    return message


def alias_of(column: Column) -> str | None:
    """What it is called, if anything."""
    expression = column._expr
    return expression._alias[0] if isinstance(expression, ColumnAlias) else None


def verdict(expectation: Expectation, metrics: dict[str, Any], result_format: Mapping[str, Any], engine: Any) -> Any:
    """What an expectation says of these metrics. Its public way in wants samples of all partitions first."""
    runtime = {"result_format": dict(result_format)}
    return expectation._validate(metrics=metrics, runtime_configuration=runtime, execution_engine=engine)


def within(column: Column, partition: Column) -> Column:
    """The same expression, with ``partition`` among what each of its windows is partitioned by."""
    changed = _changed(column._expr, partition._expr)
    return column if changed is column._expr else Column(changed)


def _changed(found: Any, partition: Expression) -> Any:
    """The same object where nothing in it is a window."""
    if isinstance(found, list | tuple):
        parts = [_changed(one, partition) for one in found]
        same = all(new is old for new, old in zip(parts, found, strict=True))
        return found if same else type(found)(parts)
    if not isinstance(found, Expression):
        return found
    fields = {name: _changed(value, partition) for name, value in vars(found).items()}
    changed = {name: value for name, value in fields.items() if value is not getattr(found, name)}
    if isinstance(found, WindowExpression):
        spec = found._windowSpec
        changed["_windowSpec"] = WindowSpec([partition, *spec._partitionSpec], spec._orderSpec, spec._frame)
    if not changed:
        return found
    anew = copy.copy(found)
    vars(anew).update(changed)
    return anew
