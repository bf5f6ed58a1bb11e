"""What a gate of twelve expectations costs, beside the stage that it judges and beside Great Expectations itself.

    python bench/gates.py [SCALE] [RUNS]

Two stages run in turn on a warm server, 16 partitions each. One passes TPC-H's lineitem on, all of its 16 columns, with
the gate and without; it is the least work that a stage can be. The other joins lineitem with orders, 25 columns: the
widest stage that the sample's tables make. Measured are the waves while they are staged, and while they are measured
and judged: seconds, and seconds of the processor that the server and this process take, of which neighbours take little
away. Then Great Expectations' own engine judges partitions of the first stage, one call for each. Writes
results/gates.json after each round, and ends with 1 if a limit is missed: fingerprint and gate 20 % of the wide stage's
processor time, and ten times cheaper than Great Expectations alone. The defaults are scale 1 and 3 runs.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

from stagehold.chronicle.chronicle import open_ledger
from stagehold.lake.read import read_partitions
from stagehold.local.demo.sample import make_sample
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.run.stage.spark_engine import SparkStageSession
from stagehold.settings import Settings, load_settings
from stagehold.spark.server.server import running_server, spark_server
from stagehold.spark.session.sessions import open_session, release_session
from stagehold.spec.loading.loader import build_pipeline

RESULTS = Path(__file__).parent / "results" / "gates.json"
MOST_OF_THE_STAGE, TIMES_CHEAPER, ALONE = 0.2, 10.0, 3  # partitions that Great Expectations judges by itself
JOB = """
from stagehold import stage


@stage
def lines(ctx, source):
    return source


@stage
def joined(ctx, orders, items):
    return items.join(orders, items.l_orderkey == orders.o_orderkey)
