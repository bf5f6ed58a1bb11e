"""A wave whose attempt is killed between publish and record: what its gate said of it goes on record with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.run.workbench import INTERVAL, ROWS, Workbench, ended, killed

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, GateResult
from stagehold.run.faults import FaultAction, Point

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

RUN, STAGE = "r1", "by_colour"
SUITE = """\
suite: by_colour
expectations:
  - {{type: expect_column_values_to_be_between, column: total, min_value: 0, {then}}}
  - {{type: expect_table_row_count_to_be_between, min_value: 0, severity: critical}}
"""


@pytest.fixture(params=["severity: warning", "on_fail: quarantine"])
def bench(tmp_path: Path, spark_remote: str, request: pytest.FixtureRequest) -> Workbench:
    """Some totals of each partition are negative, of which the gate warns, or which it sets aside."""
    bench = Workbench.make(tmp_path, spark_remote)
    Path(bench.settings.suites, "by_colour.yaml").write_text(SUITE.format(then=request.param))
    path = Path(bench.settings.lake_uri, "raw", "numbers", "part-3.parquet")
    pq.write_table(pa.table({"number": pa.array(range(-7000 - ROWS, -7000), pa.int64())}), path)
    return bench


def verdicts(bench: Workbench) -> Sequence[GateResult]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return ledger.gates.newest(Cell("toy", STAGE, INTERVAL))


def said(bench: Workbench) -> list[tuple[int, str, bool, str]]:
    """But for who said it, and when."""
    return [(verdict.partition, verdict.expectation, verdict.passed, verdict.observed) for verdict in verdicts(bench)]


def warned(bench: Workbench) -> int:
    """How often the run was warned by its gate."""
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return sum("does not meet" in event.text for event in ledger.events.of_run(RUN) if event.kind == "gate")


def written(bench: Workbench) -> list[str]:
    """The files of what is published; nobody writes the same one twice."""
    (table,) = Path(bench.settings.lake_uri).glob(f"stages/toy/{STAGE}/*/_delta_log")
    return sorted(DeltaTable(str(table.parent)).file_uris())


@pytest.fixture
def undisturbed(tmp_path_factory: pytest.TempPathFactory, spark_remote: str, bench: Workbench):
    """What a gate says of the same data where nobody is killed, and how often it warns."""
    other = Workbench.make(tmp_path_factory.mktemp("undisturbed"), spark_remote)
    for file in Path(bench.settings.lake_uri, "raw", "numbers").iterdir():
        Path(other.settings.lake_uri, "raw", "numbers", file.name).write_bytes(file.read_bytes())
    suite = Path(bench.settings.suites, "by_colour.yaml").read_text()
    Path(other.settings.suites, "by_colour.yaml").write_text(suite)
    assert other.run("--run-id", RUN).code == 0
    return said(other), warned(other)


def kept_beside(bench: Workbench) -> list[Path]:
    """Verdicts that lie beside the files of a wave."""
    return sorted(Path(bench.settings.lake_uri).rglob("_verdicts/*"))


def test_the_next_attempt_records_and_tells_it_and_computes_nothing_of_the_wave(bench, undisturbed):
    """That attempt is killed as well, before its first commit."""
    bench.inject(Point.AFTER_PUBLISH, STAGE, 1, FaultAction.KILL)
    assert killed(bench.run("--run-id", RUN))
    first = written(bench)
    assert (said(bench), bench.records(STAGE)) == ([], ())
    bench.inject(Point.BEFORE_PUBLISH, STAGE, 1, FaultAction.KILL)
    assert killed(bench.run("--run-id", RUN))
    assert written(bench) == first
    assert {partition for partition, *_ in said(bench)} == {0, 1}
    assert [partition for partition, _, passed, _ in said(bench) if not passed] == [0, 1]
    last = bench.run("--run-id", RUN)
    assert last.code == 0, last.err
    assert set(first) < set(written(bench))
    assert (said(bench), warned(bench)) == undisturbed
    assert bench.run("--run-id", "r2").counts == (13, 0)


def test_what_reconcile_adopts_has_its_verdicts_in_ledger_and_chronicle(bench, undisturbed):
    bench.inject(Point.AFTER_PUBLISH, STAGE, 1, FaultAction.KILL)
    assert killed(bench.run("--run-id", RUN))
    reconcile = ("reconcile", "--json")
    repaired = ended(bench.command(*reconcile, settings=bench.without_spark()))
    assert repaired.code == 0, repaired.err
    adopted = {partition for partition, *_ in said(bench)}
    assert adopted == {record.partition for record in bench.records(STAGE)} == {0, 1}
    for file in bench.settings.home_path.glob("ledger.db*"):
        file.unlink()
    assert ended(bench.command(*reconcile, settings=bench.without_spark())).code == 0
    assert {partition for partition, *_ in said(bench)} == adopted
    done = bench.run("--run-id", RUN)
    assert done.code == 0, done.err
    assert said(bench) == undisturbed[0]


def test_who_lives_leaves_no_verdicts_beside_the_files(bench):
    assert bench.run("--run-id", RUN).code == 0
    assert kept_beside(bench) == []
