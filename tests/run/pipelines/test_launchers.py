"""Every launcher gives the same rows under the same keys; a driver of its own is found again, and lost for nothing."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import QUICK_JAVA, free_port
from tests.run.busy import BusyJob, until
from tests.run.standalone import standalone_cluster
from tests.run.workbench import INTERVAL, Workbench, ended

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, RunState
from stagehold.run.faults import FaultAction, Point
from stagehold.spark.server.server import spark_server
from stagehold.spark.server.server_record import read_state

pytestmark = pytest.mark.spark

STAGES = ("numbers", "by_colour", "summary")
SUBMIT = "launcher: submit\nrestart: {strategy: fixed-delay, attempts: 3, delay: 100ms}"
RUN = ("run", "toy", "--interval", INTERVAL, "--run-id", "r1")
END_SECONDS = 240  # four applications, one after the other
GIVEN_YARN = os.environ.get("STAGEHOLD_TEST_YARN", "")  # the folder with the yarn-site.xml of one that runs
KINDS = {"submit": "local", "submit to a cluster": "app", "submit to YARN": "application"}  # how ids begin
LAUNCHERS = ["server", "server on a cluster", "submit", "submit to a cluster"]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("standalone")) as made:
        yield made.master


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, spark_remote: str) -> Workbench:
    """What a server elsewhere computes."""
    made = Workbench.make(tmp_path_factory.mktemp("elsewhere"), spark_remote)
    assert made.run("--run-id", "r1").code == 0
    return made


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    made = Workbench.make(tmp_path, "")
    own = replace(made.settings, spark_port=free_port(), spark_java_options=QUICK_JAVA, spark_memory="1g")
    return Workbench(own)


def submitting(bench: Workbench, master: str = "") -> Workbench:
    bench.declare(SUBMIT)
    return Workbench(replace(bench.settings, spark_master=master))


def made(bench: Workbench) -> list[tuple[object, ...]]:
    """Of keys all but the inputs' part, which says when the files of a source were written."""
    return sorted(
        (stage, one.partition, str(one.compute_key).rpartition(".")[0], one.fingerprint, one.rows)
        for stage in STAGES
        for one in bench.records(stage)
    )


def applications(bench: Workbench) -> list[Path]:
    return list((bench.settings.home_path / "drivers").glob("*/spark/server.json"))


@pytest.mark.parametrize("launcher", [*LAUNCHERS, *(["submit to YARN"] if GIVEN_YARN else [])])
def test_rows_keys_and_fingerprints_are_those_of_every_other_launcher(launcher, bench, reference, request, monkeypatch):
    master = request.getfixturevalue("master") if launcher.endswith("cluster") else ""
    if launcher.endswith("YARN"):
        master = "yarn"
        monkeypatch.setenv("YARN_CONF_DIR", GIVEN_YARN)
        bench = Workbench(replace(bench.settings, spark_conf=os.environ.get("STAGEHOLD_SPARK_CONF", "")))
    bench = submitting(bench, master) if launcher.startswith("submit") else bench
    settings = replace(bench.settings, spark_master=master)
    run = ended(bench.command(*RUN, "--json", settings=settings), END_SECONDS)
    assert run.counts == (0, 13), run.err
    assert bench.published() == reference.published() == bench.expected()
    assert made(bench) == made(reference)
    assert applications(bench) == []
    told = re.search(r"^numbers is computed by Spark application (\w+)-", run.err, re.MULTILINE)
    assert (told and told[1]) == KINDS.get(launcher)


def test_a_lake_in_a_folder_is_there_whatever_file_system_hadoops_configuration_names(bench, tmp_path, monkeypatch):
    """Beside YARN that is HDFS, as a rule."""
    (tmp_path / "hadoop").mkdir()
    elsewhere = "<property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:9/</value></property>"
    (tmp_path / "hadoop" / "core-site.xml").write_text(f"<configuration>{elsewhere}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "hadoop"))
    run = ended(bench.command(*RUN, "--json"), END_SECONDS)
    assert run.counts == (0, 13), run.err
    assert bench.published() == bench.expected()


@pytest.mark.parametrize("of_what", ["driver", "java"])
def test_a_driver_or_its_spark_that_is_killed_is_followed_by_another_one(of_what, bench, tmp_path):
    bench = submitting(bench)
    if of_what == "driver":
        bench.inject(Point.BEFORE_PUBLISH, "by_wave", 2, FaultAction.KILL)
        run = ended(bench.command(*RUN), END_SECONDS)
        assert "was killed (signal 9)" in run.err
        assert set(bench.epochs("by_wave")) == {1, 2}
    else:
        busy = BusyJob.put_into(bench, tmp_path)
        running = bench.command(*RUN)
        until(busy.works, 120)
        (folder,) = (bench.settings.home_path / "drivers").glob("*/spark")
        state = read_state(replace(bench.settings, spark_folder=str(folder)))
        assert state
        os.kill(state.pid, signal.SIGKILL)
        busy.let_go()
        run = ended(running, END_SECONDS)
    assert run.code == 0, run.err
    assert bench.published() == bench.expected()


def test_a_driver_that_outlives_its_submitter_is_found_again_and_none_is_there_twice(bench, tmp_path):
    bench = submitting(bench)
    busy = BusyJob.put_into(bench, tmp_path)
    first = bench.command(*RUN)
    until(busy.works, 120)
    os.kill(first.pid, signal.SIGKILL)
    again = bench.command(*RUN)
    until(lambda: "reconciling: the driver of an earlier try is still at work" in again.err(), 60)
    with Ledger.open(bench.settings.ledger_url) as ledger:
        (attempt,) = ledger.attempts.of_run("r1")
    busy.let_go()
    run = ended(again, END_SECONDS)
    assert run.code == 0, run.err
    assert bench.published() == bench.expected()
    assert set(bench.epochs("numbers")) == {1}
    with Ledger.open(bench.settings.ledger_url) as ledger:
        of_numbers = [one for one in ledger.attempts.of_run("r1") if one.region == "numbers"]
        kinds = [event.kind for event in ledger.events.of_run("r1")]
    assert (of_numbers[0].attempt_id, of_numbers[0].state) == (attempt.attempt_id, AttemptState.FINISHED)
    assert kinds.count("reconciling") == 1
    assert "opened Spark session" in run.err  # its log, from the beginning on


def test_a_driver_whose_submitter_is_gone_is_cancelled_by_command(bench, tmp_path):
    bench = submitting(bench)
    busy = BusyJob.put_into(bench, tmp_path)
    first = bench.command(*RUN)
    until(busy.works, 120)
    os.kill(first.pid, signal.SIGKILL)
    assert ended(bench.command("cancel", "r1")).code == 0
    with Ledger.open(bench.settings.ledger_url) as ledger:
        (attempt,) = ledger.attempts.of_run("r1")
        assert (attempt.state, ledger.runs.get("r1").state) == (AttemptState.CANCELED, RunState.CANCELED)
    last = busy.worked_last()
    busy.let_go()
    until(lambda: not applications(bench), 30)
    assert busy.worked_last() - last < 5


def test_a_server_of_this_home_is_not_started_for_drivers(bench):
    bench = submitting(bench)
    with spark_server(bench.settings):
        before = read_state(bench.settings)
        assert ended(bench.command(*RUN, "--json", "--parallel", "2"), END_SECONDS).counts == (0, 13)
        assert read_state(bench.settings) == before
    assert bench.published() == bench.expected()
