"""Files of views where DuckDB can open them: a folder's own, or copies of what is in a bucket."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from stagehold.errors import PartitionDataMissing
from stagehold.lake.available import present_files
from stagehold.lake.commit.delta_log import AT_ONCE
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.viewer.views import StoredFile, View

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
