"""One pipeline on a real SQLite ledger and a real folder lake, and the attempts that work on it,
which go as a test tells them.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from sqlalchemy import Connection
from tests.lake.table_log import TableLog
from tests.ledger.blank import lay_blank_ledger
from tests.run.protocol.judge import Judge
from tests.run.protocol.paper_spark import Amounts, PaperCommitter, PaperEngine, Pauses
from tests.run.protocol.stepper import Stepper, in_turn, indivisible, pause

from stagehold.lake.store.location import table_location
from stagehold.ledger.database.engine import Database
from stagehold.ledger.leases import Leases
from stagehold.ledger.ledger import Ledger
from stagehold.ledger.partitions import Partitions
from stagehold.model.partition_set import Share
from stagehold.model.records import AttemptState, Cell, Lease, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.model.states import Transition
from stagehold.plan.resume.waiving import WaiverWish, refused_data, wished
from stagehold.plan.split.regions import stage_regions
from stagehold.plan.split.shares import region_shares
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.here.region import work_on
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

PIPELINE, INTERVAL, RUN = "paper", "2026-11-20", "r"
STAGES = ("drafts", "prints")  # each a region of its own
PARTITIONS = 4
CUTS = (1, 2, 3)  # into the shares 0-3; 0-1 and 2-3; 0-0, 1-1 and 2-3
LEASE_SECONDS = 3600  # a lease ends when the test says so
JOBS = "from stagehold import stage\n\n@stage\ndef drafts(ctx, source): ...\n\n@stage\ndef prints(ctx, drafts): ...\n"
SUITE = """suite: sound
expectations:
  - {{type: expect_column_values_to_be_between, column: amount, min_value: 0, max_value: {most}}}
