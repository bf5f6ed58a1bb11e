"""`make doors`: each wish through each door of a live Airflow, and whether all of them give the same answer.

`--wishes` and `--doors` run some cells anew; the others stay as they were found.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from fuzz.doors.place import Place, started
from fuzz.doors.table import DIFFERENT, Cell, as_json, as_markdown, cell, merged, read
from fuzz.doors.wishes import CLICKED, WISHES, Door, Wish
from tests.e2e.stack import Stack

RESULTS = Path(__file__).parent / "results"
AT_ONCE = 3  # doors; more only wait for the two cores


def main() -> int:
    given = _given()
    wishes = [wish for wish in WISHES if not given.wishes or wish.key in given.wishes]
    doors = [door for door in Door if not given.doors or door.name.lower() in given.doors]
    with tempfile.TemporaryDirectory(prefix="doors-") as folder, started(Path(folder), doors) as stack:
        new: list[Cell] = []
        for found in _cells(stack, wishes, doors):
            new += found
            _keep(new)
    return any(found.result == DIFFERENT for found in new)


def _keep(new: Sequence[Cell]) -> None:
    facts = {
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "airflow": version("apache-airflow"),
        "python": platform.python_version(),
    }
    cells = merged(read(RESULTS / "doors.json"), new)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "doors.json").write_text(as_json(cells, facts))
    (RESULTS / "doors.md").write_text(as_markdown(cells, facts))


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wishes", nargs="*", choices=[wish.key for wish in WISHES], metavar="WISH")
    parser.add_argument("--doors", nargs="*", choices=[door.name.lower() for door in Door], metavar="DOOR")
    return parser.parse_args()


def _cells(stack: Stack, wishes: Sequence[Wish], doors: Sequence[Door]) -> Iterator[list[Cell]]:
    """Those of each door, as soon as they and those of the doors before it are there."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda door: _of_door(Place.of(stack, door), wishes), doors)


def _of_door(place: Place, wishes: Sequence[Wish]) -> list[Cell]:
    found = []
    for wish in wishes:
        if wish.key not in CLICKED.get(place.door, (wish.key,)):
            continue
        found.append(cell(place, wish))
        print(f"{found[-1].result:<10} {wish.key:<18} {place.door:<22} {found[-1].seconds:6.1f} s", flush=True)
        for line in found[-1].differences:
            print(f"           {line}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
