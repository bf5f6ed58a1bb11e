"""What intervals took of an incremental source, as tables' logs and the lake's chronicle say, and what became of it.

Each wave's commit carries what its interval took, for a ledger that does not know it. A ledger that is whole knows
every interval that the tables know, which is seen from tokens or folder names alone; commits are read only if it lacks
one.
The chronicle tells it to who does not open the ledger: a sandbox reads what production's intervals took; a savepoint
takes along what others had taken when it was made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from stagehold.chronicle.chronicle import facts_told
from stagehold.errors import LedgerBehind
from stagehold.lake.commit.delta_log import commit_versions, open_table, read_commits, table_exists
from stagehold.lake.commit.tokens import tokens_of
from stagehold.lake.commit.wave_commit import WaveCommit, from_any_cell
from stagehold.lake.store.columns import INTERVAL
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import TableLocation, cell_prefix, path_safe, table_location, tables_of
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, RunState, TakenPosition
from stagehold.model.source_position import Position
from stagehold.model.standing import PartitionState
from stagehold.spec.pipeline import Stage

# What an interval took of a source, and the run that published rows of it, which said so.
PublishedPosition = tuple[str, Position]


def unknown_positions(
    lake_uri: str, pipeline: str, stage: Stage, source: Stage, known: Collection[str]
) -> Mapping[str, PublishedPosition]:
    """What intervals that are not ``known`` took of ``source`` and published, at least in part, through ``stage``.

    :raises LedgerBehind: rows of an interval are there, but the commits that would tell are no longer in the log
    """
    prefix = cell_prefix(pipeline, stage.id)
    if stage.output.table is not None:
        return _in_published_table(table_location(lake_uri, pipeline, stage, ""), prefix, source, known)
    return _in_own_tables(tables_of(lake_uri, pipeline, stage), prefix, source, known)


def _in_published_table(
    location: TableLocation, prefix: str, source: Stage, known: Collection[str]
) -> Mapping[str, PublishedPosition]:
    seen = {token.partition("@")[2] or token for token in tokens_of(location.uri)}
    unknown = {cell.removeprefix(prefix) for cell in seen if cell.startswith(prefix)} - set(known)
    if not unknown:
        return {}
    found = {
        interval: position
        for interval, position in _positions_in_log(location.uri, prefix, source)
        if interval in unknown
    }
    _refuse_cleaned_up(location.uri, source, unknown - found.keys(), _intervals_with_rows(location.uri))
    return found


def _in_own_tables(folder: str, prefix: str, source: Stage, known: Collection[str]) -> Mapping[str, PublishedPosition]:
    names = set(files_at(folder).folders("")) - set(map(path_safe, known))
    found: dict[str, PublishedPosition] = {}
    for name in sorted(names):
        uri = f"{folder}/{name}"
        found_in_log = dict(_positions_in_log(uri, prefix, source))
        found |= {interval: position for interval, position in found_in_log.items() if interval not in known}
        if not found_in_log and table_exists(uri):
            _refuse_cleaned_up(uri, source, {name}, {name} if open_table(uri).file_uris() else set())
    return found


def _positions_in_log(uri: str, prefix: str, source: Stage) -> Iterator[tuple[str, PublishedPosition]]:
    """Intervals and what their commits say that they took, oldest first."""
    for entry in read_commits(uri, commit_versions(uri)):
        found = from_any_cell(entry.user_metadata, prefix)
        if found:
            interval, commit = found
            yield from ((interval, position) for position in _of_source(commit, source))


def _of_source(commit: WaveCommit, source: Stage) -> Iterator[PublishedPosition]:
    return ((commit.run_id, taken.position) for taken in commit.positions if taken.stage == source.id)


def _intervals_with_rows(uri: str) -> set[str]:
    return {str(partition[INTERVAL]) for partition in open_table(uri).partitions()}


def _refuse_cleaned_up(uri: str, source: Stage, unknown: set[str], with_rows: set[str]) -> None:
    """An interval that only fenced, or only had its table made, published nothing: it may read anew."""
    lost = sorted(unknown & with_rows)
    if lost:
        raise LedgerBehind(source.name, uri, lost, commit_versions(uri)[0])


def told_positions(
    lake_uri: str, pipeline: str, stage_id: str, until: datetime | None = None
) -> Mapping[str, PublishedPosition]:
    """What each interval had taken last, by interval. If a file is torn, the tables' logs still tell what was
    published.
    """
    taken = positions_taken(lake_uri, pipeline, {stage_id}, until)
    return {position.cell.interval: (position.run_id, position.position) for position in taken}


def positions_taken(
    lake_uri: str, pipeline: str, stage_ids: Collection[str], until: datetime | None
) -> Collection[TakenPosition]:
    """The last position of each cell of these stages."""
    newest: dict[Cell, TakenPosition] = {}
    for fact in facts_told(lake_uri, TakenPosition):
        is_theirs = fact.cell.pipeline == pipeline and fact.cell.stage in stage_ids
        if is_theirs and (until is None or fact.recorded_at <= until):
            newest[fact.cell] = fact
    return newest.values()


def published_of(pipeline: str, stages: Sequence[Stage], interval: str, ledger: Ledger) -> tuple[str, ...]:
    """Partitions of ``stages`` that were published, in words, also if a later try was refused by its gate; none if the
    interval was deleted, which takes the rows of all of them out.
    """
    cells = {stage.name: Cell(pipeline, stage.id, interval) for stage in stages}
    newest = [record for cell in cells.values() for record in ledger.partitions.newest(cell)]
    if all(record.state is PartitionState.RELEASED for record in newest):
        return ()
    made = {
        f"{name}[{record.partition}] (version {record.version})": None
        for name, cell in cells.items()
        for record in ledger.partitions.history(cell)
        if record.version is not None
    }
    return tuple(made)


def unfinished(pipeline: str, stored: Sequence[Stage], intervals: Collection[str], ledger: Ledger) -> tuple[str, ...]:
    """The intervals that have not made all partitions of the ``stored`` stages, in order."""
    passed, others = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for figures in ledger.partitions.figures(pipeline, intervals):
        (passed if figures.state.counts_as_done else others)[figures.interval, figures.stage] += figures.partitions
    runs = ledger.runs.newest_of_intervals(pipeline, intervals)
    finished = {run.interval for run in runs if run.state is RunState.FINISHED}

    def has_all(interval: str, stage: Stage) -> bool:
        """What it is cut into now may be another number than then; a run that finished had them all."""
        made, lacking = passed[interval, stage.id], others[interval, stage.id]
        return made > 0 and not lacking and (interval in finished or made >= _wanted(stage, pipeline, interval, ledger))

    return tuple(sorted(interval for interval in intervals if not all(has_all(interval, stage) for stage in stored)))


def _wanted(stage: Stage, pipeline: str, interval: str, ledger: Ledger) -> int:
    decided = ledger.partition_counts.decided(pipeline, interval) if stage.auto_partitions else {}
    return decided[stage.id].partitions if stage.id in decided else stage.partitions
