from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from multiprocessing import get_context

import pytest

from stagehold.run.lease.lease_holder import LeaseHolder, described, this_process

ME = this_process("airflow/dag/run/region")
OLDER, NEWER = (ME.command[0] - 1, 1), (ME.command[0] + 1, 1)


@pytest.mark.parametrize(
    ("held_by", "expected"),
    [
        pytest.param(str(LeaseHolder(ME.owner, "other-host", 1, "1")), True, id="an earlier try for the same owner"),
        pytest.param(
            str(LeaseHolder("cli/run", "other-host", 1, "1")), False, id="somebody else, somewhere else: cannot know"
        ),
        pytest.param(str(replace(ME, owner="cli/run", command=())), False, id="somebody else, alive"),
        pytest.param(
            str(replace(ME, owner="cli/run", started="1", command=())), True, id="its pid was given to a newer process"
        ),
        pytest.param(str(replace(ME, command=OLDER)), True, id="an older command of the same owner, alive"),
        pytest.param(str(replace(ME, command=NEWER)), False, id="a newer command of the same owner, alive"),
        pytest.param(str(replace(ME, command=NEWER, started="1")), True, id="one that was newer, and has ended"),
        pytest.param(
            str(LeaseHolder(ME.owner, "other-host", 1, "1", NEWER)), True, id="clocks of two hosts are not compared"
        ),
        pytest.param(
            str(replace(ME, owner="cli/run", pid=1, started="1", table="8b1f22c0.4026532190")),
            False,
            id="somebody else, in a container whose host is called like this one: cannot know",
        ),
        pytest.param(
            str(replace(ME, command=NEWER, table="8b1f22c0.4026532190")),
            True,
            id="an earlier try for the same owner, on a machine that is called like this one",
        ),
        pytest.param("cli/run|" + ME.host + "|1|1", False, id="somebody else, told by a version that named no table"),
        pytest.param("anything", False, id="no holder's text"),
        pytest.param("a|b|no number|d", False, id="no pid"),
    ],
)
def test_who_may_be_taken_over(held_by, expected):
    assert ME.may_seize(held_by) is expected


def test_a_process_that_ended_may_be_taken_over():
    code = "from stagehold.run.lease.leasing import this_process; print(this_process('cli/run'))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert ME.may_seize(ended)


def test_processes_of_one_command_are_one_try():
    with get_context("spawn").Pool(2) as pool:
        one, other = pool.map(this_process, [ME.owner, ME.owner], chunksize=1)
    assert one.command == other.command == ME.command
    assert one.may_seize(str(other))
    assert other.may_seize(str(one))


def test_people_are_told_the_name_of_a_host_and_not_its_table_of_processes():
    assert LeaseHolder.parse(str(ME)) == ME
    assert described(str(ME)) == f"{ME.owner} (process {ME.pid} on {ME.host})"
    assert ME.table
    assert ME.table not in described(str(ME))
