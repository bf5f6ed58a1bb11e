from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from stagehold.run.faults import FaultAction, Faults, InjectedFailure, InjectedFault, Point, inject


def test_a_point_without_a_fault_is_passed(tmp_path):
    Faults(tmp_path, "day").reach(Point.BEFORE_WRITE, "orders", 1)


@pytest.mark.parametrize(("action", "error"), [(FaultAction.RAISE, InjectedFault), (FaultAction.FAIL, InjectedFailure)])
def test_a_fault_hits_once(tmp_path, action, error):
    inject(tmp_path, Point.AFTER_WRITE, "orders", 2, action)
    Faults(tmp_path, "day").reach(Point.AFTER_WRITE, "orders", 1)
    with pytest.raises(error):
        Faults(tmp_path, "day").reach(Point.AFTER_WRITE, "orders", 2)
    Faults(tmp_path, "day").reach(Point.AFTER_WRITE, "orders", 2)


def test_a_fault_of_an_interval_hits_no_other(tmp_path):
    inject(tmp_path, Point.AFTER_WRITE, "orders", 1, FaultAction.RAISE, "2026-11-20T02:00:00Z")
    Faults(tmp_path, "day").reach(Point.AFTER_WRITE, "orders", 1)
    with pytest.raises(InjectedFault):
        Faults(tmp_path, "2026-11-20T02:00:00Z").reach(Point.AFTER_WRITE, "orders", 1)


CHILD = """
import sys
from pathlib import Path
from stagehold.run.faults import Faults, Point
Faults(Path(sys.argv[1]), "day").reach(Point.AFTER_PUBLISH, "orders", 1)
print("woke up")
"""


def start(home):
    return subprocess.Popen([sys.executable, "-c", CHILD, str(home)], stdout=subprocess.PIPE, text=True)


def test_kill_ends_the_process_at_the_point(tmp_path):
    inject(tmp_path, Point.AFTER_PUBLISH, "orders", 1, FaultAction.KILL)
    child = start(tmp_path)
    assert child.communicate(timeout=30)[0] == ""
    assert child.returncode == -signal.SIGKILL


def test_a_frozen_process_goes_on_when_it_is_woken(tmp_path):
    inject(tmp_path, Point.AFTER_PUBLISH, "orders", 1, FaultAction.FREEZE)
    child = start(tmp_path)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    child.send_signal(signal.SIGCONT)
    assert child.communicate(timeout=30)[0] == "woke up\n"


WRITER = """
import sys, threading, time
from pathlib import Path
from stagehold.ledger.database.engine import Database
from stagehold.run.faults import Faults, Point

def write():
    while True:
        with Database(f"sqlite:///{sys.argv[1]}/ledger.db").writing() as connection:
            connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS said (word)")
            begun.set()
            time.sleep(0.01)
        time.sleep(0.01)

begun = threading.Event()
threading.Thread(target=write, daemon=True).start()
begun.wait()
Faults(Path(sys.argv[1]), "day").reach(Point.AFTER_PUBLISH, "orders", 1)
"""


def test_a_frozen_process_keeps_nobody_from_the_ledger(tmp_path):
    inject(tmp_path, Point.AFTER_PUBLISH, "orders", 1, FaultAction.FREEZE)
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)])
    try:
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None, timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")
    finally:
        child.kill()
        child.wait()


PASSER = """
import mmap, os, sys, threading
from pathlib import Path
from stagehold.run.faults import Faults, Point

def work():
    Faults(Path(sys.argv[1]), "day").reach(Point.AFTER_PUBLISH, "orders", 1)
    passed[0] = 1

passed = mmap.mmap(os.open(f"{sys.argv[1]}/passed", os.O_RDWR), 1)
other = threading.Thread(target=work)
other.start()
other.join()
"""


def test_a_thread_that_freezes_its_process_takes_no_further_step(tmp_path):
    (tmp_path / "passed").write_bytes(b"\0")
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        assert [_steps_of_a_frozen_one(tmp_path) for _ in range(8)] == [b"\0"] * 8
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _steps_of_a_frozen_one(home):
    inject(home, Point.AFTER_PUBLISH, "orders", 1, FaultAction.FREEZE)
    child = subprocess.Popen([sys.executable, "-c", PASSER, str(home)])
    try:
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        return (home / "passed").read_bytes()
    finally:
        child.kill()
        child.wait()