"""
MOST = 999


class World:
    """Whatever happens in it, `check` must hold after every step of every attempt."""

    def __init__(self, folder: Path, engine: PaperEngine | None = None) -> None:
        self.settings = _settings(folder)
        self.pipelines = {tasks: _pipeline(tasks, self.settings) for tasks in CUTS}
        self.attempts: list[Stepper] = []
        self.leases: dict[str, Lease] = {}
        self.sources: dict[int, Amounts] = {}
        self.lost: set[str] = set()
        self.copy: Path | None = None
        self.engine = engine or PaperEngine()
        self.staged = self.engine.session.staged
        self.judge = Judge(
            {stage: TableLog(self.table(stage), INTERVAL) for stage in STAGES}, PARTITIONS, self.engine.session
        )
        self.ledger = self._open_ledger()
        for partition in range(PARTITIONS):
            self.write_source(partition, (partition + 1, partition + 11))

    @property
    def workplace(self) -> Workplace:
        """Where attempts work; the ledger is shared, since a new one compiles all its SQL anew."""
        return Workplace(
            ledger=self.ledger,
            settings=self.settings,
            progress=lambda line: None,
            engine=self.engine,
            faults=Pauses(self.settings.home_path, INTERVAL),
            committer=PaperCommitter(),
            sleep=lambda seconds: pause("waiting"),
            beside=in_turn,
        )

    def table(self, stage: str) -> str:
        return table_location(self.settings.lake_uri, PIPELINE, self.pipelines[1].stage(stage), INTERVAL).uri

    def write_source(self, partition: int, amounts: Amounts) -> None:
        """The same amounts make the same file, to the nanosecond, as a copy that keeps the time does."""
        path = Path(self.settings.lake_uri, "raw", f"{partition}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"amount": pa.array(amounts, pa.int64())}), path)
        moment = 10**18 + 10**6 * zlib.crc32(repr(amounts).encode())
        os.utime(path, ns=(moment, moment))
        self.sources[partition] = amounts

    def write_suite(self, most: int) -> None:
        Path(self.settings.suites, "sound.yaml").write_text(SUITE.format(most=most))

    def waive(self, *, ends: bool, stages: Sequence[str] = STAGES) -> None:
        """Somebody lets through all that gates of these stages refuse now, or takes that back."""
        now = datetime.now(UTC)
        for stage in stages:
            cell = Cell(PIPELINE, self.pipelines[1].stage(stage).id, INTERVAL)
            records = self.ledger.partitions.newest(cell)
            if any(record.refused for record in records):
                wish = WaiverWish(None, None, "ann", "known", now if ends else None)
                words = wished(wish, stage, refused_data(records, None), now)
                self.ledger.waivers.record(words)
                self.engine.session.waived.update((one.partition, one.fingerprint) for one in words)

    def begin(self, stage: str, cut: int = 1, part: int = 0, *, asks: bool = False) -> Stepper:
        """Begin an attempt of one of the shares that the stage is cut into; it stands before its first step.

        :param asks: whether it takes splits of all shares first.
        """
        pipeline = self.pipelines[cut]
        (own,) = (region for region in stage_regions(pipeline) if region.name == stage)
        shares = region_shares(pipeline, own)
        share = shares[part % len(shares)]
        owner = f"cli/{RUN}/{share}"
        task = RegionTask(RunRequest(pipeline, RUN, INTERVAL, {}), own, owner, "cli", share=share, asks=asks)
        self.attempts.append(Stepper(lambda: work_on(task, self.workplace)))
        return self.attempts[-1]

    def end_leases(self) -> None:
        """As when no heart has beaten for long, though all who have them may still be alive."""
        for lease in self.leases.values():
            self.ledger.leases.release(lease)

    def lose(self, stage: str, partition: int) -> None:
        """Delete what is recorded of a partition."""
        for record in self.consumable(stage):
            if record.partition == partition:
                for file in record.files:
                    Path(record.table, file.path).unlink(missing_ok=True)
                    self.lost.add(f"{record.table}/{file.path}")

    def copy_ledger(self) -> None:
        """Keep the ledger as it is now, for `lose_ledger`."""
        self.ledger.close()
        self.copy = shutil.copy(self._ledger_file, self.settings.home_path / "copy.db")
        self.ledger = self._open_ledger()

    def lose_ledger(self) -> None:
        """It is deleted when nobody is at work, and the copy put in its place if there is one."""
        for attempt in self.attempts:
            attempt.kill()
        self.check()
        self.ledger.close()
        for file in self._ledger_file.parent.glob(f"{self._ledger_file.name}*"):
            file.unlink()
        if self.copy is not None:
            shutil.copy(self.copy, self._ledger_file)
        self.ledger, self.leases = self._open_ledger(), {}
        for stage in STAGES:
            cell = Cell(PIPELINE, self.pipelines[1].stage(stage).id, INTERVAL)
            self.judge.forget(stage, self.ledger.partitions.history(cell))
        self.judge.forget("coordinator", ())

    @property
    def _ledger_file(self) -> Path:
        return self.settings.home_path / "ledger.db"

    def consumable(self, stage: str) -> list[PartitionRecord]:
        newest = self.ledger.partitions.newest_of(PIPELINE, INTERVAL).get(self.pipelines[1].stage(stage).id, ())
        return [record for record in newest if record.state is PartitionState.CONSUMABLE]

    def check(self) -> None:
        for attempt in self.attempts:
            # what the judge said in the attempt's own thread
            assert not isinstance(attempt.error, AssertionError), attempt.error
        finished = {
            (attempt.region, attempt.epoch)
            for attempt in self.ledger.attempts.of_run(RUN)
            if attempt.state is AttemptState.FINISHED
        }
        for stage in STAGES:
            present = [
                record
                for record in self.consumable(stage)
                if not self.lost & {f"{record.table}/{file.path}" for file in record.files}
            ]
            self.judge.check(stage, present, {epoch for region, epoch in finished if region == stage})

    def bring_to_an_end(self) -> None:
        """Kill everybody, mend everything, run all there is: then what is published is right."""
        for attempt in self.attempts:
            attempt.kill()
        self.end_leases()
        for partition in range(PARTITIONS):
            self.write_source(partition, (100 + partition,))
        self.write_suite(MOST)
        for stage in STAGES:
            attempt = self.begin(stage)
            attempt.go_to("its end", most=1000)
            assert attempt.ended, f"still at {attempt.at}"
            assert attempt.error is None, attempt.error
            self.check()
        self._check_history()
        rows = DeltaTable(self.table("prints")).to_pyarrow_table().to_pylist()
        assert sorted((row["_partition"], row["amount"]) for row in rows) == [
            (n, 2 * (100 + n)) for n in range(PARTITIONS)
        ]
        self.ledger.close()

    def _check_history(self) -> None:
        """Wherever somebody died: each state came out of the one before it, and the last one is the recorded one."""
        recorded = {attempt.attempt_id: attempt.state for attempt in self.ledger.attempts.of_run(RUN)}
        told: dict[str | None, list[Transition]] = {None: []}
        for transition in self.ledger.transitions.of_run(RUN):
            told.setdefault(transition.attempt_id, []).append(transition)
        assert told.keys() - {None} == recorded.keys()
        for attempt_id, history in told.items():
            assert history[0].before is None
            for before, after in pairwise(history):
                assert after.before == before.after or after.begins_life_of_run
            assert history[-1].after == recorded.get(attempt_id, self.ledger.runs.get(RUN).state)

    def _open_ledger(self) -> Ledger:
        database = SteppedDatabase(self.settings.ledger_url)
        ledger = Ledger(database)
        ledger.leases, ledger.partitions = JudgedLeases(database, self), JudgedPartitions(database, self.judge)
        return ledger


class SteppedDatabase(Database):
    """Whatever changes it is one step. It is kept open, as in the process of an attempt."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        lay_blank_ledger(Path(str(self.url.database)))
        self._open = ExitStack()
        self._open.enter_context(self.kept_open())

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with indivisible("a row"), super().writing() as connection:
            yield connection


