"""`pipelined_with_batch_fallback` on Spark: stages computed at once, a failure by that, and then the stored form.

Every row that the costly stage computes leaves its number in a file.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.run.small_project import FILES, NUMBERS, ROWS, SmallProject
from tests.run.workbench import Ended, Workbench, ended, killed

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, PartitionRecord
from stagehold.run.faults import FaultAction, Point

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PARTS = 6
REGION = "ids__costly__last"
PIPELINE = f"""
pipeline: fallen
execution_mode: pipelined_with_batch_fallback
wave: 100ms
restart: {{strategy: fixed-delay, attempts: 1, delay: 100ms}}
params: {{marks: MARKS}}
stages:
  ids:
    job: fallen_jobs:ids
    source: {{kind: csv, path: "${{lake}}/raw/ids", splits: {PARTS}, incremental: true, schema: "id int"}}
  costly: {{job: "fallen_jobs:costly", inputs: {{ids: forward}}}}
  last: {{job: "fallen_jobs:last", inputs: {{costly: forward}}, output: {{type: blocking}}}}
  total:
    job: fallen_jobs:total
    inputs: {{last: gather}}
    output: {{type: blocking_persistent, table: marts.total}}
"""
JOBS = '''
from pathlib import Path
from pyspark.sql import functions as F
from pyspark.sql.types import LongType
from stagehold import stage

@stage
def ids(ctx, source):
    return source

@stage
def costly(ctx, ids):
    marks = ctx.params["marks"]

    def marked(number):
        with open(marks, "ab", buffering=0) as file:
            file.write(b"%d " % number)
        return number * 2

    return ids.withColumn("double", F.udf(marked, LongType())("id"))

@stage
def last(ctx, costly):
    """Raises, once, what the trap says, but not for the first two partitions."""
    trap = Path(ctx.params["marks"]).with_name("trap")
    if max(ctx.partitions) > 1 and trap.exists():
        error = {"MemoryError": MemoryError, "KeyError": KeyError}[trap.read_text()]
        trap.unlink()
        raise error("as the trap says")
    return costly

@stage
def total(ctx, last):
    return last.agg(F.sum("double").alias("total"), F.count("*").alias("rows"))
'''


@pytest.fixture
def bench(tmp_path, spark_remote):
    bench = Workbench.make(tmp_path, spark_remote)
    (Path(bench.settings.project) / "fallen_jobs.py").write_text(JOBS)
    home = bench.settings.home_path
    home.mkdir(exist_ok=True)
    (Path(bench.settings.pipelines) / "fallen.yaml").write_text(PIPELINE.replace("MARKS", str(home / "marks")))
    return bench


def trap(bench: Workbench, error: str) -> None:
    (bench.settings.home_path / "trap").write_text(error)


def run(bench: Workbench, interval: str, run_id: str, **options: object) -> Ended:
    words = ("run", "fallen", "--interval", interval, "--run-id", run_id, "--json")
    return ended(bench.command(*words, **options))


def marks(bench: Workbench) -> Mapping[int, int]:
    """How often each row was computed."""
    return Counter(map(int, (bench.settings.home_path / "marks").read_text().split()))


def recorded(bench: Workbench, interval: str) -> dict[str, dict[int, PartitionRecord]]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        found = ledger.partitions.newest_of("fallen", interval)
    return {stage: {record.partition: record for record in records} for stage, records in found.items()}


def made_in(bench: Workbench, interval: str) -> dict[str, dict[int, int]]:
    """The epoch in which each partition was made, by stage."""
    return {
        stage: {partition: record.epoch for partition, record in sorted(records.items())}
        for stage, records in recorded(bench, interval).items()
    }


def delete(bench: Workbench, *places: tuple[str, int]) -> None:
    for stage, partition in places:
        record = recorded(bench, "monday")[stage][partition]
        for file in record.files:
            Path(record.table, file.path).unlink()


def totals(bench: Workbench) -> dict[str, tuple[int, int]]:
    rows = DeltaTable(f"{bench.settings.lake_uri}/marts/total").to_pyarrow_table().to_pylist()
    return {row["_interval"]: (row["total"], row["rows"]) for row in rows}


def test_what_was_computed_at_once_is_stored_after_a_failure_for_want_of_memory(bench):
    bench.arrive("ids", *range(PARTS))
    trap(bench, "MemoryError")
    bench.inject(Point.AFTER_RECORD, "costly", 1, FaultAction.KILL)  # nothing gets there before it is stored
    first = run(bench, "monday", "r")
    assert killed(first), first.err
    told = (
        f"{REGION} stores ids and costly before what reads them runs, since epoch 1, which computed all of {REGION} "
        "at once, failed (out_of_memory)"
    )

    assert first.err.count(told) == 1
    rest = range(2, PARTS)
    assert made_in(bench, "monday") == {
        "ids": dict.fromkeys(rest, 2),
        "costly": {2: 2, 3: 2},
        "last": {0: 1, 1: 1},
    }

    planned = ended(bench.command("plan", "fallen", "--interval", "monday", "--json"))
    assert (planned.result["reuse"], planned.result["run"], planned.result["along"]) == (8, 7, 0)
    again = run(bench, "monday", "r")
    assert again.counts == (8, 7), again.err
    assert again.err.count(told) == 1
    made = made_in(bench, "monday")
    assert made["ids"] == dict.fromkeys(rest, 2)
    assert made["costly"] == {2: 2, 3: 2, 4: 3, 5: 3}
    assert made["last"] == {0: 1, 1: 1} | dict.fromkeys(rest, 3)
    assert marks(bench) == dict.fromkeys(range(PARTS), 1)
    assert totals(bench) == {"monday": (2 * sum(range(PARTS)), PARTS)}

    what_is_lost_is_healed_as_far_as_it_is_gone(bench)
    another_interval_has_no_such_failure(bench)
    without_the_ledger_what_is_published_counts(bench)


def what_is_lost_is_healed_as_far_as_it_is_gone(bench: Workbench) -> None:
    """The other region finds its own data lost, and all that it needs, and has it healed."""
    made = made_in(bench, "monday")
    lost = marks(bench) | {number: 2 for number in _rows_of(bench, 5)}
    delete(bench, ("costly", 5), ("last", 5), ("total", 0), ("costly", 4))
    healed = run(bench, "monday", "s")
    assert healed.code == 0, healed.err
    assert marks(bench) == lost
    after = made_in(bench, "monday")
    assert [stage for stage in after if after[stage] != made[stage]] == ["costly", "last", "total"]
    assert totals(bench) == {"monday": (2 * sum(range(PARTS)), PARTS)}


def another_interval_has_no_such_failure(bench: Workbench) -> None:
    """And a function's own fault is none."""
    bench.arrive("ids", *range(PARTS, 2 * PARTS))
    trap(bench, "KeyError")
    assert run(bench, "tuesday", "t").code == 1
    resumed = run(bench, "tuesday", "t")
    assert resumed.counts == (2, 5), resumed.err
    assert set(made_in(bench, "tuesday")) == {"last", "total"}
    with Ledger.open(bench.settings.ledger_url) as ledger:
        rules = [
            attempt.failure_rule for attempt in ledger.attempts.of_run("t") if attempt.state is AttemptState.FAILED
        ]
    assert rules == ["user_function"]


