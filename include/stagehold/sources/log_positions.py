"""What intervals read of an incremental source, as the tables' logs say, for a ledger that does not know it.

Each wave's commit carries what its interval took. A ledger that is whole knows every interval that the tables know,
which is seen from tokens or folder names alone; commits are read only if it lacks one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from stagehold.errors import LedgerBehind
from stagehold.lake.commit.delta_log import commit_versions, open_table, read_commits, table_exists
from stagehold.lake.commit.log_tokens import tokens_of
from stagehold.lake.commit.wave_commit import WaveCommit, from_any_cell
from stagehold.lake.store.columns import INTERVAL
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import TableLocation, cell_prefix, path_safe, table_location, tables_of
from stagehold.model.source_position import Position
from stagehold.spec.pipeline import Stage


@dataclass(frozen=True)
class PublishedPosition:
    """What an interval took of a source, as the run that published rows of it said."""

    run_id: str
    position: Position


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
    return (PublishedPosition(commit.run_id, one.position) for one in commit.positions if one.stage == source.id)


def _intervals_with_rows(uri: str) -> set[str]:
    return {str(one[INTERVAL]) for one in open_table(uri).partitions()}


def _refuse_cleaned_up(uri: str, source: Stage, unknown: set[str], with_rows: set[str]) -> None:
    """An interval that only fenced, or only had its table made, published nothing: it may read anew."""
    lost = sorted(unknown & with_rows)
    if lost:
        raise LedgerBehind(source.name, uri, lost, commit_versions(uri)[0])
