"""`python -m fuzz.simulator --seconds 600`: histories of attempts that meet, die, sleep and wake, in which nothing is
ever lost, there twice, mixed or shown too early.

Stops at the first history in which something is, and prints its seed and the shortest history that shows it. `--seed N`
plays that history again, `--small` goes through all interleavings of a small world, and `--mistake NAME` puts back a
mistake that has to be found.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass

from fuzz.simulator.folder_lake import FolderLake
from fuzz.simulator.histories import History, random_history, shrunk
from fuzz.simulator.interleavings import explored
from fuzz.simulator.mistakes import MISTAKES
from fuzz.simulator.simulated_lake import SimulatedLake
from fuzz.simulator.simulation import Shape

ONE_IN = 20  # histories is played over delta-rs, on a folder


@dataclass
class Tally:
    """What one process has played; ``broken`` is the seed of the history at which it stopped."""

    histories: int = 0
    by_delta_rs: int = 0
    steps: int = 0
    broken: int | None = None


def lake_of(seed: int) -> Callable[[], SimulatedLake]:
    return FolderLake if seed % ONE_IN == 0 else SimulatedLake


def history_of(seed: int) -> History:
    return random_history(seed, lake_of(seed))


def tally(first: int, apart: int, until: Callable[[Tally], bool], mistake: str | None = None) -> Tally:
    """Play the histories of every ``apart``-th seed from ``first`` on."""
    told, seed = Tally(), first
    with MISTAKES[mistake]() if mistake else nullcontext():
        while not until(told):
            history = history_of(seed)
            told.histories += 1
            told.by_delta_rs += lake_of(seed) is FolderLake
            told.steps += len(history.lines)
            if history.broken is not None:
                told.broken = seed
                break
            seed += apart
    return told


def _for_seconds(first: int, apart: int, seconds: float, mistake: str | None) -> Tally:
    logging.disable(logging.CRITICAL)
    ends = time.monotonic() + seconds
    return tally(first, apart, lambda _: time.monotonic() > ends, mistake)


def main() -> int:
    asked = _arguments()
    logging.disable(logging.CRITICAL)
    if asked.small:
        return _small(asked)
    if asked.seed is not None:
        return _show(asked.seed, asked)
    with ProcessPoolExecutor(asked.processes) as pool:
        facts = [
            (asked.first + number, asked.processes, asked.seconds, asked.mistake) for number in range(asked.processes)
        ]
        told = list(pool.map(_for_seconds, *zip(*facts, strict=True)))
    histories, by_delta_rs, steps = (
        sum(getattr(one, name) for one in told) for name in ("histories", "by_delta_rs", "steps")
    )
    print(f"{histories} histories with {steps} steps, {by_delta_rs} of them over delta-rs")
    broken = [one.broken for one in told if one.broken is not None]
    return _show(min(broken), asked) if broken else 0


def _show(seed: int, asked: argparse.Namespace) -> int:
    """Play one history, and show it: the shortest that is broken in the same way, or as it is if it is not."""
    with MISTAKES[asked.mistake]() if asked.mistake else nullcontext():
        history = history_of(seed)
        if history.broken is not None and not asked.as_it_is:
            history = shrunk(history, lake_of(seed))
    print("\n".join(f"{number:4d}  {line}" for number, line in enumerate(history.lines, 1)))
    if history.broken is None:
        print(f"seed {seed}: nothing is broken")
        return 0
    mistake = f" --mistake '{asked.mistake}'" if asked.mistake else ""
    print(f"seed {seed}: {history.broken}\nAgain: python -m fuzz.simulator --seed {seed}{mistake}", file=sys.stderr)
    return 1


def _small(asked: argparse.Namespace) -> int:
    with MISTAKES[asked.mistake]() if asked.mistake else nullcontext():
        found = explored(Shape(asked.partitions), asked.seconds)
    print(f"{found}{'' if found.whole else '; not all of them in this time'}")
    if found.broken:
        print("\n".join(found.broken.lines))
        print(found.broken.broken, file=sys.stderr)
    return 1 if found.broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="play the history of this seed, and print its steps")
    parser.add_argument("--as-it-is", action="store_true", help="do not make what is broken shorter")
    parser.add_argument("--small", action="store_true", help="all interleavings of two attempts, with a crash anywhere")
    parser.add_argument("--partitions", type=int, default=2, help="of the small world, each in a wave of its own")
    parser.add_argument("--mistake", choices=[*MISTAKES], help="put this mistake back")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