def without_the_ledger_what_is_published_counts(bench: Workbench) -> None:
    """Rebuilt from the tables' logs alone: nobody knows of the failure any more, and what was read stays read."""
    known = marks(bench)
    for file in bench.settings.home_path.glob("ledger.db*"):
        file.unlink()
    shutil.rmtree(Path(bench.settings.lake_uri, "ledger"))
    assert ended(bench.command("reconcile")).code == 0
    taken_over = run(bench, "monday", "u", settings=bench.without_spark())
    assert taken_over.counts == (PARTS + 1, 0), taken_over.err
    bench.arrive("ids", 100)
    assert run(bench, "wednesday", "w").code == 0
    assert marks(bench) == {**known, 100: 1}
    assert totals(bench)["wednesday"] == (200, 1)


UNKNOWN = """
from pathlib import Path
from pyspark.sql import functions as F
from stagehold import stage

@stage
def numbers(ctx, source):
    return source

@stage
def doubled(ctx, numbers):
    return numbers.withColumn("double", eval("F.col('number') * 2"))

@stage
def last(ctx, doubled):
    trap = Path(ctx.params["trap"])
    if max(ctx.partitions) > 1 and trap.exists():
        trap.unlink()
        raise MemoryError
    return doubled
"""


def test_code_that_cannot_be_compared_is_stored_and_read_by_one_attempt(tmp_path, spark_remote):
    project = SmallProject.make(tmp_path, spark_remote, UNKNOWN)
    trap = project.settings.home_path / "trap"
    trap.touch()
    stages = {
        "numbers": {"source": NUMBERS},
        "doubled": {"inputs": {"numbers": "forward"}},
        "last": {"inputs": {"doubled": "forward"}},
    }
    facts = {
        "execution_mode": "pipelined_with_batch_fallback",
        "restart": {"strategy": "fixed-delay", "attempts": 1, "delay": "100ms"},
        "params": {"trap": str(trap)},
    }
    recorded = project.run(project.pipeline("unknown", stages, **facts), "r")
    assert {stage: {record.epoch for record in records} for stage, records in recorded.items()} == {
        "numbers": {2},
        "doubled": {2},
        "last": {2},
    }
    assert sum(record.rows for record in recorded["last"]) == FILES * ROWS


def _rows_of(bench: Workbench, partition: int) -> list[int]:
    record = recorded(bench, "monday")["last"][partition]
    return DeltaTable(record.table).to_pyarrow_table(filters=[("_partition", "=", partition)])["id"].to_pylist()
