"""Who counts as a user of the Spark server, without any server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from stagehold.settings import Settings
from stagehold.spark.processes import python_environment
from stagehold.spark.server.server_record import begin_use, died_in_use, server_folder, server_users, using

USE = """
import time
from stagehold.spark.server.server_record import begin_use
from stagehold.settings import load_settings
begin_use(load_settings(), "the other run")
print("using", flush=True)
time.sleep(600)
"""


@pytest.fixture
def settings(tmp_path):
    return Settings(home=str(tmp_path))


def start_user(settings):
    user = subprocess.Popen(
        [sys.executable, "-c", USE], env=dict(python_environment(settings)), stdout=subprocess.PIPE, text=True
    )
    assert user.stdout.readline() == "using\n"
    return user


def test_a_process_is_one_user_however_many_blocks_it_is_in(settings):
    with using(settings, "run a"):
        with using(settings, "run b"):
            assert [(user.pid, user.purpose) for user in server_users(settings)] == [(os.getpid(), "run a")]
        assert len(server_users(settings)) == 1
    assert server_users(settings) == ()
    assert list((server_folder(settings) / "users").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_was_killed_is_no_user_any_more_and_is_known_to_have_died(settings, number):
    user = start_user(settings)
    with using(settings, "mine"):
        assert {str(user) for user in server_users(settings)} == {
            f"mine (process {os.getpid()})",
            f"the other run (process {user.pid})",
        }
        user.send_signal(number)
        user.communicate()
        assert [user.purpose for user in server_users(settings)] == ["mine"]
        assert died_in_use(settings)
    assert not died_in_use(settings)  # it is forgotten with one that leaves
    assert list((server_folder(settings) / "users").iterdir()) == []


def test_who_comes_forgets_those_that_died(settings):
    user = start_user(settings)
    user.kill()
    user.communicate()
    assert died_in_use(settings)
    with using(settings, "the next"):
        assert not died_in_use(settings)


def test_a_use_that_has_begun_lasts_until_the_process_or_a_block_ends(settings):
    begin_use(settings, "a program")
    assert len(server_users(settings)) == 1
    with using(settings, "a block"):
        pass
    assert server_users(settings) == ()
