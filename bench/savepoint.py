"""How long a savepoint takes, when many partitions are on record and few of them are newer than the last checkpoint.

    python bench/savepoint.py [REPETITIONS]

After each wave of 20 partitions one savepoint is made beside 1,000 recorded partitions and one beside 100,000, and then
one of each when nothing is new. Writes results/savepoint.json, and ends with 1 if the median beside 100,000 is 2 s or
more, or 3 times as long as beside 1,000.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from worlds.recorded_run import RecordedRun

RESULTS = Path(__file__).parent / "results" / "savepoint.json"
FEW, MANY = 1_000, 100_000
MOST_SECONDS, TIMES_FOR_MANY = 2.0, 3.0


def main() -> int:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        seconds = _measured(Path(folder), repetitions)
    medians = {partitions: statistics.median(some["after a wave"]) for partitions, some in seconds.items()}
    unchanged = {partitions: statistics.median(some["nothing new"]) for partitions, some in seconds.items()}
    times = medians[MANY] / medians[FEW]
    print(f"a savepoint after a wave: {medians[FEW]:.3f} s beside {FEW:,}, {medians[MANY]:.3f} s beside {MANY:,}")
    print(f"which is {times:.1f} times, at most {TIMES_FOR_MANY:.0f}; at most {MOST_SECONDS:.0f} s")
    print(f"when nothing is new: {unchanged[FEW]:.3f} s and {unchanged[MANY]:.3f} s")
    _write(seconds)
    return 0 if medians[MANY] < MOST_SECONDS and times <= TIMES_FOR_MANY else 1


def _measured(folder: Path, repetitions: int) -> dict[int, dict[str, list[float]]]:
    places = {partitions: RecordedRun(folder / str(partitions), partitions) for partitions in (FEW, MANY)}
    found: dict[int, dict[str, list[float]]] = {partitions: defaultdict(list) for partitions in places}
    for wave in range(repetitions):
        for partitions, place in places.items():
            place.end_wave(wave)
            found[partitions]["after a wave"].append(_seconds(place, f"wave-{wave}"))
            found[partitions]["nothing new"].append(_seconds(place, f"again-{wave}"))
    return found


def _seconds(place: RecordedRun, name: str) -> float:
    started = time.perf_counter()
    place.savepoint(name)
    return time.perf_counter() - started


def _write(seconds: dict[int, dict[str, list[float]]]) -> None:
    facts = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "seconds, beside so many partitions": seconds,
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
