"""Gathers what the lake says: its chronicle, the logs of its tables, and the files that are there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from stagehold.chronicle.chronicle import TornFile, read_chronicle
from stagehold.chronicle.missing_facts import LakeKnowledge, newest_records, unrecorded
from stagehold.lake.available import missing_files
from stagehold.lake.commit.committed import committed_intervals
from stagehold.lake.commit.log_tokens import tokens_of
from stagehold.lake.commit.wave_commit import epoch_of
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import cell_prefix, table_location, tables_of
from stagehold.model.records import Attempt, Cell, Fact, PartitionRecord
from stagehold.plan.split.regions import stage_regions
from stagehold.run.lease.region_tables import as_record, verdicts_beside
from stagehold.run.planning.task import lease_of, region_lease
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline


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
class Evidence:
    """``gone`` are partitions whose recorded files are not there as they were recorded; ``epochs`` are by lease.
    ``of_production`` are records of a sandbox that name tables of production.
    """

    knowledge: LakeKnowledge
    torn: tuple[TornFile, ...]
    gone: tuple[PartitionRecord, ...]
    epochs: Mapping[str, int]
    of_production: frozenset[PartitionRecord] = frozenset()


def gather(known: Iterable[Fact], pipelines: Iterable[Pipeline], settings: Settings) -> Evidence:
    """Everything that the lake knows of ``pipelines``, and of others what chronicle and ledger name. What a sandbox
    reads of production's tables says nothing of what happened in the sandbox, so their logs are not looked at.
    """
    lake_uri = settings.lake_uri
    pipelines, told = tuple(pipelines), read_chronicle(lake_uri)
    facts = (*known, *told.facts)
    records = [fact for fact in facts if isinstance(fact, PartitionRecord)]
    foreign = frozenset(one for one in records if settings.reads_only(one.table))
    own = [one for one in records if one not in foreign]
    tables = dict.fromkeys((*_declared(pipelines, lake_uri), *_recorded(own)))
    looked_at = ((one.cell, ()) for one in own)
    published = _newest_of_cells((*looked_at, *(found for table in tables for found in _published(table))))
    newest = newest_records([*facts, *(one for some in published.values() for one in some)]).values()
    epochs: dict[str, int] = {}
    for lease, epoch in (*_epochs_of_attempts(facts), *_epochs_of_logs(pipelines, tables)):
        epochs[lease] = max(epoch, epochs.get(lease, 0))
    said = tuple(verdicts_beside(unrecorded(facts, published)))
    return Evidence(LakeKnowledge(told.facts, published, said), told.torn, tuple(_gone(newest)), epochs, foreign)


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
    """Also those of stages that no file of the project declares any more."""
    return (StageTable(one.table, one.cell.pipeline, one.cell.stage) for one in records)


def _published(table: StageTable) -> Iterator[tuple[Cell, tuple[PartitionRecord, ...]]]:
    for interval, commits in committed_intervals(table.uri, table.prefix).items():
        cell = Cell(table.pipeline, table.stage, interval)
        yield (
            cell,
            tuple(as_record(cell, table.uri, landed, one) for landed in commits for one in landed.commit.partitions),
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
    """Those of the regions of today; fences that committed nothing are here alone."""
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
