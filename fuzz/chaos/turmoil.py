"""One interval of a pipeline to which bad things happen, chosen by a random generator that a seed repeats."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random

from fuzz.chaos.subjects import Subject, Toy
from fuzz.chaos.victims import children, leave_the_ledger
from tests.run.lake_watch import LakeWatch
from tests.run.workbench import ended
from tests.run.zygote import Command

from stagehold.ledger.ledger import Ledger
from stagehold.run.faults import CheckpointPoint, ClearingPoint, FaultAction, Point, inject
from stagehold.settings import Settings
from stagehold.spark.server.server import running_server, start_server, stop_server
from stagehold.spark.server.server_record import ServerState
from stagehold.spec.settings.run_settings import ReleasePolicy

SECONDS = 300
TRIES = 4
DIES = 0.2  # how often a collector is killed
COPIED = 0.3  # how often somebody has made a copy of the ledger
OF_ATTEMPTS = (Point.AFTER_LEASE, Point.BEFORE_FINISH)
OF_FENCES = (Point.BEFORE_FENCE, Point.AFTER_FENCE)
OF_WAVES = (
    Point.BEFORE_WRITE,
    Point.AFTER_WRITE,
    Point.AFTER_MEASURE,
    Point.BEFORE_PUBLISH,
    Point.AFTER_PUBLISH,
    Point.AFTER_RECORD,
)
MOST_OF_A_RUN = 8.0  # seconds
KILLED = -signal.SIGKILL
CANCELLED = 130
ENDINGS = (signal.SIGKILL, signal.SIGTERM)
NEVER_SAID = ("taken by another program", "Traceback (most recent call last)")


@dataclass
class Turmoil:
    """``counts`` are the faults that hit; ``steps`` tell them in order. With ``parallel`` above 1 each attempt is a
    process of its own, and a fault hits that one. ``beside`` are the faults of a backend, and how likely each is.
    """

    subject: Subject
    watch: LakeWatch
    random: Random
    parallel: int = 1
    beside: Mapping[Callable[[Turmoil], None], int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    steps: list[str] = field(default_factory=list)
    zombies: list[Command] = field(default_factory=list)
    spoilt: bool = False
    held_up: bool = False  # by what somebody else did to the published table
    finished: bool = False

    def run(self, most: int = 4) -> None:
        """Do some things to the interval, then let it come to its end and compare with what DuckDB makes of the
        sources.

        :raises AssertionError: when something was lost, repeated, mixed or shown.
        """
        self._begin()
        for _ in range(self.random.randint(1, most)):
            possible = self._possible()
            if self.random.random() < COPIED:
                self.watch.copy_ledger()
            self.random.choices(list(possible), weights=list(possible.values()))[0]()
            self._disarm()
            self.watch.check()
        self.come_to_an_end()

    def run_killed_in(self, stage: str) -> None:
        """Kill the worker in the first wave of a stage, then let the interval come to its end likewise."""
        self._begin()
        point = self.random.choice(OF_WAVES)
        inject(self.subject.bench.settings.home_path, point, stage, 1, FaultAction.KILL)
        worker = self.start()
        code = self.wait(worker)
        assert code == KILLED, f"was not killed at {point} of {stage}, but ended with {code}:\n{worker.err()}"
        self.tell("kill", f"{point} of {stage}, wave 1", hit=True)
        self._disarm()
        self.watch.check()
        self.come_to_an_end()

    def _begin(self) -> None:
        self.subject.begin()
        self.subject.declare("fail")
        self.subject.settle(self.random.choice(list(ReleasePolicy)), self.random.choice(("50ms", "1s", None)))

    def _possible(self) -> dict[Callable[[], None], int]:
        """What can happen now, with how likely it is beside the others."""
        possible = {
            self.kill: 4,
            self.begin_two: 2,
            self.lose_ledger: 1,
            self.gain_uid: 2,
            self.collect: 2,
            self.collect_beside: 2,
        }
        if self.parallel == 1:
            possible |= {self.terminate: 2, self.freeze: 3, self.end_server: 2, self.end_keeper: 1}
            possible |= {self.kill_at_checkpoint: 2}
        else:
            possible |= {self.kill_all: 4}
        if isinstance(self.subject, Toy):
            possible[self.spoil] = 1
        if self.zombies:
            possible[self.thaw] = 3
        if self.watch.consumable:
            possible[self.lose] = 2
        if self._is_published:
            possible[self.lose_log] = 4
            possible |= {} if self.held_up or self.spoilt else {self.delete: 4}
        return possible | {partial(fault, self): weight for fault, weight in self.beside.items()}

    @property
    def _is_published(self) -> bool:
        return any(stage == self.subject.last for stage, _ in self.watch.consumable)

    def kill(self) -> None:
        """A worker dies at some point, if it gets there."""
        place = self._arm(FaultAction.KILL)
        worker = self.start()
        code = self.wait(worker)
        self.tell("kill", place, hit=code == KILLED or "was killed" in worker.err())
        if code == KILLED:
            self._resume_at_once()

    def kill_all(self) -> None:
        """A command dies with all its attempts, at any moment."""
        self.renew_input()
        worker = self.start()
        time.sleep(self.random.random() * MOST_OF_A_RUN)
        for pid in [*children(worker.pid), worker.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        code = self.wait(worker)
        self.tell("kill all", f"ended with {code}", hit=code == KILLED)
        if code == KILLED:
            self._resume_at_once()

    def terminate(self) -> None:
        """A worker is told to end at some point, and does so by itself."""
        place = self._arm(FaultAction.FREEZE)
        worker = self.start()
        if frozen := worker.stops(SECONDS):
            worker.send_signal(signal.SIGTERM)
            worker.send_signal(signal.SIGCONT)
        code = self.wait(worker)
        assert not frozen or code in (0, CANCELLED), f"told to end, it ended with {code}:\n{worker.err()}"
        self.tell("terminate", f"{place}, ended with {code}", hit=frozen)
        if frozen:
            self._resume_at_once()

    def _resume_at_once(self) -> None:
        """Somebody resumes the run before what was killed is gone, or two do; one of two may overtake the other."""
        words = ("resume", f"r/{self.watch.interval}", "--json")
        workers = [self.subject.bench.command(*words) for _ in range(self.random.choice((1, 1, 2)))]
        codes = [self.wait(worker) for worker in workers]
        for worker in workers:
            assert not any(text in worker.err() for text in NEVER_SAID), worker.err()
        self.tell("resume", f"at once, ended with {codes}", hit=True)

    def kill_at_checkpoint(self) -> None:
        """A worker dies while it takes a checkpoint, or when it has released outputs."""
        self.renew_input()
        point = self.random.choice([*CheckpointPoint, ClearingPoint.RELEASED])
        number = self._next_checkpoint() if isinstance(point, CheckpointPoint) else 0
        inject(self.subject.bench.settings.home_path, point, self.subject.name, number, FaultAction.KILL)
        code = self.wait(self.start())
        self.tell("checkpoint", f"{point} {number}", hit=code == KILLED)
        if code == KILLED:
            self._resume_at_once()

    def _next_checkpoint(self) -> int:
        with Ledger.open(self.subject.bench.settings.ledger_url) as ledger:
            taken = ledger.checkpoints.of_run(f"r/{self.watch.interval}")
        return max((one.number for one in taken), default=0) + 1

    def collect(self) -> None:
        """All goes that may go, while nobody but zombies is there."""
        self.tell("gc", f"ended with {(code := self._collect())}", hit=code == 0)

    def collect_beside(self) -> None:
        """The same beside a worker, again and again; or the collector dies."""
        self.renew_input()
        worker, codes = self.start(), list[int]()
        while worker.poll() is None:
            codes.append(self._collect())
        self.wait(worker)
        self.tell("gc", f"beside a worker, ended with {codes}", hit=0 in codes)

    def _collect(self) -> int:
        collector = self.subject.bench.command("gc", "--older-than", "0s", "--json")
        if self.random.random() < DIES:
            time.sleep(self.random.random())
            with suppress(ProcessLookupError):  # it has ended
                collector.send_signal(signal.SIGKILL)
        code = collector.wait(SECONDS)
        assert code in (0, KILLED), collector.err()
        return code

    def freeze(self) -> None:
        """A worker stops; whoever comes next overtakes it."""
        place = self._arm(FaultAction.FREEZE)
        worker = self.start()
        frozen = worker.stops(SECONDS)
        if frozen:
            leave_the_ledger(worker, self.subject.bench.settings)
            self.zombies.append(worker)
        self.tell("freeze", place, hit=frozen)

    def thaw(self) -> None:
        """A zombie wakes up, perhaps long after it was overtaken."""
        zombie = self.zombies.pop(self.random.randrange(len(self.zombies)))
        zombie.send_signal(signal.SIGCONT)
        self.tell("thaw", f"ended with {self.wait(zombie)}", hit=True)

    def end_server(self) -> None:
        """Spark's server is killed, or told to end, beneath a worker, and started anew, as a supervisor does."""

        def end(number: signal.Signals) -> None:
            os.kill(self._server.pid, number)
            stop_server(self.subject.bench.settings)
            start_server(self.subject.bench.settings)

        self._end_beneath_a_worker("server", end)

    def end_keeper(self) -> None:
        """The process that holds the server ends, and the server with it; the worker has to find another one itself."""
        self._end_beneath_a_worker("keeper", lambda number: os.kill(self._server.keeper_pid, number))

    def _end_beneath_a_worker(self, kind: str, end: Callable[[signal.Signals], None]) -> None:
        place, number = self._arm(FaultAction.FREEZE), self.random.choice(ENDINGS)
        worker = self.start()
        if frozen := worker.stops(SECONDS):
            end(number)
            worker.send_signal(signal.SIGCONT)
        code = self.wait(worker)
        self.tell(kind, f"{number.name} {place}, the worker ended with {code}", hit=frozen)

    @property
    def _server(self) -> ServerState:
        server = running_server(self.subject.bench.settings)
        assert server is not None
        return server

    def begin_two(self) -> None:
        """Two attempts at once, of one run, which take the region from each other, or of two,
        of which one waits for the other.
        """
        self.renew_input()
        runs = self.random.choice((("r", "r"), ("r", "other")))
        workers = [self.start(run) for run in runs]
        self.tell("two", f"{' and '.join(runs)} ended with {[self.wait(worker) for worker in workers]}", hit=True)

    def gain_uid(self) -> None:
        """A stage gets a uid, with what it was called; whatever was whole is not computed again for that. The first run
        here may have something left to do, and code that is never reused is never whole.
        """
        stage, uid = self.random.choice(list(self.subject.regions)), f"u{self.random.randrange(1_000_000)}"
        whole = self.finished and any(self._computes_nothing()[0] for _ in range(2))
        self.subject.give_uid(stage, uid)
        if whole:
            reused, said = self._computes_nothing()
            assert reused, f"computed again for a uid:\n{said}"
        self.tell("uid", f"{uid} for {stage}, {'whole' if whole else 'not whole'}", hit=True)

    def _computes_nothing(self) -> tuple[bool, str]:
        """Whether a run ends well and records nothing, and what it says."""
        before, worker = self._recorded(), self.start()
        return self.wait(worker) == 0 and self._recorded() == before, worker.err()

    def _recorded(self) -> dict[str, int]:
        """How many partitions were ever recorded, by stage."""
        return {stage: len(self.watch.records(stage)) for stage in self.subject.regions}

    def lose(self) -> None:
        """Recorded data disappears."""
        stage, partition = self.random.choice(sorted(self.watch.consumable))
        self.watch.lose(stage, partition)
        self.tell("lose", f"{stage}[{partition}]", hit=True)

    def lose_ledger(self) -> None:
        """The ledger's database is gone, or an old copy of it is put back, and it is rebuilt from the lake.

        Nobody runs meanwhile, though a zombie may still have the old one open.
        """
        put_back = self.watch.lose_ledger()
        rebuilt = ended(self.subject.bench.command("reconcile"))
        assert not rebuilt.err, rebuilt.err
        self.tell("ledger", f"{'put back old' if put_back else 'lost'}, rebuilt with {rebuilt.code}", hit=True)

    def lose_log(self) -> None:
        """The newest file of the published table's log disappears, whoever wrote it."""
        lost = self.watch.lose_log(self.subject.last)
        self.tell("log", lost or "is one file", hit=lost is not None)

    def delete(self) -> None:
        """Somebody else deletes rows that were published.
        The next run says so and leaves that as it is, until it is told to heal.
        """
        partitions = [partition for stage, partition in self.watch.consumable if stage == self.subject.last]
        before = self.subject.rows(self.watch.interval).num_rows
        version = self.watch.change_as_somebody_else(
            self.subject.last, f"_partition = {self.random.choice(sorted(partitions))}"
        )
        left = self.subject.rows(self.watch.interval).num_rows
        self.tell("delete", f"{before - left} rows by commit {version}", hit=left < before)
        if left == before:
            return
        self.held_up = True
        worker = self.start()
        code = self.wait(worker)
        assert code == 1, f"what somebody deleted held nothing up: the run ended with {code}"
        assert f"removed by commit {version} (DELETE)" in worker.err(), worker.err()
        assert self.subject.rows(self.watch.interval).num_rows == left, (
            "what somebody deleted is back, though nobody asked"
        )
        self.subject.declare("heal")

    def spoil(self) -> None:
        """A source gets a row that makes a gate refuse a partition."""
        assert isinstance(self.subject, Toy)
        self.subject.spoil()
        self.spoilt, self.finished = True, False
        self.watch.forget()
        code = self.wait(self.start())
        assert code == 1, f"the gate let it pass: the run ended with {code}"
        self.tell("gate", "refused", hit=True)

    def come_to_an_end(self) -> None:
        while self.zombies:
            self.thaw()
        if isinstance(self.subject, Toy) and self.spoilt:
            self.subject.mend()
            self.watch.forget()
        codes, said = [], ""
        while not codes or codes[-1] != 0:
            assert len(codes) < TRIES, f"comes to no end: {codes}; the last one said:\n{said}"
            worker = self.start()
            codes.append(self.wait(worker))
            said = worker.err()
        self.watch.check()
        wrong = self.subject.compare(self.watch.interval)
        assert not wrong, f"what is published is wrong:\n{wrong}"

    def _arm(self, action: FaultAction) -> str:
        self.renew_input()
        stage, point = self.random.choice(list(self.subject.regions)), self.random.choice(list(Point))
        name = self.subject.regions[stage] if point in OF_ATTEMPTS else stage
        wave = 0 if point in OF_ATTEMPTS + OF_FENCES else self.random.choice((1, 1, 2))
        inject(self.subject.bench.settings.home_path, point, name, wave, action)
        return f"{point} of {name}, wave {wave}"

    def renew_input(self) -> None:
        """When all is done, new input makes that there is something to do which can go wrong."""
        if self.finished:
            self.subject.renew(self.random)
            self.watch.forget()
            self.finished = False

    def _disarm(self) -> None:
        shutil.rmtree(self.subject.bench.settings.home_path / "faults", ignore_errors=True)

    def start(self, run: str = "r", settings: Settings | None = None) -> Command:
        words = (
            "run",
            self.subject.name,
            "--interval",
            self.watch.interval,
            "--run-id",
            f"{run}/{self.watch.interval}",
            "--json",
            *(("--parallel", str(self.parallel)) if self.parallel > 1 else ()),
        )
        return self.subject.bench.command(*words, settings=settings)

    def wait(self, worker: Command) -> int:
        code = worker.wait(SECONDS)
        self.finished = self.finished or code == 0
        return code

    def tell(self, kind: str, text: str, *, hit: bool) -> None:
        self.counts[kind if hit else "missed"] += 1
        self.steps.append(f"{kind} {text}" if hit else f"({kind} {text}: not reached)")
