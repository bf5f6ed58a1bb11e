"""Random rows in partitions, with whatever real data has: nulls, NaN, empty texts, partitions without rows."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

PARTITION = "in partition"  # no data has such a column
SCHEMA = (
    "id bigint, whole int, other int, amount double, price decimal(12,2), name string, email string, day date, "
    "at timestamp, flag boolean, payload string, `odd name` int"
)
NAMES = ("", "a", "Anna", "ANNA", "x y", "ünï", "Berta")
FULL, NULLS, EMPTY, ONE = 0, 3, 5, 7  # partitions


def random_rows(seed: int) -> list[tuple[Any, ...]]:
    """Partitions 0 to 2 have many rows, 3 has only nulls, 5 has none, 7 has one."""
    chance = random.Random(seed)
    rows = [(*_row(chance, number), chance.randrange(3)) for number in range(90)]
    rows += [(None,) * 12 + (NULLS,) for _ in range(3)]
    return [*rows, (*_row(chance, 1000), ONE)]


def _row(chance: random.Random, number: int) -> tuple[Any, ...]:
    def perhaps(value: Callable[[], Any], nulls: float = 0.1) -> Any:
        return None if chance.random() < nulls else value()

    return (
        number if chance.random() < 0.95 else chance.randrange(20),
        perhaps(lambda: chance.randrange(-3, 6)),
        perhaps(lambda: chance.randrange(-3, 6)),
        perhaps(lambda: float("nan") if chance.random() < 0.05 else round(chance.gauss(10, 5), 3)),
        perhaps(lambda: Decimal(chance.randrange(-500, 50_000)) / 100),
        perhaps(lambda: chance.choice(NAMES)),
        perhaps(lambda: f"{chance.choice(NAMES)}@{chance.choice(('x.de', 'y.com', ''))}"),
        perhaps(lambda: dt.date(2026, 1, 1) + dt.timedelta(days=chance.randrange(60))),
        perhaps(lambda: dt.datetime(2026, 1, 1) + dt.timedelta(minutes=chance.randrange(90_000))),
        perhaps(lambda: chance.random() < 0.5),
        perhaps(lambda: chance.choice(('{"a": 1}', '{"a": "x"}', "[]", "{", "7"))),
        perhaps(lambda: chance.randrange(4)),
    )


def every_expectation() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each of the core, with arguments that pass, that fail, and in other forms."""
    yield from _of_values()
    yield from _of_columns()
    yield from _of_several_columns()
    yield from _of_tables()


def _of_values() -> Iterator[tuple[str, dict[str, Any]]]:
    regex = r"^[A-Za-z ]+@.+\.(de|com)$"
    yield "values_to_be_between", {"column": "whole", "min_value": 0, "max_value": 4, "mostly": 0.6}
    yield "values_to_be_between", {"column": "amount", "min_value": 1.5, "strict_min": True}
    yield "values_to_be_between", {"column": "price", "max_value": 300, "strict_max": True}
    yield "values_to_be_between", {"column": "day", "min_value": dt.date(2026, 1, 10), "max_value": dt.date(2026, 2, 1)}
    yield "values_to_be_between", {"column": "odd name", "min_value": 1}
    yield "values_to_be_in_set", {"column": "name", "value_set": ["a", "Anna", ""]}
    yield "values_to_be_in_set", {"column": "whole", "value_set": list(range(-3, 6))}
    yield "values_to_not_be_in_set", {"column": "whole", "value_set": [0, 3], "mostly": 0.5}
    yield "values_to_not_be_in_set", {"column": "name", "value_set": ["nobody"]}
    yield "values_to_be_null", {"column": "whole", "mostly": 0.05}
    yield "values_to_not_be_null", {"column": "email", "mostly": 0.9}
    yield "values_to_not_be_null", {"column": "amount"}
    yield "values_to_be_unique", {"column": "id"}
    yield "values_to_be_unique", {"column": "name", "mostly": 0.1}
    yield "values_to_be_of_type", {"column": "whole", "type_": "IntegerType"}
    yield "values_to_be_of_type", {"column": "price", "type_": "StringType"}
    yield "values_to_be_in_type_list", {"column": "day", "type_list": ["DateType", "TimestampType"]}
    yield "type_to_be", {"column": "whole", "type_": "IntegerType"}
    yield "values_to_match_regex", {"column": "email", "regex": regex, "mostly": 0.3}
    yield (
        "values_to_match_regex",
        {"column": "email", "regex": regex, "row_condition": "whole > 1", "condition_parser": "spark"},
    )
    yield "values_to_not_match_regex", {"column": "email", "regex": "^@"}
    yield "values_to_match_regex_list", {"column": "email", "regex_list": ["^a", "de$"], "match_on": "any"}
    yield "values_to_not_match_regex_list", {"column": "email", "regex_list": ["^ü", "^x"]}
    yield "values_to_match_like_pattern", {"column": "email", "like_pattern": "%@%"}
    yield "values_to_not_match_like_pattern", {"column": "email", "like_pattern": "A%"}
    yield "values_to_match_like_pattern_list", {"column": "email", "like_pattern_list": ["%de", "%com"]}
    yield "values_to_not_match_like_pattern_list", {"column": "email", "like_pattern_list": ["%de", "%com"]}
    yield "values_to_match_strftime_format", {"column": "name", "strftime_format": "%Y"}
    yield "values_to_be_json_parseable", {"column": "payload", "mostly": 0.5}
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    yield "values_to_match_json_schema", {"column": "payload", "json_schema": schema}
    yield "values_to_be_dateutil_parseable", {"column": "name"}
    yield "value_lengths_to_be_between", {"column": "name", "min_value": 1, "max_value": 5, "mostly": 0.7}
    yield "value_lengths_to_equal", {"column": "name", "value": 4}
    yield "value_z_scores_to_be_less_than", {"column": "whole", "threshold": 1.5, "double_sided": True}
    yield "values_to_not_be_outliers", {"column": "price", "method": "iqr", "multiplier": 1.0}
    yield "values_to_not_be_outliers", {"column": "whole", "method": "std", "multiplier": 1.0}


