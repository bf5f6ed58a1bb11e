"""`make doors`: each wish through each door of a live Airflow, and whether all of them give the same answer.

`--wishes` and `--doors` run some cells anew, `--missing` those that are not there; the others stay as they were found.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from threading import Lock

from fuzz.doors.place import Place, started
from fuzz.doors.table import DIFFERENT, Cell, as_json, as_markdown, cell, merged, read
from fuzz.doors.wishes import CLICKED, WISHES, Door, Wish
from tests.e2e.stack import Stack

RESULTS = Path(__file__).parent / "results"
AT_ONCE = 3  # doors; more only wait for the cores


def main() -> int:
    given = _given()
    chosen = _chosen(given)
    doors = [door for door in Door if any(door is one for one, _ in chosen)]
    table = Table(until=time.monotonic() + 60 * given.minutes)
    if chosen:
        with _folder(given.folder) as folder, started(folder, doors) as stack:
            table.fill(stack, chosen)
    left = len(chosen) - len(table.new)
    print(f"{len(table.new)} cells were run, {left} are left")
    return any(found.result == DIFFERENT for found in table.new)


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wishes", nargs="*", choices=[wish.key for wish in WISHES], metavar="WISH")
    parser.add_argument("--doors", nargs="*", choices=[door.name.lower() for door in Door], metavar="DOOR")
    parser.add_argument("--missing", action="store_true", help="only cells that are not equal, or not there yet")
    parser.add_argument("--minutes", type=float, default=600, help="after these no other cell begins")
    parser.add_argument("--folder", type=Path, help="where all of it is kept for the next time; by default nowhere")
    return parser.parse_args()


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="doors-") as made:
        yield Path(made)


def _chosen(given: argparse.Namespace) -> list[tuple[Door, Wish]]:
    known = {(found.wish, found.door) for found in read(RESULTS / "doors.json") if found.result != DIFFERENT}
    wishes = {wish.key: wish for wish in WISHES}
    return [
        (door, wish)
        for wish in [wishes[key] for key in given.wishes or wishes]
        for door in Door
        if (not given.doors or door.name.lower() in given.doors)
        and wish.key in CLICKED.get(door, (wish.key,))
        and not (given.missing and (wish.key, door) in known)
    ]


@dataclass
class Table:
    """What is run now, kept beside what was run before as soon as it is there."""

    until: float
    new: list[Cell] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def fill(self, stack: Stack, chosen: Sequence[tuple[Door, Wish]]) -> None:
        by_door: dict[Door, list[Wish]] = {}
        for door, wish in chosen:
            by_door.setdefault(door, []).append(wish)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda door: self._of_door(Place.of(stack, door), by_door[door]), by_door))

    def _of_door(self, place: Place, wishes: Sequence[Wish]) -> None:
        for wish in wishes:
            if time.monotonic() < self.until or wish.cannot.get(place.door):
                self._keep(cell(place, wish))

    def _keep(self, found: Cell) -> None:
        facts = {
            "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "airflow": version("apache-airflow"),
            "python": platform.python_version(),
        }
        with self.lock:
            self.new.append(found)
            cells = merged(read(RESULTS / "doors.json"), self.new)
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / "doors.json").write_text(as_json(cells, facts))
            (RESULTS / "doors.md").write_text(as_markdown(cells, facts))
            print(f"{found.result:<10} {found.wish:<18} {found.door:<22} {found.seconds:6.1f} s", flush=True)
            for line in found.differences:
                print(f"           {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
