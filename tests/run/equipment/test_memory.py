"""Whose memory is told of."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from stagehold.model.pulse import Memory
from stagehold.run.equipment.memory import memory_now
from stagehold.settings import Settings
from stagehold.spark.processes import identify, kill_session, resident_bytes, session_members, wait_until
from stagehold.spark.server.server_record import ServerState, server_folder, write_state


@pytest.fixture
def settings(tmp_path):
    return Settings(home=str(tmp_path))


def test_without_a_server_it_is_this_process_alone(settings):
    now = memory_now(settings)
    assert now.server is None
    assert resident_bytes() // 2 < now.client < 2 * resident_bytes()


def test_a_local_server_counts_with_its_whole_session(settings):
    folder = server_folder(settings)
    folder.mkdir(parents=True)
    keep = [sys.executable, "-c", "import os; os.fork(); input()"]
    with subprocess.Popen(keep, stdin=subprocess.PIPE, start_new_session=True) as server:
        leader = identify(server.pid)
        state = ServerState(leader.pid, leader.started, 1, "", "", "", leader.pid, leader.started, kept_up=False)
        write_state(settings, state)
        assert wait_until(lambda: len(session_members(server.pid)) == 2, 10)
        two = memory_now(settings).server
        assert two > resident_bytes(server.pid) > 0
        assert memory_now(replace(settings, spark_remote="sc://there:1")).server is None
        kill_session(leader)
    assert memory_now(settings) == Memory(memory_now(settings).client)
