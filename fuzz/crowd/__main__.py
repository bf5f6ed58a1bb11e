"""`make crowd`: many runs of several pipelines at once, on an Airflow as it is deployed: two schedulers, and PostgreSQL
by pgbouncer. A scheduler is killed meanwhile, and with Celery a worker; another one is started, and nobody does more.

Each answer is compared with DuckDB's, and no partition may have been computed twice. It takes minutes, so it is no
test.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from fuzz.compose.inside import recorded_twice
from fuzz.crowd.amounts import PARTITIONS, STAGES, interval_of, lay_amounts, pipelines, published, right
from fuzz.crowd.connections import Connections, counted
from tests.e2e.deployed import CELERY, LOCAL, Deployed, Kind, Shape, deployed
from tests.e2e.driven_airflow import DrivenAirflow

from stagehold.errors import AirflowRefused, AirflowSilent
from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun, path_of_dag
from stagehold.model.records import AttemptState

PATIENCE_SECONDS = 150  # with an Airflow that has much to do
LOOK_SECONDS, TELL_SECONDS = 1, 20
# Who is killed when so much of all work is done, as soon as each of its kind is at work; at the latest so much later.
Victims = Sequence[tuple[Fraction, Kind]]
LATER = Fraction(1, 4)
VICTIMS: Mapping[str, Victims] = {
    LOCAL: ((Fraction(1, 4), Kind.SCHEDULER),),
    CELERY: ((Fraction(1, 4), Kind.SCHEDULER), (Fraction(1, 2), Kind.WORKER)),
}


@dataclass(frozen=True)
class Begun:
    """A run, and the interval that it is for."""

    run: DagRun
    interval: str


@dataclass
class Crowd:
    """What is under way on an Airflow, and what has come of it."""

    airflow: Deployed
    client: DrivenAirflow
    ledger: Ledger
    connections: Connections
    slots: int
    began: float = field(default_factory=time.monotonic)
    told: float = 0
    killed: int = 0

    def begin(self, names: Sequence[str], count: int) -> list[Begun]:
        """So many runs, of one pipeline after the other."""
        turns = [(names[number % len(names)], interval_of(number)) for number in range(count)]
        begun = [Begun(self.client.trigger(name, conf={"interval": interval}), interval) for name, interval in turns]
        self.tell(f"{count} runs of {len(names)} pipelines have begun")
        return begun

    def watch(self, begun: Sequence[Begun], victims: Victims, seconds: float) -> list[DagRun]:
        """The runs when all have ended, or the time is over; victims are killed on the way."""
        left, runs = list(victims), [one.run for one in begun]
        while not all(run.ended for run in runs) and time.monotonic() - self.began < seconds:
            time.sleep(LOOK_SECONDS)
            runs, states = self._now(runs), self._states(runs)
            if left and self._is_due(left[0][0], states, len(STAGES) * len(runs)):
                self._replace(left.pop(0)[1])
            if time.monotonic() - self.told > TELL_SECONDS:
                self.tell(f"{_of(runs)}; {_computed(states)}, {self.connections.open} connections")
        self.tell(_of(runs))
        return runs

    def _states(self, runs: Sequence[DagRun]) -> Counter[bool]:
        """How many attempts have finished, and how many are under way; each computes a stage of a run."""
        attempts = (one for run in runs for one in self.ledger.attempts.of_run(f"{run.dag_id}/{run.run_id}"))
        ended = (one.state is AttemptState.FINISHED for one in attempts if not one.failure)
        return Counter(ended)

    def _is_due(self, share: Fraction, states: Counter[bool], stages: int) -> bool:
        """More than one alone can have under way are under way, so both are at work."""
        done = Fraction(states[True], stages)
        return done >= share + LATER or (done >= share and states[False] > self.slots)

    def _now(self, runs: Sequence[DagRun]) -> list[DagRun]:
        """As they were, as long as nobody answers."""
        with suppress(AirflowSilent, AirflowRefused):
            states = {}
            for name in {run.dag_id for run in runs}:
                answer = self.client._send("GET", f"{path_of_dag(name)}/dagRuns?limit=100")
                states.update({(name, one["dag_run_id"]): one["state"] for one in answer["dag_runs"]})
            return [replace(run, state=states.get((run.dag_id, run.run_id), run.state)) for run in runs]
        return list(runs)

    def _replace(self, kind: Kind) -> None:
        self.airflow.kill(kind)
        self.airflow.start(kind)
        self.killed += 1
        self.tell(f"a {kind} was killed, with all that it had started, and another one was started")

    def tell(self, what: str) -> None:
        self.told = time.monotonic()
        print(f"{self.told - self.began:6.0f} s: {what}", flush=True)


def _computed(states: Counter[bool]) -> str:
    return f"{states[True]} stages are computed, {states[False]} under way"


def _of(runs: Sequence[DagRun]) -> str:
    return f"{sum(run.ended for run in runs)} of {len(runs)} runs have ended"


@dataclass
class Verdict:
    """Counts over all runs."""

    runs: int = 0
    wrong: int = 0
    tasks: int = 0
    tries: int = 0
    partitions: int = 0
    attempts: int = 0
    twice: int = 0

    def add(self, other: Verdict) -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def judge(self, crowd: Crowd, one: Begun, run: DagRun) -> None:
        """One run more; what is wrong with it is told."""
        ledger, lake = crowd.ledger, Path(crowd.airflow.settings.lake_uri)
        tries = [task.number for task in crowd.client.tasks(run.dag_id, run.run_id).values()]
        records = ledger.partitions.of_interval(run.dag_id, one.interval)
        attempts = ledger.attempts.of_run(f"{run.dag_id}/{run.run_id}")
        twice = recorded_twice(records)
        done = {(record.cell.stage, record.partition) for record in records if record.state.readable}
        whole = run.state == "success" and len(done) == PARTITIONS
        same = whole and published(lake, run.dag_id, one.interval) == right(lake, run.dag_id, one.interval)
        self.add(Verdict(1, not same or bool(twice), len(tries), sum(tries), len(done), len(attempts), len(twice)))
        if not same or twice:
            failures = [f"{attempt.named}: {attempt.failure}" for attempt in attempts if attempt.failure]
            print(f"WRONG {run}: {len(done)} partitions, computed twice: {twice}, {failures}", flush=True)

    def __str__(self) -> str:
        computed = f"{self.partitions} partitions by {self.attempts} attempts, {self.twice} computed twice"
        return f"{self.runs} runs, {self.wrong} wrong; {self.tasks} tasks in {self.tries} tries; {computed}"


def main() -> int:
    given, shape = _given()
    _interrupt_once()
    with TemporaryDirectory(prefix="crowd-", ignore_cleanup_errors=True) as made:
        folder = given.folder or Path(made)
        lay_amounts(folder / "home" / "lake")
        try:
            return _crowd(folder, shape, given)
        except KeyboardInterrupt:
            print("interrupted; everything has ended", flush=True)
            return 130


def _crowd(folder: Path, shape: Shape, given: argparse.Namespace) -> int:
    verdict, victims = Verdict(), VICTIMS[shape.executor]
    with deployed(folder, shape) as (airflow, client), counted(airflow.addresses.server) as connections:
        client._http.timeout = PATIENCE_SECONDS
        with Ledger.open(airflow.addresses.of("ledger", direct=True)) as ledger:
            crowd = Crowd(airflow, client, ledger, connections, shape.slots)
            begun = crowd.begin([*shape.pipelines], given.runs)
            runs = crowd.watch(begun, victims, 60 * given.minutes)
            seconds = time.monotonic() - crowd.began
            for one, run in zip(begun, runs, strict=True):
                verdict.judge(crowd, one, run)
        airflow.end()
    print(f"{shape.executor}: {verdict}; {seconds:.0f} s, {crowd.killed} killed; {connections}", flush=True)
    return 1 if verdict.wrong or connections.in_transaction or crowd.killed < len(victims) else 0


def _given() -> tuple[argparse.Namespace, Shape]:
    parser = argparse.ArgumentParser(prog="python -m fuzz.crowd", description=__doc__)
    parser.add_argument("--executor", choices=[LOCAL, CELERY], default=LOCAL)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--pipelines", type=int, default=8)
    parser.add_argument("--schedulers", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2, help="of Celery")
    parser.add_argument("--direct", action="store_true", help="to PostgreSQL without a pooler")
    parser.add_argument("--minutes", type=float, default=45, help="after these nobody waits any more")
    parser.add_argument("--folder", type=Path, help="where all of it is kept; by default nowhere")
    given = parser.parse_args()
    workers = given.workers if given.executor == CELERY else 0
    shape = Shape(pipelines(given.pipelines), given.executor, given.schedulers, workers, pooled=not given.direct)
    return given, shape


def _interrupt_once() -> None:
    """A second SIGINT, as `timeout` sends it, or SIGTERM finds us ending already."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)


if __name__ == "__main__":
    sys.exit(main())
