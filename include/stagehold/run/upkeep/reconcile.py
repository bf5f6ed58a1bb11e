"""Compares ledger and lake, and repairs what is safe to repair. The lake says what it knows by its chronicle, the logs
of its tables, and the files that are there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagehold.chronicle.chronicle import LakeChronicle, TornFile, open_ledger, read_chronicle
from stagehold.chronicle.differences import Difference, Disagreement, disagreements
from stagehold.chronicle.missing_facts import (
    LakeKnowledge,
    adopted_facts,
    missing_in_chronicle,
    missing_in_ledger,
    missing_rows,
    newest_records,
    uncommitted,
    unrecorded,
)
from stagehold.lake.available import missing_files
from stagehold.lake.commit.committed_waves import committed_intervals
from stagehold.lake.commit.tokens import tokens_of
from stagehold.lake.commit.wave_commit import epoch_of
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import cell_prefix, table_location, tables_of
from stagehold.ledger.leases import lease_of, region_lease
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, Cell, Fact, PartitionRecord, Run
from stagehold.plan.split.regions import stage_regions
from stagehold.run.lease.region_tables import as_record, verdicts_beside
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

AT_ONCE = 5_000  # facts in a file of the chronicle


@dataclass(frozen=True)
class StageTable:
    """A table, and the stage of a pipeline that writes it; a published one may be written by many."""

    uri: str
    pipeline: str
    stage: str

    @property
    def prefix(self) -> str:
        return cell_prefix(self.pipeline, self.stage)


@dataclass(frozen=True)
class Comparison:
    """What a ledger and a lake know, taken one after the other: the ledger first, since the lake never knows less.

    ``epochs_known`` to the ledger and ``epochs`` of the lake are by lease. ``gone`` are partitions whose recorded files
    are not there as they were recorded. ``of_production`` are records of a sandbox that name tables of production.
    """

    known: tuple[Fact, ...]
    epochs_known: Mapping[str, int]
    lake: LakeKnowledge
    torn: tuple[TornFile, ...]
    gone: tuple[PartitionRecord, ...]
    epochs: Mapping[str, int]
    of_production: frozenset[PartitionRecord]

    @cached_property
    def adopted(self) -> tuple[Fact, ...]:
        return adopted_facts((*self.known, *self.lake.told), self.lake)

    @cached_property
    def unchronicled(self) -> tuple[Fact, ...]:
        return missing_in_chronicle(self.known, self.lake.told)

    def _own(self, facts: Iterable[Fact]) -> Iterator[Fact]:
        """Facts without the records whose commits are production's."""
        return (fact for fact in facts if not (isinstance(fact, PartitionRecord) and fact in self.of_production))

    @cached_property
    def epochs_behind(self) -> Mapping[str, int]:
        return {lease: epoch for lease, epoch in self.epochs.items() if epoch > self.epochs_known.get(lease, 0)}

    def disagreements(self) -> Iterator[Disagreement]:
        """Everything that differs, in the order in which it matters."""
        lake, facts = self.lake, (*self.known, *self.lake.told)
        runs = {fact.run_id: fact for fact in facts if isinstance(fact, Run)}
        for difference, differing in (
            (Difference.ROW_MISSING, missing_rows(self.known, lake.told)),
            (Difference.COMMIT_UNRECORDED, self.adopted),
            (Difference.NOT_CHRONICLED, self.unchronicled),
            (Difference.ROW_UNCOMMITTED, uncommitted(self._own(facts), lake.published)),
            (Difference.DATA_CHANGED, self.gone),
        ):
            yield from disagreements(difference, differing, runs)
        if self.epochs_behind:
            yield Disagreement(Difference.EPOCH_BEHIND, None, None, "leases", len(self.epochs_behind))
        for torn in self.torn:
            yield Disagreement(Difference.TORN, None, None, torn.path, 1, detail=torn.problem)


def compare(ledger: Ledger, pipelines: Iterable[Pipeline], settings: Settings) -> Comparison:
    """All that the ledger knows; and everything that the lake knows of ``pipelines``, and of others what chronicle and
    ledger name. What a sandbox reads of production's tables says nothing of what happened in the sandbox, so their logs
    are not looked at.
    """
    known, epochs_known = ledger.facts.all(), ledger.facts.epochs()
    lake_uri = settings.lake_uri
    pipelines, (told, torn) = tuple(pipelines), read_chronicle(lake_uri)
    facts = (*known, *told)
    records = [fact for fact in facts if isinstance(fact, PartitionRecord)]
    foreign = frozenset(record for record in records if settings.reads_only(record.table))
    own = [record for record in records if record not in foreign]
    tables = dict.fromkeys((*_declared(pipelines, lake_uri), *_recorded(own)))
    looked_at = ((record.cell, ()) for record in own)
    published = _newest_of_cells((*looked_at, *(found for table in tables for found in _published(table))))
    newest = newest_records([*facts, *(record for records in published.values() for record in records)]).values()
    epochs: dict[str, int] = {}
    for lease, epoch in (*_epochs_of_attempts(facts), *_epochs_of_logs(pipelines, tables)):
        epochs[lease] = max(epoch, epochs.get(lease, 0))
    said = tuple(verdicts_beside(unrecorded(facts, published)))
    lake = LakeKnowledge(told, published, said)
    return Comparison(known, epochs_known, lake, torn, tuple(_gone(newest)), epochs, foreign)


