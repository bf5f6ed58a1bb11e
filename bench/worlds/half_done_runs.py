"""Failed runs of pipelines of several sizes, in Airflow's database and in a ledger, and Airflow's app behind a port.

There is no data: whether it is still there is not looked up. Environment and imports are in this order because Airflow
reads the environment once.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from unittest import mock

import yaml

if TYPE_CHECKING:
    from tests.airflow.made_runs import HalfDone

PROJECT = Path(__file__).resolve().parents[2]
SAMPLE = "shipping_priority"  # of 81 partitions
WIDE = ("customer", "orders", "lineitem", "returns")  # stages of a made pipeline that read a source
LAST = "orders_by_customer"
DONE_OF_LAST = 5
START_SECONDS = 60


def prepare(home: Path, sizes: dict[str, tuple[int, int]], schedules: Mapping[str, str] = MappingProxyType({})) -> None:
    """The environment of an Airflow of our own, and a pipeline for each name: so many partitions in each of the wide
    stages, and in the last one.

    :param schedules: of those that have one.
    """
    (home / "pipelines").mkdir(parents=True)
    sample = PROJECT / "include" / "pipelines" / f"{SAMPLE}.yaml"
    (home / "pipelines" / sample.name).write_text(sample.read_text())
    for name, (each, last) in sizes.items():
        scheduled = {"schedule": schedules[name]} if name in schedules else {}
        (home / "pipelines" / f"{name}.yaml").write_text(yaml.safe_dump({**_declared(name, each, last), **scheduled}))
    os.environ |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of this benchmark, long enough for HS512 signatures to be accepted",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "STAGEHOLD_HOME": str(home / "stagehold"),
        "STAGEHOLD_PIPELINES": str(home / "pipelines"),
    }


def make_runs(sizes: dict[str, tuple[int, int]]) -> dict[str, HalfDone]:
    """Of each pipeline a run whose last stage stopped half-way, after `prepare`."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.utils.db import initdb
    from tests.airflow.made_runs import make_half_done

    initdb()
    DagBundlesManager().sync_bundles_to_db()
    sync_bag_to_db(DagBag(PROJECT / "dags", bundle_path=PROJECT / "dags"), "dags-folder", None)
    made = {name: _half_done(name, each) for name, (each, _) in sizes.items()}
    return {SAMPLE: make_half_done(SAMPLE, "bench"), **made}


def data_is_there() -> mock._patch[Callable[..., frozenset[int]]]:
    """Whatever the lake says. By a function of its own: a mock keeps all that it is given, and here that is the records
    of a hundred thousand partitions each time that somebody plans.
    """
    return mock.patch("stagehold.run.planning.on_record.missing_data", _nothing_is_missing)


def _nothing_is_missing(_: object) -> frozenset[int]:
    return frozenset()


@contextmanager
def airflow_server() -> Iterator[str]:
    """The address of Airflow's own app, in this process."""
    import uvicorn
    from airflow.api_fastapi.main import app
    from fastapi.testclient import TestClient

    with TestClient(app), socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.05)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def token() -> str:
    """That of a user who may do everything."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    return str(get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="bench", role="admin")))


def _declared(name: str, each: int, last: int) -> dict[str, object]:
    source = {"kind": "parquet", "path": f"${{lake}}/raw/{name}/*.parquet", "splits": each}
    wide = {stage: {"job": f"jobs.tpch:{_job(stage)}", "source": source} for stage in WIDE}
    keyed = {
        "job": f"jobs.tpch:{LAST}",
        "inputs": {
            "customer": {"exchange": "keyed", "key": "c_custkey"},
            "orders": {"exchange": "keyed", "key": "o_custkey"},
        },
        "key": "o_custkey",
        "partitions": last,
    }
    return {"pipeline": name, "stages": {**wide, LAST: keyed}}


def _job(stage: str) -> str:
    return "lineitem" if stage == "returns" else stage


def _half_done(name: str, each: int) -> HalfDone:
    from tests.airflow.made_runs import HalfDone, fill_ledger, make_dag_run

    from stagehold.settings import load_settings

    folder = Path(load_settings().lake_uri) / "raw" / name
    folder.mkdir(parents=True)
    for number in range(each):
        (folder / f"{number:06}.parquet").touch()
    make_dag_run(name, "bench", {LAST: "failed"})
    fill_ledger(name, "bench", {**dict.fromkeys(WIDE, each), LAST: DONE_OF_LAST})
    return HalfDone(name, "bench")
