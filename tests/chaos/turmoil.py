"""One interval of the toy pipeline to which bad things happen, chosen by a random generator that a seed repeats."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from tests.run.lake_watch import LakeWatch
from tests.run.workbench import FILES, ROWS, Workbench
from tests.run.zygote import Command

from stagehold.run.faults import FaultAction, Point, inject
from stagehold.run.server import running_server, start_server, stop_server

SECONDS = 300
TRIES = 4
REGIONS = {"numbers": "numbers", "by_wave": "doubled__by_wave", "by_colour": "by_colour", "summary": "summary"}
OF_ATTEMPTS = (Point.AFTER_LEASE, Point.BEFORE_FINISH)
OF_FENCES = (Point.BEFORE_FENCE, Point.AFTER_FENCE)
KILLED = -signal.SIGKILL
SPOILT = -7_000_000  # divisible by 7, and so much that no other numbers of its colour make up for it


@dataclass
class Turmoil:
    """``counts`` are the faults that hit; ``steps`` tell them in order."""

    bench: Workbench
    watch: LakeWatch
    random: Random
    counts: Counter[str] = field(default_factory=Counter)
    steps: list[str] = field(default_factory=list)
    zombies: list[Command] = field(default_factory=list)
    spoilt: bool = False
    finished: bool = False

    def run(self, most: int = 4) -> None:
        """Do some things to the interval, then let it come to its end and compare with what DuckDB makes of the sources.

        :raises AssertionError: when something was lost, repeated, mixed or shown.
        """
        for number in range(FILES):
            self.bench.write_source(number)  # the run before may have left others
        for _ in range(self.random.randint(1, most)):
            possible = self._possible()
            self.random.choices(list(possible), weights=list(possible.values()))[0]()
            self._disarm()
            self.watch.check()
        self.come_to_an_end()

    def _possible(self) -> dict[Callable[[], None], int]:
        """What can happen now, with how likely it is beside the others."""
        always = {self.kill: 4, self.freeze: 3, self.begin_two: 2, self.kill_server: 1, self.spoil: 1}
        return always | ({self.thaw: 3} if self.zombies else {}) | ({self.lose: 2} if self.watch.consumable else {})

    def kill(self) -> None:
        """A worker dies at some point, if it gets there."""
        place = self._arm(FaultAction.KILL)
        code = self._wait(self._start())
        self._tell("kill", place, hit=code == KILLED)

    def freeze(self) -> None:
        """A worker stops; whoever comes next overtakes it."""
        place = self._arm(FaultAction.FREEZE)
        worker = self._start()
        frozen = worker.stops(SECONDS)
        if frozen:
            self.zombies.append(worker)
        self._tell("freeze", place, hit=frozen)

    def thaw(self) -> None:
        """A zombie wakes up, perhaps long after it was overtaken."""
        zombie = self.zombies.pop(self.random.randrange(len(self.zombies)))
        zombie.send_signal(signal.SIGCONT)
        self._tell("thaw", f"ended with {self._wait(zombie)}", hit=True)

    def kill_server(self) -> None:
        """Spark's server is killed beneath a worker and started anew, as a supervisor does."""
        place = self._arm(FaultAction.FREEZE)
        worker = self._start()
        if frozen := worker.stops(SECONDS):
            server = running_server(self.bench.settings)
            assert server is not None
            os.kill(server.pid, signal.SIGKILL)
            stop_server(self.bench.settings)
            start_server(self.bench.settings)
            worker.send_signal(signal.SIGCONT)
        code = self._wait(worker)
        self._tell("server", f"{place}, the worker ended with {code}", hit=frozen)

    def begin_two(self) -> None:
        """Two attempts at once, of one run, which take the region from each other, or of two, of which one has to stand back."""
        self._renew_input()
        runs = self.random.choice((("r", "r"), ("r", "other")))
        workers = [self._start(run) for run in runs]
        self._tell("two", f"{' and '.join(runs)} ended with {[self._wait(worker) for worker in workers]}", hit=True)

    def lose(self) -> None:
        """Recorded data disappears."""
        stage, partition = self.random.choice(sorted(self.watch.consumable))
        self.watch.lose(stage, partition)
        self._tell("lose", f"{stage}[{partition}]", hit=True)

    def spoil(self) -> None:
        """A source gets a row that makes a gate refuse a partition."""
        path = Path(self.bench.settings.lake_uri, "raw", "numbers", f"part-{FILES - 1}.parquet")
        pq.write_table(pa.table({"number": pa.array([SPOILT] * ROWS, pa.int64())}), path)
        self.spoilt, self.finished = True, False
        self.watch.forget()
        code = self._wait(self._start())
        assert code == 1, f"the gate let it pass: the run ended with {code}"
        self._tell("gate", "refused", hit=True)

    def come_to_an_end(self) -> None:
        while self.zombies:
            self.thaw()
        if self.spoilt:
            self.bench.write_source(FILES - 1)
            self.watch.forget()
        codes = []
        while not codes or codes[-1] != 0:
            assert len(codes) < TRIES, f"comes to no end: {codes}"
            codes.append(self._wait(self._start()))
        self.watch.check()
        assert self.published() == self.expected(), f"published {self.published()}, right is {self.expected()}"

    def published(self) -> list[tuple[int, int, int]]:
        table = DeltaTable(str(Path(self.bench.settings.lake_uri, "marts", "summary"))).to_pyarrow_table()
        rows = [row for row in table.to_pylist() if row["_interval"] == self.watch.interval]
        return sorted((row["colour"], row["total"], row["numbers"]) for row in rows)

    def expected(self) -> list[tuple[int, int, int]]:
        """By another engine."""
        source = Path(self.bench.settings.lake_uri, "raw", "numbers", "*.parquet")
        return duckdb.sql(f"select number % 7, cast(sum(2 * number) as bigint), count(*) from '{source}' group by 1 order by 1").fetchall()

    def _arm(self, action: FaultAction) -> str:
        self._renew_input()
        stage, point = self.random.choice(list(REGIONS)), self.random.choice(list(Point))
        name = REGIONS[stage] if point in OF_ATTEMPTS else stage
        wave = 0 if point in OF_ATTEMPTS + OF_FENCES else self.random.choice((1, 1, 2))
        inject(self.bench.settings.home_path, point, name, wave, action)
        return f"{point} of {name}, wave {wave}"

    def _renew_input(self) -> None:
        """When all is done, new input makes that there is something to do which can go wrong."""
        if self.finished:
            first = 100 * self.random.randrange(1, 1000)
            for number in range(FILES - 1):
                self.bench.write_source(number, first + number * ROWS)
            self.watch.forget()
            self.finished = False

    def _disarm(self) -> None:
        shutil.rmtree(self.bench.settings.home_path / "faults", ignore_errors=True)

    def _start(self, run: str = "r") -> Command:
        words = ("run", "toy", "--interval", self.watch.interval, "--run-id", f"{run}/{self.watch.interval}", "--json")
        return self.bench.command(*words)

    def _wait(self, worker: Command) -> int:
        code = worker.wait(SECONDS)
        self.finished = self.finished or code == 0
        return code

    def _tell(self, kind: str, text: str, *, hit: bool) -> None:
        self.counts[kind if hit else "missed"] += 1
        self.steps.append(f"{kind} {text}" if hit else f"({kind} {text}: not reached)")
