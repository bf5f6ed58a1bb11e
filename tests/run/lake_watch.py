"""Compares the ledger with the lake after each thing that happens to a run:
nothing lost, repeated, mixed or shown ungated.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import pyarrow.parquet as pq
from deltalake import DeltaTable
from tests.lake.table_log import Entry, TableLog
from tests.postgres import copy_ledger, lose_ledger, put_back

from stagehold.lake.commit.delta_log import storage_options
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import table_location
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline, Stage

DUMP = "ledger.sql"
Place = tuple[str, int]  # stage and partition
Moment = tuple[int, int]  # epoch and wave


@dataclass
class LakeWatch:
    """One interval of a pipeline. ``lost`` are files that a test has deleted, ``consumable`` what was when it last
    looked.

    ``unlogged`` are commits whose log files a test has deleted, ``foreign`` files that somebody else put into a table;
    ``ledger_lost`` says that the ledger does not know all that was recorded once.
    """

    pipeline: Pipeline
    interval: str
    settings: Settings
    lost: set[str] = field(default_factory=set)
    consumable: set[Place] = field(default_factory=set)
    unlogged: dict[Place, Moment] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    ledger_lost: bool = False

    def check(self) -> None:
        """Assert that all is well at this moment; no attempt may be running."""
        consumable = {place for stage in self._stages for place in self._check_stage(stage)}
        assert not self.consumable - consumable - self._lost_places(consumable), (
            f"not consumable any more: {self.consumable - consumable}"
        )
        self.consumable = consumable

    def forget(self) -> None:
        """Inputs or code have changed: what was consumable may have to be computed again."""
        self.consumable = set()

    def lose(self, stage: str, partition: int) -> None:
        """Delete the files of a partition that is live in its table's newest version."""
        log = self.log(stage)
        paths = [unquote(path) for path in log.files_of(partition)]
        files_at(log.uri).remove(paths)  # of what was released they may be gone
        self.lost.update(f"{log.uri}/{path}" for path in paths)

    def lose_log(self, stage: str) -> str | None:
        """Delete the newest file of a table's log, unless it is the only one; its name."""
        log = self.log(stage)
        if len(log.entries) < 2:
            return None
        entry = log.entries[-1]
        name = f"{entry.version:020d}.json"
        files_at(log.uri).remove([f"_delta_log/{name}"])
        if entry.wave is not None:
            self.unlogged |= {(stage, partition): entry.moment for partition in entry.partitions}
        self.forget()
        return name

    def copy_ledger(self) -> None:
        """Keep the ledger as it is now, in place of an older copy."""
        shutil.rmtree(self._copy, ignore_errors=True)
        self._copy.mkdir()
        if self._on_server:
            copy_ledger(self.settings.ledger_url, self._copy / DUMP)
        for file in self.settings.home_path.glob("ledger.db*"):
            shutil.copy(file, self._copy)

    def lose_ledger(self) -> bool:
        """Whether an old copy of it was put back."""
        if self._on_server:
            lose_ledger(self.settings.ledger_url)
        for file in self.settings.home_path.glob("ledger.db*"):
            file.unlink()
        self.ledger_lost = True
        if copied := self._copy.is_dir():
            if self._on_server:
                put_back(self.settings.ledger_url, self._copy / DUMP)
            shutil.copytree(self._copy, self.settings.home_path, dirs_exist_ok=True)
            shutil.rmtree(self._copy)
        return copied

    @property
    def _on_server(self) -> bool:
        return self.settings.ledger_url.startswith("postgresql")

    @property
    def _copy(self) -> Path:
        return self.settings.home_path / "copy of the ledger"

    def change_as_somebody_else(self, stage: str, predicate: str) -> int:
        """Delete rows of the interval from a published table; the version that did it."""
        before = self.log(stage)
        DeltaTable(before.uri, storage_options=storage_options(before.uri)).delete(
            f"_interval = '{self.interval}' AND {predicate}"
        )
        after = self.log(stage)
        self.foreign |= after.live.keys() - before.live.keys()
        self.forget()
        return after.entries[-1].version if len(after.entries) > len(before.entries) else -1

    def log(self, stage: str) -> TableLog:
        log = TableLog(self._uri(self.pipeline.stage(stage)), self.interval)
        log.follow()
        return log

    def commits(self) -> Counter[Place]:
        """How often each partition is in the logs."""
        entries = ((stage, entry) for stage in self._stages for entry in waves(self.log(stage).entries))
        return Counter((stage, partition) for stage, entry in entries for partition in entry.partitions)

    def records(self, stage: str) -> tuple[PartitionRecord, ...]:
        """All that were ever made, oldest first."""
        with Ledger.open(self.settings.ledger_url) as ledger:
            return tuple(
                ledger.partitions.history(Cell(self.pipeline.name, self.pipeline.stage(stage).id, self.interval))
            )

    def unfinished_waves(self, attempt_id: str) -> set[str]:
        """Wave folders of an attempt that nothing was committed from."""
        tables = {name: files_at(self._uri(self.pipeline.stage(name))) for name in self._stages}
        staged = {f"{name}/{wave}" for name, files in tables.items() for wave in files.folders(f"_data/{attempt_id}")}
        committed = {
            f"{name}/{entry.author[1]}"
            for name in self._stages
            for entry in waves(self.log(name).entries)
            if entry.author[0] == attempt_id
        }
        return staged - committed

    @property
    def _stages(self) -> Sequence[str]:
        return [stage.name for stage in self.pipeline.stages if stage.output.type.stored]

    def _uri(self, stage: Stage) -> str:
        return table_location(self.settings.lake_uri, self.pipeline.name, stage, self.interval).uri

    def _check_stage(self, stage: str) -> set[Place]:
        """Partitions that are recorded, or committed and adoptable."""
        log, history = self.log(stage), self.records(stage)
        committed = _commits_in_order(stage, log)
        recorded = [record for record in history if record.state is PartitionState.CONSUMABLE]
        _check_once(stage, history)
        newest = {record.partition: record for record in history}
        for record in newest.values():
            if record.state is PartitionState.CONSUMABLE:
                self._check_record(record, committed)
        known = {unquote(path) for record in recorded for path in (file.path for file in record.files)}
        # of outputs that were released the log still names files that are gone, and nobody may remember them
        shown = {unquote(path) for path in log.live} & files_at(log.uri).facts("").keys()
        adoptable = {
            partition: moment for partition, moment in committed.items() if moment > _moment(newest.get(partition))
        }
        allowed = known | {unquote(path) for partition in adoptable for path in log.files_of(partition)}
        allowed |= self.foreign | (shown if self.ledger_lost else set())
        assert shown <= allowed, f"{stage}: {shown - allowed} can be read, is not recorded and cannot be adopted"
        blocked = {file.path for record in history if record.state is PartitionState.BLOCKED for file in record.files}
        assert not blocked & shown, f"{stage}: {blocked & shown} was blocked and can be read"
        alive = {record.partition for record in newest.values() if record.state.counts_as_done}
        return {(stage, partition) for partition in alive | set(adoptable)}

    def _check_record(self, record: PartitionRecord, committed: Mapping[int, Moment]) -> None:
        """Its commit is in the log, and its files hold as many rows as it says, all from one wave of one attempt."""
        newest = max(
            committed.get(record.partition, (0, 0)), self.unlogged.get((record.cell.stage, record.partition), (0, 0))
        )
        assert newest >= _moment(record), f"{record} is recorded and not committed"
        paths = [file.path for file in record.files]
        assert len({PurePosixPath(path).parent.parent for path in paths}) <= 1, f"{record} mixes waves"
        if not self.lost & {f"{record.table}/{path}" for path in paths}:
            files = (BytesIO(files_at(record.table).read(path)) for path in paths)
            assert sum(pq.read_metadata(file).num_rows for file in files) == record.rows, f"{record} has other rows"

    def _lost_places(self, consumable: Iterable[Place]) -> set[Place]:
        return self.consumable - set(consumable) if self.lost else set()


def waves(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.wave is not None]


def _commits_in_order(stage: str, log: TableLog) -> dict[int, Moment]:
    """Newest commit of each partition; every wave is there once,
    and never after one of a newer epoch on the same partition.
    """
    newest: dict[int, Moment] = {}
    for entry in waves(log.entries):
        for partition in entry.partitions:
            before = newest.get(partition, (0, 0))
            assert before < entry.moment, f"{stage}[{partition}]: {entry.moment} committed after {before}"
            newest[partition] = entry.moment
    authors = Counter(entry.author for entry in waves(log.entries))
    assert not [author for author, count in authors.items() if count > 1], f"{stage}: committed twice: {authors}"
    return newest


def _check_once(stage: str, history: Iterable[PartitionRecord]) -> None:
    newest: dict[int, Moment] = {}
    for record in history:
        if record.state is PartitionState.RELEASED:
            continue  # what became of data that was recorded before
        before = newest.get(record.partition, (0, 0))
        assert before < _moment(record), f"{stage}[{record.partition}]: {_moment(record)} recorded after {before}"
        newest[record.partition] = _moment(record)


def _moment(record: PartitionRecord | None) -> Moment:
    return (record.epoch, record.wave) if record else (0, 0)