def _of_columns() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "min_to_be_between", {"column": "whole", "min_value": -3, "max_value": 0}
    yield "max_to_be_between", {"column": "day", "max_value": dt.date(2026, 2, 20)}
    yield "mean_to_be_between", {"column": "whole", "min_value": 0.5, "max_value": 3}
    yield (
        "mean_to_be_between",
        {
            "column": "price",
            "max_value": 260,
            "row_condition": 'col("whole")>0',
            "condition_parser": "great_expectations",
        },
    )
    yield "median_to_be_between", {"column": "whole", "min_value": 1, "strict_min": True}
    yield "median_to_be_between", {"column": "amount", "max_value": 10}
    yield "stdev_to_be_between", {"column": "price", "min_value": 50}
    yield "sum_to_be_between", {"column": "price", "max_value": 8000}
    ranges = {
        "quantiles": [0.0, 0.1, 0.33, 0.5, 0.9, 1.0],
        "value_ranges": [[-3, 0], [-3, 2], [0, 2], [0, 3], [None, 5], [4, None]],
    }
    yield "quantile_values_to_be_between", {"column": "whole", "quantile_ranges": ranges}
    yield "quantile_values_to_be_between", {"column": "amount", "quantile_ranges": ranges}
    yield "distinct_values_to_be_in_set", {"column": "name", "value_set": ["a", "Anna", ""]}
    yield "distinct_values_to_contain_set", {"column": "name", "value_set": ["a", "Anna"]}
    yield "distinct_values_to_equal_set", {"column": "whole", "value_set": list(range(-3, 6))}
    yield "most_common_value_to_be_in_set", {"column": "flag", "value_set": [True]}
    yield "unique_value_count_to_be_between", {"column": "name", "min_value": 3, "max_value": 7}
    yield "proportion_of_unique_values_to_be_between", {"column": "id", "min_value": 0.9}
    yield "proportion_of_non_null_values_to_be_between", {"column": "whole", "min_value": 0.9}
    yield "values_to_be_increasing", {"column": "id"}
    yield "values_to_be_decreasing", {"column": "id", "strictly": True}
    yield "to_exist", {"column": "whole"}
    yield "to_exist", {"column": "nowhere"}
    yield (
        "kl_divergence_to_be_less_than",
        {"column": "flag", "threshold": 0.1, "partition_object": {"values": [True, False], "weights": [0.5, 0.5]}},
    )
    yield "mean_to_be_between", {"column": "nowhere", "min_value": 0}
    yield "values_to_match_regex", {"column": "email", "regex": "(("}


def _of_several_columns() -> Iterator[tuple[str, dict[str, Any]]]:
    for ignored in ("neither", "both_values_are_missing", "either_value_is_missing"):
        pair = {"column_A": "whole", "column_B": "other", "ignore_row_if": ignored}
        yield "pair_values_to_be_equal", pair
        yield "pair_values_a_to_be_greater_than_b", {**pair, "or_equal": True, "mostly": 0.4}
    yield "pair_values_to_be_in_set", {"column_A": "whole", "column_B": "other", "value_pairs_set": [(0, 0), (1, 2)]}
    for ignored in ("never", "any_value_is_missing", "all_values_are_missing"):
        some = {"column_list": ["whole", "other"], "ignore_row_if": ignored}
        yield "expect_compound_columns_to_be_unique", some
        yield "expect_multicolumn_sum_to_equal", {**some, "sum_total": 4, "mostly": 0.1}
        yield "expect_select_column_values_to_be_unique_within_record", {**some, "mostly": 0.8}
    yield "expect_multicolumn_values_to_be_equal", {"column_list": ["whole", "other"]}


def _of_tables() -> Iterator[tuple[str, dict[str, Any]]]:
    columns = ["id", "whole", "other", "amount", "price", "name", "email", "day", "at", "flag", "payload", "odd name"]
    yield "expect_table_row_count_to_be_between", {"min_value": 1, "max_value": 40}
    yield "expect_table_row_count_to_equal", {"value": 3}
    yield "expect_table_row_count_to_equal_other_table", {"other_table_name": "other"}
    yield "expect_table_column_count_to_equal", {"value": 12}
    yield "expect_table_column_count_to_be_between", {"max_value": 11}
    yield "expect_table_columns_to_match_ordered_list", {"column_list": columns}
    yield "expect_table_columns_to_match_set", {"column_set": columns[:5], "exact_match": False}
    yield "unexpected_rows_expectation", {"unexpected_rows_query": "SELECT * FROM {batch} WHERE whole > 4"}
    yield (
        "expect_query_results_to_match_comparison",
        {"base_query": "SELECT 1", "comparison_data_source_name": "x", "comparison_query": "SELECT 1"},
    )
