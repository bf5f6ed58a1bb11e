"""DuckDB over the files of a checkpoint: in memory, and locked before anybody's statement is carried out. The files are
a folder's own, or copies of those in a bucket.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from stagehold.errors import PartitionDataMissing
from stagehold.extras import Extra, brought_by
from stagehold.gates.suite import within_one
from stagehold.lake.available import present_files
from stagehold.lake.commit.delta_log import AT_ONCE
from stagehold.lake.store.columns import GROUP_PREFIX, INTERVAL, METADATA, PARTITION
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.viewer.views import StoredFile, View, identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Tell = Callable[[str], None]


@contextmanager
def local_files(views: Sequence[View], tell: Tell) -> Iterator[Mapping[str, str]]:
    """A path for the address of every file; copies are deleted at the end.

    :param tell: is told of what is copied.
    :raises PartitionDataMissing: files are gone or have another size. A file that goes later is an error of DuckDB's.
    """
    for view in views:
        _refuse_missing(view)
    files = {file.address: file for view in views for file in view.files}
    there = {address: address for address in files if not address.startswith(OBJECT_STORE)}
    remote = [file for address, file in files.items() if address not in there]
    with TemporaryDirectory(prefix="stagehold-inspect-") as folder:
        yield {**there, **(_copied(remote, Path(folder), tell) if remote else {})}


def _refuse_missing(view: View) -> None:
    by_table: defaultdict[str, list[StoredFile]] = defaultdict(list)
    for file in view.files:
        by_table[file.table].append(file)
    gone = {file.partition for table, files in by_table.items() for file in _not_there(table, files)}
    if gone:
        raise PartitionDataMissing(view.stage, sorted(gone))


def _not_there(table: str, files: Sequence[StoredFile]) -> Iterable[StoredFile]:
    present = present_files(table, (file.path for file in files))
    return [file for file in files if present.get(file.path) != file.bytes]


def _copied(files: Sequence[StoredFile], folder: Path, tell: Tell) -> Mapping[str, str]:
    def copy(file: StoredFile) -> str:
        place = folder / f"{places[file.address]}.parquet"
        place.write_bytes(files_at(file.table).read(file.path))
        return str(place)

    places = {file.address: number for number, file in enumerate(files)}
    size = sum(file.bytes for file in files)
    tell(f"Fetching {len(files)} files, {size:,} bytes, into {folder} ...")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(places, pool.map(copy, files), strict=True))


CLOSED: Mapping[str, str] = {
    "python_enable_replacements": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
}
FILE = "_stagehold_file"
FILES = "_stagehold_files"  # schema of the tables that say whose partition a file is
MASKED = "'(masked)'"
VIEW = """
CREATE VIEW memory.{schema}.{name} AS
SELECT file.partition AS {partition}, data.* EXCLUDE ({file}){masked}
FROM (
    SELECT {file}, COLUMNS(lambda c: NOT (c IN ('{file}', {hidden}) OR starts_with(c, '{group_prefix}')))
    FROM read_parquet({paths}, union_by_name = true, hive_partitioning = false, filename = '{file}')
) AS data JOIN memory.{files}.{number} AS file ON data.{file} = file.path
"""


@contextmanager
def closed_database() -> Iterator[DuckDBPyConnection]:
    """A database that sees no file at all, for reading statements."""
    with brought_by(Extra.INSPECT):
        import duckdb

    with duckdb.connect(config={**CLOSED, "enable_external_access": False}) as connection:
        yield connection


@contextmanager
def database_over(views: Sequence[View], tell: Tell) -> Iterator[DuckDBPyConnection]:
    """A database with these views, except those without files. Whatever a statement in it says, no other file can be
    read. It could write those behind the views, so whose statement it is has to be parsed before.

    :raises PartitionDataMissing: files behind a view are gone.
    """
    with brought_by(Extra.INSPECT):
        import duckdb

    with local_files(views, tell) as places, duckdb.connect(config={**CLOSED}) as connection:
        connection.execute(f"SET TimeZone = 'UTC'; CREATE SCHEMA memory.{FILES}")
        for number, view in enumerate(view for view in views if view.files):
            _create(view, number, places, connection)
        connection.execute(f"SET allowed_paths = {_list_of(sorted(places.values()))}")
        connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        yield connection


def _create(view: View, number: int, places: Mapping[str, str], connection: DuckDBPyConnection) -> None:
    table = f"memory.{FILES}.{identifier(str(number))}"
    paths = {places[file.address]: file.partition for file in view.files}
    connection.execute(f"CREATE TABLE {table} (path VARCHAR, partition BIGINT)")
    connection.execute(f"INSERT INTO {table} SELECT unnest($1), unnest($2)", [list(paths), list(paths.values())])
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS memory.{identifier(view.schema)}")
    connection.execute(
        VIEW.format(
            schema=identifier(view.schema),
            name=identifier(view.name),
            partition=PARTITION,
            file=FILE,
            hidden=", ".join(map(_text, (PARTITION, INTERVAL, METADATA))),
            masked=_masking(view, paths, connection),
            group_prefix=GROUP_PREFIX,
            paths=_list_of(paths),
            files=FILES,
            number=identifier(str(number)),
        )
    )


def _masking(view: View, paths: Mapping[str, int], connection: DuckDBPyConnection) -> str:
    """What stands in place of the columns that are masked, and of those of which a part is."""
    if not view.masked:
        return ""
    read = f"SELECT * FROM read_parquet({_list_of(paths)}, union_by_name = true, hive_partitioning = false)"
    names = [name for name, *_ in connection.execute(f"DESCRIBE {read}").fetchall()]
    found = [name for name in names if any(within_one(name, masked) for masked in view.masked)]
    return f" REPLACE ({', '.join(f'{MASKED} AS {identifier(name)}' for name in found)})" if found else ""


def _list_of(texts: Mapping[str, int] | Sequence[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
