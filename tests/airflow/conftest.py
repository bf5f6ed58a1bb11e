"""A migrated Airflow home for the session; everything is set before Airflow is imported, which reads it once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

PROJECT = Path(__file__).resolve().parents[2]
PIPELINE = "shipping_priority"
DAY = datetime(2026, 11, 20, 2, tzinfo=UTC)


@pytest.fixture(scope="session", autouse=True)
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _environment(home).items():
            patch.setenv(name, value)
        yield home


@pytest.fixture(scope="session")
def synced_airflow(airflow_home: Path) -> Path:
    """The metadata database with the repository's DAGs in it."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.utils.db import initdb

    initdb()
    DagBundlesManager().sync_bundles_to_db()
    sync_bag_to_db(DagBag(PROJECT / "dags", bundle_path=PROJECT / "dags"), "dags-folder", None)
    return airflow_home


@pytest.fixture(scope="session")
def api(synced_airflow: Path) -> Iterator[TestClient]:
    """The api-server's own app, which is also the one that a resume calls."""
    from airflow.api_fastapi.main import app
    from fastapi.testclient import TestClient

    # Redirects and cookies would hide what a route answers by itself.
    with TestClient(app, follow_redirects=False) as client:
        yield client


@pytest.fixture(scope="session")
def bearer(api: TestClient) -> Callable[[str | None], dict[str, str]]:
    """Headers of a user with the given role; the role None is a user without any permission."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    def headers(role: str | None) -> dict[str, str]:
        token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=f"{role} user", role=role))
        return {"Authorization": f"Bearer {token}"}

    return headers


@dataclass(frozen=True)
class HalfDone:
    """A failed run whose first stages are consumable and whose fourth stopped half-way, written by hand."""

    dag_id: str
    run_id: str

    @property
    def url(self) -> str:
        return f"/stagehold/api/dags/{self.dag_id}/runs/{quote(self.run_id, safe='')}"


@pytest.fixture
def half_done(synced_airflow: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> HalfDone:
    """A new half-done run; ``@pytest.mark.parametrize("half_done", [run id], indirect=True)`` names it."""
    run_id = getattr(request, "param", f"manual__{uuid4()}")
    monkeypatch.setattr("stagehold.run.planning.missing_data", lambda records: frozenset())
    make_sources(synced_airflow / "stagehold" / "lake")
    states = {"orders_by_customer": "failed", "shipping_priority": "upstream_failed", "top_orders": "upstream_failed"}
    make_dag_run(PIPELINE, run_id, states)
    fill_ledger(PIPELINE, f"{PIPELINE}/{run_id}", done={"customer": 16, "orders": 16, "lineitem": 16, "orders_by_customer": 5})
    return HalfDone(PIPELINE, run_id)


def make_sources(lake: Path) -> None:
    for table in ("customer", "orders", "lineitem"):
        folder = lake / "raw" / table
        folder.mkdir(parents=True, exist_ok=True)
        for index in range(16):
            (folder / f"{index:02}.parquet").touch()


def make_dag_run(dag_id: str, run_id: str, states: dict[str, str], state: str = "failed", conf: dict[str, Any] | None = None) -> None:
    """A run in the metadata database as a scheduler would have left it; tasks not named succeeded."""
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    with create_session() as session:
        dag = SerializedDagModel.get_dag(dag_id, session=session)
        assert dag is not None
        dag_run = dag.create_dagrun(
            run_id=run_id,
            run_after=DAY,
            conf={"interval": run_id, **(conf or {})},
            run_type=DagRunType.MANUAL,
            triggered_by=DagRunTriggeredByType.TEST,
            state=DagRunState.QUEUED,
            session=session,
        )
        for instance in dag_run.get_task_instances(session=session):
            instance.state = states.get(instance.task_id, "success")
        dag_run.state = DagRunState(state)


def fill_ledger(pipeline_name: str, run_id: str, *, done: dict[str, int]) -> None:
    """Record the first so many partitions of each stage as consumable, with the keys the planner wants now."""
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.spec_file import find_pipeline
    from stagehold.run.planning import RunRequest, plan_run
    from stagehold.settings import load_settings

    settings = load_settings()
    pipeline = find_pipeline(pipeline_name, settings)
    request = RunRequest(pipeline, run_id, run_id.partition("/")[2], {})
    with Ledger.open(settings.ledger_url) as ledger:
        ledger.runs.start(_run(request))
        for stage, count in done.items():
            keys = [str(decision.key) for decision in plan_run(request, ledger, settings).of(stage)]
            _record(ledger, request, stage, keys[:count], finished=count == pipeline.stage(stage).partitions)


def _run(request: Any) -> Any:
    from stagehold.model.records import Run, RunState

    return Run(request.run_id, request.pipeline.name, request.interval, "airflow", RunState.RUNNING, None, datetime.now(UTC))


def _record(ledger: Any, request: Any, stage: str, keys: list[str], *, finished: bool) -> None:
    from stagehold.model.records import Attempt, AttemptState, Cell, PartitionRecord, PartitionState

    lease = ledger.leases.acquire(f"{request.pipeline.name}/{request.interval}/{stage}", "the test", 60)
    attempt_id = f"{request.run_id}.{stage}.{lease.epoch}"
    ledger.attempts.start(
        Attempt(
            attempt_id, request.run_id, request.pipeline.name, request.interval, stage, lease.epoch, AttemptState.RUNNING, datetime.now(UTC)
        )
    )
    cell = Cell(request.pipeline.name, request.pipeline.stage(stage).id, request.interval)
    made = [
        PartitionRecord(
            cell=cell,
            partition=partition,
            state=PartitionState.CONSUMABLE,
            run_id=request.run_id,
            attempt_id=attempt_id,
            epoch=lease.epoch,
            wave=partition // 4,
            table=f"lake/{stage}",
            version=1 + partition // 4,
            files=(),
            rows=100 + partition,
            fingerprint=f"{partition}",
            compute_key=key,
            recorded_at=datetime.now(UTC),
        )
        for partition, key in enumerate(keys)
    ]
    ledger.partitions.record(made, lease)
    ending = (AttemptState.FINISHED, None) if finished else (AttemptState.FAILED, f"Spark lost its server in the middle of {stage}.")
    ledger.attempts.finish(attempt_id, *ending)
    ledger.leases.release(lease)


def _environment(home: Path) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of this test run, long enough for HS512 signatures to be accepted, says the library",
        "AIRFLOW__SCHEDULER__ALLOWED_RUN_ID_PATTERN": "^.+$",
        "STAGEHOLD_HOME": str(home / "stagehold"),
    }