class JudgedLeases(Leases):
    """The judge hears of each lease that is taken before anybody else acts."""

    def __init__(self, database: Database, world: World) -> None:
        super().__init__(database)
        self._world = world

    def take(self, region: str, share: Share | None, *arguments: Any, **options: Any) -> Lease:
        with indivisible("its lease"):
            lease = super().take(region, share, *arguments, **options)
            self._world.leases[lease.name] = lease
            self._world.judge.took(region.rpartition("/")[2], share, lease.epoch)
        return lease


class JudgedPartitions(Partitions):
    """The judge hears of each record before anybody else acts."""

    def __init__(self, database: Database, judge: Judge) -> None:
        super().__init__(database)
        self._judge = judge

    def record(self, records: Sequence[PartitionRecord], lease: Lease) -> None:
        with indivisible("its records"):
            super().record(records, lease)
            self._judge.recorded(lease.name.split("/")[2], records, lease.epoch)


def _settings(folder: Path) -> Settings:
    project = folder / "project"
    (project / "suites").mkdir(parents=True)
    (project / "paper_jobs.py").write_text(JOBS)
    (project / "suites" / "sound.yaml").write_text(SUITE.format(most=MOST))
    return Settings(
        home=str(folder / "home"),
        project=str(project),
        pipelines=str(project),
        suites=str(project / "suites"),
        spark_cores=1,  # a wave is two partitions
        lease_seconds=LEASE_SECONDS,
        sweep_after_seconds=0,
    )


def _pipeline(tasks: int, settings: Settings) -> Pipeline:
    splits = [f"${{lake}}/raw/{partition}.parquet" for partition in range(PARTITIONS)]
    shared = {"gate": "sound", "max_parallel_tasks": tasks}
    declaration = {
        "pipeline": PIPELINE,
        "wave": "1ms",
        "verify": "never",  # fingerprints are Spark's
        "stages": {
            "drafts": {"job": "paper_jobs:drafts", "source": {"kind": "parquet", "splits": splits}, **shared},
            "prints": {
                "job": "paper_jobs:prints",
                "inputs": {"drafts": "forward"},
                "output": {"type": "blocking_persistent", "table": "marts.prints"},
                **shared,
            },
        },
    }
    return build_pipeline(declaration, project=Path(settings.project), suites=Path(settings.suites))
