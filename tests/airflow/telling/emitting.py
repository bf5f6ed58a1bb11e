"""Emits the lineage of a stage of which one partition was computed, below the folder that is its argument, and prints
which package of OpenLineage that took.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

from tests.run.small_project import INTERVAL, NUMBERS, SmallProject

from stagehold.airflow.telling.stage_lineage import emit_lineage
from stagehold.airflow.telling.task_work import work_since
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Severity
from stagehold.model.records import Cell, DataFile, GateResult, PartitionRecord, Run, RunState
from stagehold.model.standing import PartitionState
from stagehold.plan.split.regions import stage_regions
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.spec.pipeline import Pipeline

NOW = datetime(2026, 11, 20, 3, tzinfo=UTC)
CELL = Cell("sales", "totals", INTERVAL)
JOBS = "def orders(ctx, source): ...\ndef totals(ctx, orders): ...\n"
SUITE = "suite: totals\nexpectations: []\n"


def made_pipeline(folder: Path) -> tuple[SmallProject, Pipeline]:
    (folder / "totals.yaml").write_text(SUITE)
    project = SmallProject.make(folder, "", JOBS)
    output = {"type": "blocking_persistent", "table": "marts.totals"}
    totals = {"inputs": {"orders": {"exchange": "keyed", "key": "number"}}, "partitions": 2}
    stages = {"orders": {"source": NUMBERS}, "totals": {**totals, "gate": "totals", "output": output}}
    return project, project.pipeline("sales", stages)


def record(partition: int, run_id: str) -> PartitionRecord:
    return PartitionRecord(
        cell=CELL,
        partition=partition,
        state=PartitionState.CONSUMABLE,
        run_id=run_id,
        attempt_id="a",
        epoch=1,
        wave=1,
        table="t",
        version=1,
        files=(DataFile("_data/a/1/part.parquet", 15, 7),),
        rows=7,
        fingerprint="f",
        compute_key="k",
        recorded_at=NOW,
    )


def verdict(partition: int, expectation: str, severity: Severity, *, passed: bool) -> GateResult:
    return GateResult(CELL, partition, "a", "totals", expectation, passed, "12", NOW, severity)


def main(folder: Path) -> None:
    project, pipeline = made_pipeline(folder)
    request = RunRequest(pipeline, "sales/r", INTERVAL, {})
    region = next(one for one in stage_regions(pipeline) if one.name == "totals")
    task = RegionTask(request, region, "the test", "airflow")
    dag_run = SimpleNamespace(logical_date=NOW, run_after=NOW, conf={}, clear_number=0)
    instance = SimpleNamespace(
        dag_id="sales",
        task_id="totals",
        try_number=1,
        map_index=-1,
        dag_run=dag_run,
        get_template_context=lambda: {"dag_run": dag_run},
    )
    with Ledger.open(project.settings.ledger_url) as ledger:
        ledger.runs.start(Run("sales/r", "sales", INTERVAL, "airflow", RunState.RUNNING, NOW))
        lease = ledger.leases.acquire("sales", "the test", 60)
        ledger.partitions.record([record(0, "sales/before"), record(1, "sales/r")], lease)
        ledger.gates.record(
            [verdict(number, "not_null(price)", Severity.CRITICAL, passed=True) for number in (0, 1)]
            + [verdict(number, "few(rows)", Severity.WARNING, passed=number == 0) for number in (0, 1)]
        )
        for work in work_since(datetime.min.replace(tzinfo=UTC), task, ledger):
            failed = emit_lineage(work, task, ledger, project.settings, instance)
            print(f"not told: {': '.join(failed)}" if failed else "told")
    print(sorted({name.partition(".")[0] for name in sys.modules} & {"openlineage"}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
