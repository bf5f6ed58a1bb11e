"""Which checkpoint is meant by what a user writes. Only the lake is asked, so no ledger is needed.

/lake/checkpoints/sales/2026-11-20/sales-run/0000000007.json      the address of its manifest, also with s3://
/lake/checkpoints/sales/2026-11-20/sales-run      the newest in the folder of a run's checkpoints
/lake/savepoints/before-the-fix.json      a savepoint, by its file
sales/run#7      number 7 of a run of the lake
sales/run        the newest of that run
before-the-fix   the savepoint of that name
/copy/of/lake    the newest in a lake
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from stagehold.errors import CheckpointCorrupt, UnknownCheckpoint, UnknownName
from stagehold.lake.checkpoints.savepoints import ENDING, NAME, Savepoints
from stagehold.lake.checkpoints.savepoints import FOLDER as SAVEPOINTS
from stagehold.lake.checkpoints.stored_checkpoints import MANIFEST, StoredCheckpoints
from stagehold.lake.commit.delta_log import AT_ONCE
from stagehold.lake.store.files import FileFacts, files_at
from stagehold.lake.store.location import CHECKPOINTS, lake_root, path_safe

FORMS = (
    "the name of a savepoint, RUN_ID, RUN_ID#NUMBER, the address of a manifest (.../0000000007.json), the "
    "folder of a run's checkpoints, the file of a savepoint (.../savepoints/NAME.json), a folder that is a lake"
)
NEWEST = 4  # runs that an error names


Reference = tuple[StoredCheckpoints, int]  # a checkpoint among those of its run; reading it shows if it can be read


def find_checkpoint(reference: str, lake_uri: str) -> Reference:
    """
    :param lake_uri: where runs are looked for.
    :raises UnknownCheckpoint: nothing is called so; names the newest runs that there are.
    :raises UnknownName: the run has no checkpoint of that number.
    :raises CheckpointCorrupt: the manifest is missing or not what was written. No other one is taken in its place.
    """
    ways: tuple[Callable[[str, str], Reference | None], ...] = (
        *(_by_address, _by_savepoint_file, _by_folder),
        *(_by_name, _by_lake, _by_run),
    )
    found = next((found for way in ways if (found := way(reference, lake_root(lake_uri)))), None)
    if found is None:
        raise UnknownCheckpoint(reference, lake_uri, _newest_runs(lake_root(lake_uri)), FORMS)
    return found


def _by_address(reference: str, _: str) -> Reference | None:
    if not MANIFEST.fullmatch(reference.rpartition("/")[2]):
        return None
    return StoredCheckpoints.holding(lake_root(reference))


def _by_savepoint_file(reference: str, _: str) -> Reference | None:
    lake, _, name = lake_root(reference).removesuffix(ENDING).rpartition(f"/{SAVEPOINTS}/")
    return _by_name(name, lake) if lake and reference.endswith(ENDING) else None


def _by_folder(reference: str, _: str) -> Reference | None:
    """The checkpoints directly in a folder. A run id may contain slashes too, so only what is directly there counts."""
    folder = lake_root(reference)
    manifests = [name for name in files_at(folder).names() if MANIFEST.fullmatch(name)] if "/" in reference else []
    return StoredCheckpoints.holding(f"{folder}/{max(manifests)}") if manifests else None


def _by_name(reference: str, lake: str) -> Reference | None:
    savepoints = Savepoints(lake)
    found = savepoints.find(reference) if NAME.fullmatch(reference) else None
    return (savepoints.stored(found), found.number) if found else None


def _by_lake(reference: str, _: str) -> Reference | None:
    lake = lake_root(reference)
    manifests = _manifests(lake)
    if not manifests:
        return None
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(StoredCheckpoints.holding, manifests)
        return max(found, key=lambda candidate: candidate[0].read_manifest(candidate[1]).taken_at)


def _by_run(reference: str, lake: str) -> Reference | None:
    run, _, number = reference.rpartition("#")
    if run and number.isdecimal():
        return _of_run(run, int(number), lake)
    return _of_run(reference, None, lake)


def _of_run(run_id: str, number: int | None, lake: str) -> Reference | None:
    numbers = {
        int(match[1]): f"{folder}/{name}"
        for folder in _run_folders(path_safe(run_id), lake)
        for name in files_at(folder).facts("")
        if (match := MANIFEST.fullmatch(name))
    }
    if not numbers:
        return None
    wanted = max(numbers) if number is None else number
    if wanted not in numbers:
        raise UnknownName(f"checkpoint of {run_id}", str(wanted), [str(number) for number in sorted(numbers)])
    return StoredCheckpoints.holding(numbers[wanted])


def _run_folders(name: str, lake: str) -> Iterable[str]:
    files = files_at(lake)

    def intervals(pipeline: str) -> list[str]:
        return [f"{pipeline}/{interval}" for interval in files.folders(pipeline)]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        pipelines = [f"{CHECKPOINTS}/{pipeline}" for pipeline in files.folders(CHECKPOINTS)]
        cells = [cell for found in pool.map(intervals, pipelines) for cell in found]
        runs = pool.map(files.folders, cells)
        return [f"{lake}/{cell}/{name}" for cell, found in zip(cells, runs, strict=True) if name in found]


def _manifests(lake: str) -> Mapping[str, FileFacts]:
    """Addresses of the manifests of all runs."""
    every = files_at(lake).facts(CHECKPOINTS)
    return {f"{lake}/{path}": file for path, file in every.items() if MANIFEST.fullmatch(path.rpartition("/")[2])}


def _newest_runs(lake: str) -> list[str]:
    manifests = _manifests(lake)
    newest = sorted(manifests, key=lambda address: manifests[address].modified, reverse=True)
    return list(dict.fromkeys(map(_run_or_address, newest[:NEWEST])))


def _run_or_address(address: str) -> str:
    try:
        stored, number = StoredCheckpoints.holding(address)
        return stored.read_manifest(number).run.run_id
    except CheckpointCorrupt:
        return address
