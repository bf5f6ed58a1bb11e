"""Two `stagehold run` in one home, without `stagehold up`: they share one Spark server, whoever started it."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest
from tests.conftest import QUICK_JAVA
from tests.run.busy import BusyJob, until
from tests.run.workbench import Workbench, ended, killed

from stagehold.spark.server.server import running_server
from stagehold.spark.server.server_record import server_users

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, own_settings):
    made = Workbench.make(tmp_path, "")
    return Workbench(
        replace(made.settings, spark_port=own_settings.spark_port, spark_memory="1g", spark_java_options=QUICK_JAVA)
    )


def test_a_run_goes_on_when_the_one_that_started_the_server_is_killed_and_the_last_one_stops_it(bench, tmp_path):
    busy = BusyJob.put_into(bench, tmp_path)
    starter = bench.command("run", "toy", "--interval", "2026-11-20", "--run-id", "r1", "--json")
    until(busy.works, 120)
    other = bench.command("run", "toy", "--interval", "2026-11-21", "--run-id", "r2", "--json")
    until(lambda: len(server_users(bench.settings)) == 2, 60)
    assert {user.purpose for user in server_users(bench.settings)} == {"run r1", "run r2"}
    server = running_server(bench.settings)
    starter.send_signal(signal.SIGKILL)
    assert killed(ended(starter))
    busy.let_go()
    assert running_server(bench.settings) == server
    assert ended(other).counts == (0, 13)
    until(lambda: running_server(bench.settings) is None, 60)
    assert not server.process.alive
