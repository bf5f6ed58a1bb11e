"""What must hold of ledger and lake at every moment, told from the table's log,
the files and what attempts were seen to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from tests.lake.table_log import Entry, TableLog
from tests.run.protocol.paper_spark import PaperSession, rows_of

from stagehold.model.partition_set import Share
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState

Place = tuple[str, int]  # stage and partition
Moment = tuple[int, int]  # epoch and wave
BEGINNING: Moment = (0, 0)


class Judge:
    """Remembers who took which partitions and what was committed and recorded; asserts what follows from it."""

    def __init__(self, tables: Mapping[str, TableLog], partitions: int, session: PaperSession) -> None:
        self._logs = tables
        self._partitions, self._session = range(partitions), session
        self._taken: dict[tuple[str, int], Collection[int]] = {}  # partitions of an epoch
        self._owner: dict[Place, int] = {}  # newest epoch that may write
        self._guard: dict[Place, Moment] = {}  # newest that the table's log knows
        self._recorded: dict[Place, list[PartitionRecord]] = {}
        self._commits: Counter[tuple[str, int, str, int]] = Counter()

    def forget(self, stage: str, known: Sequence[PartitionRecord]) -> None:
        """The ledger was lost, or a copy of it put back that has these records; the lake has not changed."""
        for place in [place for place in self._recorded if place[0] == stage]:
            del self._recorded[place]
        for record in known:
            self._recorded.setdefault((stage, record.partition), []).append(record)
        for place, moment in self._guard.items():
            if place[0] == stage:
                self._owner[place] = moment[0]
        for place in [place for place in self._owner if place[0] == stage and place not in self._guard]:
            del self._owner[place]

    def took(self, stage: str, share: Share | None, epoch: int) -> None:
        partitions = self._partitions if share is None else share.partitions
        self._taken[stage, epoch] = partitions
        for partition in partitions:
            assert self._owner.get((stage, partition), 0) < epoch, f"epoch {epoch} of {stage}[{partition}] is not new"
            self._owner[stage, partition] = epoch

    def recorded(self, stage: str, records: Sequence[PartitionRecord], epoch: int) -> None:
        for record in records:
            place = (stage, record.partition)
            assert self._owner[place] == epoch, (
                f"{place} recorded by epoch {epoch} although {self._owner[place]} has taken it"
            )
            before = self._recorded.setdefault(place, [])
            assert not before or _moment(before[-1]) < _moment(record), f"{place} recorded again: {record}"
            before.append(record)

    def check(self, stage: str, present: Sequence[PartitionRecord], finished: Collection[int]) -> None:
        """:param present: consumable partitions whose data nobody deleted.
        :param finished: epochs whose attempts have finished.
        """
        log = self._logs[stage]
        for entry in log.follow():
            self._check_order(stage, entry)
        for record in present:
            self._check_rows(stage, record)
        for path, partition in log.live.items():
            self._check_visible(stage, log, path, partition)
        for partition in self._partitions:
            if self._owner.get((stage, partition)) in finished:
                self._check_agreement(stage, log, partition)

    def _check_order(self, stage: str, entry: Entry) -> None:
        """No commit and no fence of an epoch after a newer one's on the same partition; no wave twice."""
        for epoch in entry.epochs:
            for partition in self._taken[stage, epoch] if entry.wave is None else ():
                place = (stage, partition)
                self._guard[place] = max(self._guard.get(place, BEGINNING), (epoch, 0))
        for partition in (*entry.partitions, *entry.retracted):
            place, moment = (stage, partition), entry.moment
            assert self._guard.get(place, BEGINNING) < moment, f"{place}: {moment} committed after {self._guard[place]}"
            self._guard[place] = moment
            self._commits[stage, partition, *entry.author] += 1

    def _check_rows(self, stage: str, record: PartitionRecord) -> None:
        """All rows of one wave of one attempt and no others, by the files that are read;
        and its commit is in the log once.
        """
        if record.files:  # of another attempt's wave if it was judged again since
            _, writer, wave, *_ = record.files[0].path.split("/")
            staged = self._session.staged[writer, int(wave), record.partition]
            assert sorted(rows_of(record)) == sorted((writer, amount) for amount in staged), f"{stage}: {record}"
        assert len(rows_of(record)) == record.rows, f"{stage}: {record}"
        entry = self._logs[stage].entries[record.version or 0]
        assert record.partition in entry.partitions, f"{stage}: {record}"
        assert self._commits[stage, record.partition, *entry.author] == 1, f"{stage}: {record}"

    def _check_visible(self, stage: str, log: TableLog, path: str, partition: int) -> None:
        """Nothing that no gate has let, and nobody; only what the ledger has had, or a newer commit to adopt."""
        assert self._session.let(log.uri, path, partition), f"{stage}[{partition}] is visible ungated"
        known = self._recorded.get((stage, partition), [])
        recorded = any(
            path == file.path for record in known for file in record.files if record.state is PartitionState.CONSUMABLE
        )
        newest = _moment(known[-1]) if known else BEGINNING
        assert recorded or self._guard[stage, partition] > newest, (
            f"{stage}[{partition}]: {path} can be read and is not known"
        )

    def _check_agreement(self, stage: str, log: TableLog, partition: int) -> None:
        """Once the newest attempt has finished, any reader of the table sees what is recorded,
        whoever may still wake up.
        """
        known = self._recorded.get((stage, partition), [])
        retracted = max((entry.moment for entry in log.entries if partition in entry.retracted), default=BEGINNING)
        consumable = [one for one in known if one.state is PartitionState.CONSUMABLE and _moment(one) > retracted]
        recorded = {file.path for file in consumable[-1].files} if consumable else set()
        assert log.files_of(partition) == recorded, (
            f"{stage}[{partition}]: {log.files_of(partition)} can be read, {recorded} is recorded"
        )


def _moment(record: PartitionRecord) -> Moment:
    return (record.epoch, record.wave)