"""
Took = Mapping[str, Mapping[str, float]]  # "staged" and "measured": seconds, and those of the processor
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
    found: list[Mapping[str, Took]] = []
    with tempfile.TemporaryDirectory() as folder:
        settings = _project(Path(folder), scale)
        with spark_server(settings):
            _run(settings, "with 0", _passing(gate=True))
            alone = _great_expectations_alone(settings)
            for number in range(1, runs + 1):
                kinds = {"with": _passing(gate=True), "without": _passing(gate=False), "joined": _joining()}
                found.append({kind: _run(settings, f"{kind} {number}", stages) for kind, stages in kinds.items()})
                _write(scale, found, alone)
    for unit in alone:
        _tell(unit, found, alone)
    share, times = _share("processor", "joined", found), _times("processor", found, alone)
    return 0 if share <= MOST_OF_THE_STAGE and times >= TIMES_CHEAPER else 1


def _tell(unit: str, found: Sequence[Mapping[str, Took]], alone: Mapping[str, float]) -> None:
    for kind, what in {"with": "passes rows on", "joined": "joins them"}.items():
        print(f"{unit}: fingerprint and gate take {_share(unit, kind, found):.1%} of the stage that {what}")
    print(f"{unit}: fingerprint alone, {_share(unit, 'without', found):.1%} of the stage that passes rows on")
    times = _times(unit, found, alone)
    print(f"{unit}: Great Expectations alone, 16 calls: {16 * alone[unit]:.1f} s, {times:.1f} times as long")


def _share(unit: str, kind: str, found: Sequence[Mapping[str, Took]]) -> float:
    return statistics.median(
        one[kind]["measured"][unit] / (one[kind]["measured"][unit] + one[kind]["staged"][unit]) for one in found
    )


def _times(unit: str, found: Sequence[Mapping[str, Took]], alone: Mapping[str, float]) -> float:
    return 16 * alone[unit] / statistics.median(one["with"]["measured"][unit] for one in found)


def _project(folder: Path, scale: float) -> Settings:
    (folder / "bench_lines.py").write_text(JOB)
    (folder / "lines.yaml").write_text(json.dumps({"suite": "lines", "expectations": EXPECTATIONS}))
    settings = replace(
        load_settings(), home=f"{folder}/home", spark_port=15115, project=str(folder), suites=str(folder)
    )
    make_sample(Path(settings.lake_uri), scale)
    return settings


def _passing(*, gate: bool) -> dict[str, Any]:
    return {
        "lines": {"job": "bench_lines:lines", "source": _rows_of("lineitem"), **({"gate": "lines"} if gate else {})}
    }


def _joining() -> dict[str, Any]:
    inputs = {"orders": {"exchange": "keyed", "key": "o_orderkey"}, "items": {"exchange": "keyed", "key": "l_orderkey"}}
    job = {"job": "bench_lines:joined", "inputs": inputs, "key": "l_orderkey", "partitions": 16, "gate": "lines"}
    sources = {"orders": "orders", "items": "lineitem"}
    return {
        **{name: {"job": "bench_lines:lines", "source": _rows_of(table)} for name, table in sources.items()},
        "joined": job,
    }


def _rows_of(table: str) -> dict[str, Any]:
    return {"kind": "parquet", "path": "${lake}/raw/" + table + "/*.parquet", "splits": 16}


def _run(settings: Settings, interval: str, stages: Mapping[str, Any]) -> Took:
    """What the last of the stages takes."""
    pipeline = build_pipeline(
        {"pipeline": "bench", "stages": stages}, project=Path(settings.project), suites=Path(settings.suites)
    )
    took: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    with _timed(took, settings, [*stages][-1]):
        run_locally(RunRequest(pipeline, f"r {interval}", interval, {}), settings, lambda _: None)
    rounded = {name: {unit: round(much, 3) for unit, much in some.items()} for name, some in took.items()}
    print(interval, rounded, flush=True)
    return rounded


def _now(settings: Settings) -> dict[str, float]:
    """Seconds, and those that the processor has worked for the server and for this process."""
    server = running_server(settings)
    assert server is not None
    ticks = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    of_server = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return {"seconds": time.perf_counter(), "processor": of_server + time.process_time()}


@contextmanager
def _timed(took: dict[str, dict[str, float]], settings: Settings, stage: str) -> Iterator[None]:
    def counting(name: str, method: str, stage_of: Callable[..., str]) -> Any:
        real = getattr(SparkStageSession, method)

        def timed(*arguments: Any, **options: Any) -> Any:
            before = _now(settings)
            try:
                return real(*arguments, **options)
            finally:
                if stage_of(*arguments) == stage:
                    for unit, much in _now(settings).items():
                        took[name][unit] += much - before[unit]

        return mock.patch.object(SparkStageSession, method, timed)

    with ExitStack() as stack:
        stack.enter_context(counting("staged", "write", lambda _self, _frame, files: files.location.stage))
        stack.enter_context(counting("measured", "measure", lambda _self, staged, *_: Path(staged.uri).parent.name))
        yield


def _great_expectations_alone(settings: Settings) -> Mapping[str, float]:
    """Medians of one call, each for one partition; the first one is not counted."""
    with open_ledger(settings) as ledger:
        records = ledger.partitions.newest_of("bench", "with 0")["lines"]
    session = str(uuid4())
    spark = open_session(settings, session)
    frames = [read_partitions(spark, [record]).drop("_partition") for record in records[: ALONE + 1]]
    took = [_alone(frame, settings) for frame in frames][1:]
    release_session(settings, session)
    return {unit: statistics.median(one[unit] for one in took) for unit in took[0]}


def _alone(frame: Any, settings: Settings) -> Mapping[str, float]:
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
    before = _now(settings)
    result = batch.validate(suite, result_format="BASIC")
    took = {unit: much - before[unit] for unit, much in _now(settings).items()}
    assert result.success, [one.expectation_config for one in result.results if not one.success]
    print("Great Expectations alone took", took, flush=True)
    return took


def _write(scale: float, found: Sequence[Mapping[str, Took]], alone: Mapping[str, float]) -> None:
    facts = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),  # of the last 1, 5 and 15 minutes; more than the cores means that others work as well
        "scale": scale,
        "runs": found,
        "Great Expectations for one partition": alone,
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
