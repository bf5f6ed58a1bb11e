"""What a StatsD server is sent, over a real socket."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta

import pytest

from stagehold.airflow.telling.task_work import StageWork
from stagehold.model.checkpoint_records import CheckpointRecord, CheckpointState, CheckpointTrigger
from stagehold.model.choices import Severity
from stagehold.model.records import Cell, GateResult, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.spec.pipeline import Stage

pytestmark = pytest.mark.airflow

NOW = datetime(2026, 11, 20, 3, tzinfo=UTC)
CELL = Cell("sales", "totals", "2026-11-20")


@pytest.fixture
def statsd(airflow_home, monkeypatch):
    """A StatsD server that gives what came in, with Airflow set up to send to it as its task processes are."""
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(5)
        for name, value in {
            "STATSD_ON": "True",
            "STATSD_HOST": "127.0.0.1",
            "STATSD_PORT": str(server.getsockname()[1]),
            "STATSD_INFLUXDB_ENABLED": "True",
        }.items():
            monkeypatch.setenv(f"AIRFLOW__METRICS__{name}", value)
        stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)
        yield server
    monkeypatch.undo()
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)


def received(server: socket.socket, number: int) -> set[str]:
    return {server.recv(1000).decode() for _ in range(number)}


def record(partition: int, wave: int, attempt: str) -> PartitionRecord:
    return PartitionRecord(
        cell=CELL,
        partition=partition,
        state=PartitionState.CONSUMABLE,
        run_id="r",
        attempt_id=attempt,
        epoch=1,
        wave=wave,
        table="t",
        version=1,
        files=(),
        rows=1,
        fingerprint="f",
        compute_key="k",
        recorded_at=NOW,
    )


def verdict(partition: int, severity: Severity, minutes: int, *, passed: bool) -> GateResult:
    at = NOW + timedelta(minutes=minutes)
    return GateResult(CELL, partition, "a", "totals", "e", passed, "", at, severity)


def test_metrics_of_a_try_have_its_pipeline_and_stage(statsd):
    from stagehold.airflow.telling.emitted_metrics import send_work

    computed = (record(0, 1, "a"), record(1, 1, "a"), record(2, 2, "a"))
    verdicts = (
        verdict(0, Severity.CRITICAL, 1, passed=True),
        verdict(1, Severity.CRITICAL, 1, passed=True),
        verdict(2, Severity.WARNING, 1, passed=False),
    )
    stage = Stage(name="totals", job="jobs.sales:totals", partitions=4, max_parallelism=128)
    send_work("sales", [StageWork(stage, computed, (record(3, 1, "b"),), verdicts, (), ())])
    tags = "pipeline=sales,stage=totals"
    assert received(statsd, 6) == {
        f"airflow.stagehold.partitions.computed,{tags}:3|c",
        f"airflow.stagehold.partitions.reused,{tags}:1|c",
        f"airflow.stagehold.waves,{tags}:2|c",
        f"airflow.stagehold.reuse_share,{tags}:0.25|g",
        f"airflow.stagehold.gate.verdicts,{tags},severity=critical,verdict=passed:2|c",
        f"airflow.stagehold.gate.verdicts,{tags},severity=warning,verdict=failed:1|c",
    }


def test_the_age_of_a_checkpoint_is_that_of_the_newest_completed_one(statsd):
    from stagehold.airflow.telling.emitted_metrics import send_checkpoint_age

    states = (CheckpointState.COMPLETED, CheckpointState.COMPLETED, CheckpointState.FAILED)
    checkpoints = [
        CheckpointRecord(
            "r", number, "sales", "i", CheckpointTrigger.PERIODIC, state, NOW, NOW + timedelta(minutes=number)
        )
        for number, state in enumerate(states)
    ]
    send_checkpoint_age("sales", checkpoints[2:], NOW)
    send_checkpoint_age("sales", checkpoints, NOW + timedelta(minutes=5))
    assert received(statsd, 1) == {"airflow.stagehold.checkpoint_age,pipeline=sales:240.0|g"}
