"""What a gate of twelve expectations costs, beside the stage that it judges and beside Great Expectations itself.

    python tests/bench/gates.py [SCALE] [RUNS]

A stage that passes TPC-H's lineitem on, all of its 16 columns in 16 partitions, runs with the gate and without, in
turn, on a warm server: measured are the seconds in which waves are staged, and those in which they are measured and
judged. Then Great Expectations' own engine judges partitions of the same data, one call for each. Writes
results/gates.json, and ends with 1 if a limit is missed: fingerprint and gate 20 % of the stage, and ten times cheaper
than Great Expectations alone. The defaults are scale 1 and 3 runs.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

from stagehold.lake.chronicle import open_ledger
from stagehold.lake.read import read_partitions
from stagehold.local.sample import make_sample
from stagehold.run.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.run.stage.session import SparkStageSession
from stagehold.settings import Settings, load_settings
from stagehold.spark.server.server import spark_server
from stagehold.spark.session.sessions import open_session, release_session
from stagehold.spec.loader import build_pipeline

RESULTS = Path(__file__).parent / "results" / "gates.json"
MOST_OF_THE_STAGE, TIMES_CHEAPER, ALONE = 0.2, 10.0, 3  # partitions that Great Expectations judges by itself
JOB = "from stagehold import stage\n\n\n@stage\ndef lines(ctx, source):\n    return source\n"
EXPECTATIONS: list[dict[str, Any]] = [
    {"type": "expect_column_values_to_not_be_null", "column": "l_orderkey"},
    {"type": "expect_column_values_to_match_regex", "column": "l_comment", "regex": "[a-z]", "mostly": 0.99},
    {"type": "expect_column_values_to_be_in_set", "column": "l_returnflag", "value_set": ["A", "N", "R"]},
    {"type": "expect_column_values_to_be_between", "column": "l_quantity", "min_value": 1, "max_value": 50},
    {"type": "expect_compound_columns_to_be_unique", "column_list": ["l_orderkey", "l_linenumber"]},
    {"type": "expect_column_mean_to_be_between", "column": "l_discount", "min_value": 0, "max_value": 0.1},
    {
        "type": "expect_column_quantile_values_to_be_between",
        "column": "l_extendedprice",
        "quantile_ranges": {"quantiles": [0.1, 0.5, 0.9], "value_ranges": [[0, 30000], [0, 60000], [0, 99000]]},
    },
    {"type": "expect_column_value_lengths_to_be_between", "column": "l_comment", "min_value": 1, "max_value": 44},
    {"type": "expect_column_distinct_values_to_be_in_set", "column": "l_linestatus", "value_set": ["F", "O"]},
    {"type": "expect_column_max_to_be_between", "column": "l_tax", "max_value": 0.08},
    {"type": "expect_column_pair_values_a_to_be_greater_than_b", "column_A": "l_receiptdate", "column_B": "l_shipdate"},
    {"type": "expect_table_row_count_to_be_between", "min_value": 1},
]


def main() -> int:
    scale, runs = (float(sys.argv[1]) if len(sys.argv) > 1 else 1.0), (int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    with tempfile.TemporaryDirectory() as folder:
        settings = _project(Path(folder), scale)
        with spark_server(settings):
            _run(settings, "before", gate=None)
            found = [
                {
                    kind: _run(settings, f"{kind} {number}", gate)
                    for kind, gate in (("with", "lines"), ("without", None))
                }
                for number in range(runs)
            ]
            alone = _great_expectations_alone(settings)
    share = statistics.median(one["with"]["measured"] / sum(one["with"].values()) for one in found)
    gate = statistics.median(one["with"]["measured"] for one in found)
    print(f"fingerprint and gate take {share:.1%} of the stage, at most {MOST_OF_THE_STAGE:.0%}")
    print(f"Great Expectations alone, 16 calls: {16 * alone:.1f} s, {16 * alone / gate:.1f} times as long")
    _write(scale, found, alone)
    return 0 if share <= MOST_OF_THE_STAGE and 16 * alone >= TIMES_CHEAPER * gate else 1


def _project(folder: Path, scale: float) -> Settings:
    (folder / "bench_lines.py").write_text(JOB)
    (folder / "lines.yaml").write_text(json.dumps({"suite": "lines", "expectations": EXPECTATIONS}))
    settings = replace(
        load_settings(), home=f"{folder}/home", spark_port=15115, project=str(folder), suites=str(folder)
    )
    make_sample(Path(settings.lake_uri), scale)
    return settings


def _run(settings: Settings, interval: str, gate: str | None) -> dict[str, float]:
    source = {"kind": "parquet", "path": "${lake}/raw/lineitem/*.parquet", "splits": 16}
    stage = {"job": "bench_lines:lines", "source": source, **({"gate": gate} if gate else {})}
    declared = {"pipeline": "bench", "stages": {"lines": stage}}
    pipeline = build_pipeline(declared, project=Path(settings.project), suites=Path(settings.suites))
    took: dict[str, float] = defaultdict(float)
    with _timed(took):
        run_locally(RunRequest(pipeline, f"r {interval}", interval, {}), settings, lambda _: None)
    print(interval, {name: round(seconds, 2) for name, seconds in took.items()}, flush=True)
    return dict(took)


@contextmanager
def _timed(took: dict[str, float]) -> Iterator[None]:
    def counting(name: str, method: str) -> Any:
        real = getattr(SparkStageSession, method)

        def timed(*arguments: Any, **options: Any) -> Any:
            before = time.perf_counter()
            try:
                return real(*arguments, **options)
            finally:
                took[name] += time.perf_counter() - before

        return mock.patch.object(SparkStageSession, method, timed)

    with ExitStack() as stack:
        stack.enter_context(counting("staged", "write"))
        stack.enter_context(counting("measured", "measure"))
        yield


def _great_expectations_alone(settings: Settings) -> float:
    """Median seconds of one call, each for one partition; the first one is not counted."""
    with open_ledger(settings) as ledger:
        records = ledger.partitions.newest_of("bench", "with 0")["lines"]
    session = str(uuid4())
    spark = open_session(settings, session)
    seconds = [_alone(read_partitions(spark, [record]).drop("_partition")) for record in records[: ALONE + 1]]
    release_session(settings, session)
    return statistics.median(seconds[1:])


def _alone(frame: Any) -> float:
    import great_expectations as gx
    import great_expectations.expectations.core
    from great_expectations.data_context.types.base import ProgressBarsConfig
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    assert great_expectations.expectations.core
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_spark("spark", persist=False).add_dataframe_asset("partition")
    batch = asset.add_batch_definition_whole_dataframe("whole").get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(name="lines")
    for one in EXPECTATIONS:
        kwargs = {name: value for name, value in one.items() if name != "type"}
        suite.add_expectation_configuration(ExpectationConfiguration(type=one["type"], kwargs=kwargs))
    started = time.perf_counter()
    result = batch.validate(suite, result_format="BASIC")
    took = time.perf_counter() - started
    assert result.success, [one.expectation_config for one in result.results if not one.success]
    print(f"Great Expectations alone took {took:.2f} s", flush=True)
    return took


def _write(scale: float, found: list[dict[str, dict[str, float]]], alone: float) -> None:
    facts = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "scale": scale,
        "runs": found,
        "seconds of Great Expectations for one partition": alone,
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