def _declared(pipelines: Iterable[Pipeline], lake_uri: str) -> Iterator[StageTable]:
    for pipeline in pipelines:
        for stage in pipeline.stages:
            if stage.output.table is not None:
                uri = table_location(lake_uri, pipeline.name, stage, "").uri
                yield StageTable(uri, pipeline.name, stage.id)
            elif stage.output.may_have_table:
                folder = tables_of(lake_uri, pipeline.name, stage)
                for name in files_at(folder).folders(""):
                    yield StageTable(f"{folder}/{name}", pipeline.name, stage.id)


def _recorded(records: Iterable[PartitionRecord]) -> Iterator[StageTable]:
    """Tables that records name, also those of stages that no file of the project declares any more."""
    return (StageTable(record.table, record.cell.pipeline, record.cell.stage) for record in records)


def _published(table: StageTable) -> Iterator[tuple[Cell, tuple[PartitionRecord, ...]]]:
    for interval, commits in committed_intervals(table.uri, table.prefix).items():
        cell = Cell(table.pipeline, table.stage, interval)
        yield (
            cell,
            tuple(
                as_record(cell, table.uri, landed, partition)
                for landed in commits
                for partition in landed.commit.partitions
            ),
        )


def _newest_of_cells(
    found: Iterable[tuple[Cell, tuple[PartitionRecord, ...]]],
) -> Mapping[Cell, tuple[PartitionRecord, ...]]:
    """A stage that got another table has commits in both."""
    cells: dict[Cell, tuple[PartitionRecord, ...]] = {}
    for cell, records in found:
        cells[cell] = tuple(newest_records((*cells.get(cell, ()), *records)).values())
    return cells


def _gone(newest: Iterable[PartitionRecord]) -> Iterator[PartitionRecord]:
    cells: dict[Cell, list[PartitionRecord]] = defaultdict(list)
    for record in newest:
        if record.state.readable:
            cells[record.cell].append(record)
    for records in cells.values():
        missing = missing_files(records)
        yield from (record for record in records if record.partition in missing)


def _epochs_of_attempts(facts: Iterable[Fact]) -> Iterator[tuple[str, int]]:
    for fact in facts:
        if isinstance(fact, Attempt) and fact.began:
            yield region_lease(fact.pipeline, fact.interval, fact.region), fact.epoch
            yield lease_of(fact), fact.epoch


def _epochs_of_logs(pipelines: Iterable[Pipeline], tables: Iterable[StageTable]) -> Iterator[tuple[str, int]]:
    """Epochs in the logs of today's regions. Fences that committed nothing are found here alone."""
    regions = {
        (pipeline.name, pipeline.stage(name).id): region.name
        for pipeline in pipelines
        for region in stage_regions(pipeline)
        for name in region.stages
    }
    for table in tables:
        region = regions.get((table.pipeline, table.stage))
        for token, version in tokens_of(table.uri).items() if region else ():
            cell = token.partition("@")[2] or token
            if region and cell.startswith(table.prefix):
                yield region_lease(table.pipeline, cell.removeprefix(table.prefix), region), epoch_of(version)


def reconcile(pipelines: Iterable[Pipeline], settings: Settings, *, dry_run: bool) -> Sequence[Disagreement]:
    """Bring the ledger up to what the lake knows, and the chronicle up to what the ledger knows.

    Safe beside attempts that are under way, and whenever it is repeated. Whoever works under an epoch that the lake
    knows to be old is fenced by it, as they were in the lake before.
    """
    with open_ledger(settings) as ledger:
        return reconcile_ledger(ledger, pipelines, settings, dry_run=dry_run)


def reconcile_ledger(
    ledger: Ledger, pipelines: Iterable[Pipeline], settings: Settings, *, dry_run: bool
) -> Sequence[Disagreement]:
    """`reconcile`, with a ledger that is open."""
    compared = compare(ledger, pipelines, settings)
    if not dry_run:
        _chronicle((*compared.unchronicled, *compared.adopted), settings.lake_uri)
        ledger.facts.mend(lambda facts: missing_in_ledger(facts, compared.lake))
        ledger.facts.raise_epochs(compared.epochs_behind)
    return tuple(compared.disagreements())


def _chronicle(facts: Sequence[Fact], lake_uri: str) -> None:
    for start in range(0, len(facts), AT_ONCE):
        LakeChronicle(lake_uri)(facts[start : start + AT_ONCE])
