"""A whole Stagehold on this machine for end-to-end tests: its own home, ports, data, Airflow and Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from deltalake import DeltaTable
from tests.e2e.driven_airflow import DrivenAirflow

from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.local.demo.demo_run import expected_top_orders, published_top_orders
from stagehold.local.state import ServiceState, living_supervisor
from stagehold.model.records import Attempt, Event, PartitionRecord
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.settings import Settings

SAMPLE = "shipping_priority"
BRIEF = "brief"  # the same in fewer and larger partitions, but for the stage that is made to fail
PARTITIONS = {SAMPLE: 5 * 16 + 1, BRIEF: 4 * 4 + 16 + 1}
RUN_SECONDS = 240
POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Stack:
    """Commands and looks at a running stack. Each test uses an interval of its own, so tests do not meet. Errors with
    the text ``provoked`` are what a test wants. ``root`` is the pid of the process that started all of it, unless the
    supervisor of `stagehold up` did.
    """

    settings: Settings
    airflow: DrivenAirflow
    pipeline: str = BRIEF
    provoked: str = ""
    root: int | None = None

    @property
    def partitions(self) -> int:
        return PARTITIONS[self.pipeline]

    def start(self, interval: str, **conf: object) -> DagRun:
        return self.airflow.trigger(self.pipeline, conf={"interval": interval, **conf})

    def finish(self, run: DagRun, expected: str = "success") -> DagRun:
        ended = self.airflow.wait(run, RUN_SECONDS)
        assert ended.state == expected, self.failures(run)
        if ended.state == "success":
            complaints = self.complaints(run)
            assert not complaints, complaints
        return ended

    def complaints(self, run: DagRun) -> list[str]:
        """What the tries that succeeded logged as an error, or with a traceback; nobody should read it in vain."""
        here = f"/api/v2/dags/{run.dag_id}/dagRuns/{quote(run.run_id, safe='')}/taskInstances"
        return [
            f"{task['task_id']}: {line}"
            for task in self.airflow._send("GET", f"{here}?limit=1000")["task_instances"]
            if task["state"] == "success"
            for line in self._lines(f"{here}/{task['task_id']}/logs/{task['try_number']}?map_index={task['map_index']}")
            if line.get("level") in ("error", "critical") or line.get("error_detail") or "Traceback" in str(line)
            if not self.provoked or self.provoked not in str(line)
        ]

    def _lines(self, log: str) -> list[dict[str, object]]:
        content = self.airflow._send("GET", f"{log}&full_content=true")["content"]
        return [line if isinstance(line, dict) else {"event": line} for line in content]

    def run(self, interval: str, expected: str = "success", **conf: object) -> DagRun:
        return self.finish(self.start(interval, **conf), expected)

    def run_here(self, interval: str) -> None:
        """The same without Airflow: sooner done where only what it leaves matters."""
        ended = self.command("run", self.pipeline, "--interval", interval)
        assert ended.returncode == 0, ended.stderr

    def resume(self, run: DagRun, expected: str = "success") -> dict[str, object]:
        answer = self.airflow.resume(run.dag_id, run.run_id)
        self.finish(run, expected)
        return answer

    def inject(self, point: Point, stage: str, wave: int, action: FaultAction) -> Path:
        return inject(self.settings.home_path, point, stage, wave, action)

    def records(self, interval: str) -> Mapping[str, tuple[PartitionRecord, ...]]:
        with Ledger.open(self.settings.ledger_url) as ledger:
            return ledger.partitions.newest_of(self.pipeline, interval)

    def attempts(self, run: DagRun) -> tuple[Attempt, ...]:
        with Ledger.open(self.settings.ledger_url) as ledger:
            return ledger.attempts.of_run(f"{run.dag_id}/{run.run_id}")

    def attempts_of(self, run: DagRun, region: str) -> list[Attempt]:
        """Oldest first."""
        return sorted(
            (attempt for attempt in self.attempts(run) if attempt.region == region), key=lambda attempt: attempt.epoch
        )

    def events(self, run: DagRun) -> tuple[Event, ...]:
        with Ledger.open(self.settings.ledger_url) as ledger:
            return ledger.events.of_run(f"{run.dag_id}/{run.run_id}")

    def failures(self, run: DagRun) -> list[str]:
        return [
            f"{attempt.region} {attempt.epoch}: {attempt.failure}" for attempt in self.attempts(run) if attempt.failure
        ]

    def log(self, run: DagRun, task_id: str, number: int) -> str:
        return self.airflow.log_text(run, task_id, number)

    def assert_answer_is_right(self, interval: str) -> None:
        """As DuckDB computes it from the source files, row for row, so none is lost or there twice."""
        published = published_top_orders(self.settings, interval, self.pipeline)
        assert published == expected_top_orders(Path(self.settings.lake_uri))

    def service(self, name: str) -> ServiceState:
        supervisor = living_supervisor(self.settings)
        assert supervisor is not None
        return next(service for service in supervisor.services if service.name == name)

    def await_frozen_task(self) -> int:
        """The pid of the task process that a `freeze` fault has stopped."""
        until(self._frozen, "a task process is frozen")
        return self._frozen()[0]

    def _frozen(self) -> list[int]:
        root = self.root or self._supervisor()
        pids = (int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit())
        return [pid for pid in pids if _is_frozen_below(root, pid)]

    def _supervisor(self) -> int:
        supervisor = living_supervisor(self.settings)
        assert supervisor is not None
        return supervisor.pid

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | dict(self.settings.environment)
        return subprocess.run(
            [sys.executable, "-m", "stagehold", *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=2 * RUN_SECONDS,
        )


def until(condition: Callable[[], object], what: str, seconds: float = RUN_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(POLL_SECONDS)


def table_versions(uri: str) -> list[int]:
    return [entry["version"] for entry in DeltaTable(uri).history()]


def thaw(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)


def freeze(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def parent_of(pid: int) -> int:
    return int(_status(pid)[1])


def _status(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the name: state, parent, ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _is_frozen_below(root: int, pid: int) -> bool:
    """By its ancestors, since Airflow's processes overwrite their environment with a title."""
    try:
        return _status(pid)[0] == "T" and root in _ancestors(pid)
    except OSError:
        return False


def _ancestors(pid: int) -> list[int]:
    return [] if pid <= 1 else [pid, *_ancestors(parent_of(pid))]
