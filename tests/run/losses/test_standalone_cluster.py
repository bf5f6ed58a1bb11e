"""A standalone cluster of pyspark's own master and workers: equal to the local server, and it may lose a worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import QUICK_JAVA, free_port
from tests.run.busy import BusyJob, until
from tests.run.standalone import Cluster, standalone_cluster
from tests.run.workbench import Workbench, ended

from stagehold.ledger.ledger import Ledger
from stagehold.spark.server.server import spark_server
from stagehold.spark.session.server_check import server_facts

pytestmark = pytest.mark.spark

STAGES = ("numbers", "by_colour", "summary")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("standalone")) as made:
        yield made


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[Workbench]:
    made = Workbench.make(tmp_path_factory.mktemp("clustered"), "")
    settings = replace(
        made.settings,
        spark_master=cluster.master,
        spark_port=free_port(),
        spark_java_options=QUICK_JAVA,
        spark_memory="1g",
    )
    with spark_server(settings):
        yield Workbench(settings)


def test_what_pipelines_need_of_a_server_is_there(bench: Workbench) -> None:
    facts = {fact.what: fact for fact in server_facts(bench.settings)}
    assert {what: fact.change for what, fact in facts.items()} == dict.fromkeys(facts, "")
    assert facts.keys() == {"session", "Delta", "Python of workers", "lake"}
    assert "2 workers" in facts["Python of workers"].said
    assert not list(Path(bench.settings.lake_uri).glob("_check*"))


def test_rows_keys_and_fingerprints_are_those_of_the_local_server(
    bench: Workbench, tmp_path: Path, spark_remote: str
) -> None:
    here = Workbench.make(tmp_path, spark_remote)
    for each in (here, bench):
        run = each.run("--run-id", "same")
        assert run.code == 0, run.err
    assert bench.published() == here.published() == bench.expected()
    for stage in STAGES:
        assert facts_of(bench, stage) == facts_of(here, stage)
        assert facts_of(here, stage)
    # Keys are equal if the local server has nothing to do in the cluster's lake.
    on_local = replace(bench.settings, spark_master="", spark_remote=spark_remote)
    again = bench.run("--run-id", "again", settings=on_local)
    assert (again.code, again.counts) == (0, (13, 0)), again.err


def facts_of(bench: Workbench, stage: str) -> list[tuple[object, ...]]:
    records = bench.records(stage)
    return sorted((one.partition, one.fingerprint, one.rows) for one in records)


def test_a_run_survives_a_worker_that_is_lost_in_the_middle_of_a_wave(
    bench: Workbench, cluster: Cluster, tmp_path: Path
) -> None:
    busy = BusyJob.put_into(bench, tmp_path)
    running = bench.command("run", "toy", "--interval", "2026-11-20", "--run-id", "lost", "--json")
    until(busy.works, 90)
    cluster.lose_worker()
    busy.let_go()
    assert ended(running).code == 0
    assert bench.published() == bench.expected()
    with Ledger.open(bench.settings.ledger_url) as ledger:
        attempts = [attempt.region for attempt in ledger.attempts.of_run("lost")]
    assert len(attempts) == len(set(attempts))  # Spark repeated the tasks of the worker; no attempt noticed
