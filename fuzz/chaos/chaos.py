"""`make chaos RUNS=50 SEED=1`: runs of small pipelines to which random faults happen, checked after each of them.

Every second run is of the toy pipeline, the others of pipelines that the metamorphic tests made up. With `--habits`
there is one run for each habit of their functions, killed in the first wave of a stage that has it. `BACKEND=bucket`
has the lake in a bucket, `BACKEND=cluster` has a standalone cluster compute (`fuzz.chaos.backends`).

The same seed does the same things again; only when exactly a killed process dies differs a little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from random import Random

from fuzz.chaos.backends import BACKENDS, Backend
from fuzz.chaos.subjects import MadeUp, Subject, Toy
from fuzz.chaos.turmoil import Turmoil
from fuzz.metamorphic.generate import generate_runnable, generate_with
from fuzz.metamorphic.habits.drawing import FAMILIES
from tests.run.lake_watch import LakeWatch
from tests.run.workbench import Workbench

RESULTS = Path(__file__).with_name("results") / "chaos.json"
OF_HABITS = RESULTS.with_name("habits.json")


@dataclass(frozen=True)
class Outcome:
    """One run of ``pipeline``. ``violation`` is what was found wrong, None when nothing was."""

    number: int
    pipeline: str
    seconds: float
    counts: dict[str, int]
    steps: list[str]
    violation: str | None
    habits: list[str] = field(default_factory=list)


def main() -> int:
    asked = _arguments()
    most = len(FAMILIES) if asked.habits else asked.runs
    numbers = [asked.only] if asked.only else list(range(asked.first, most + 1))
    outcomes = _done_before(asked)
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as folder:
        made = chaos(Path(folder), asked.seed, numbers, asked.backend, by_habit=asked.habits, parallel=asked.parallel)
        for outcome in made:
            outcomes.append(outcome)
            print(_line(outcome), flush=True)
            if asked.results:
                # every time, so that what was found stays when somebody ends it
                _write(Path(asked.results), asked.seed, outcomes)
    words = f"--backend {asked.backend}{' --habits' * asked.habits}"
    return report(asked.seed, outcomes, words)


def _done_before(asked: argparse.Namespace) -> list[Outcome]:
    """Those that were done before, as the results say, when a series is gone on with."""
    if asked.first == 1 or not asked.results:
        return []
    found = json.loads(Path(asked.results).read_text())
    assert found["seed"] == asked.seed, f"{asked.results} has the runs of another seed"
    return [Outcome(**run) for run in found["runs"] if run["number"] < asked.first]


def chaos(
    folder: Path, seed: int, numbers: list[int], backend: str = "folder", *, by_habit: bool = False, parallel: int = 1
) -> Iterator[Outcome]:
    """Stops at the first run in which something is wrong."""
    with BACKENDS[backend](folder) as place:
        for number in numbers:
            outcome = _run_of_habit(place.bench, seed, number) if by_habit else _run(place, seed, number, parallel)
            yield outcome
            if outcome.violation:
                break


def report(seed: int, outcomes: list[Outcome], words: str) -> int:
    """Print what happened how often; 1 if anything was wrong.

    :param words: with which it is done again.
    """
    counts = sum((Counter(outcome.counts) for outcome in outcomes), Counter())
    print(
        f"{len(outcomes)} runs, seed {seed}: {', '.join(f'{kind} {count}' for kind, count in sorted(counts.items()))}"
    )
    habits = Counter(habit for outcome in outcomes for habit in outcome.habits)
    print(f"runs by habit: {', '.join(f'{habit} {count}' for habit, count in sorted(habits.items()))}")
    wrong = [outcome for outcome in outcomes if outcome.violation]
    for outcome in wrong:
        print(
            f"VIOLATION in run {outcome.number} after step {len(outcome.steps)}:\n{outcome.violation}", file=sys.stderr
        )
        print(
            f"Again: python -m fuzz.chaos.chaos --seed {seed} {words} --only {outcome.number}",
            file=sys.stderr,
        )
    return 1 if wrong else 0


def _run(place: Backend, seed: int, number: int, parallel: int) -> Outcome:
    subject = _subject(place.bench, seed, number)
    if isinstance(subject, Toy) and parallel > 1:
        subject.ask_for_splits()
    turmoil = replace(_turmoil(subject, seed, number), parallel=parallel, beside=place.faults)
    return _outcome(turmoil, number, turmoil.run)


def _run_of_habit(bench: Workbench, seed: int, number: int) -> Outcome:
    """The habit with this number, in a stage that is killed."""
    family = list(FAMILIES)[number - 1]
    subject = MadeUp.add(bench, generate_with(seed, number, family), 5)
    turmoil = _turmoil(subject, seed, number)
    return _outcome(turmoil, number, lambda: turmoil.run_killed_in(subject.stored_with(family)))


def _turmoil(subject: Subject, seed: int, number: int) -> Turmoil:
    watch = LakeWatch(subject.pipeline, f"run-{number}", subject.bench.settings)
    return Turmoil(subject, watch, Random(f"{seed}/{number}"))


def _outcome(turmoil: Turmoil, number: int, run: Callable[[], None]) -> Outcome:
    started, violation = time.monotonic(), None
    try:
        run()
    except Exception:  # noqa: BLE001 - whatever is wrong is told with the seed
        violation = traceback.format_exc()
    seconds, subject = round(time.monotonic() - started, 1), turmoil.subject
    return Outcome(number, subject.name, seconds, dict(turmoil.counts), turmoil.steps, violation, habits=subject.habits)


def _subject(bench: Workbench, seed: int, number: int) -> Subject:
    if number % 2:
        return Toy(bench)
    random = Random(f"{seed}/{number}/subject")
    return MadeUp.add(bench, generate_runnable(seed, number), random.choice((2, 5, 12)))


def _line(outcome: Outcome) -> str:
    word = "WRONG" if outcome.violation else "right"
    habits = f" ({', '.join(outcome.habits)})" if outcome.habits else ""
    steps = "; ".join(outcome.steps)
    return f"run {outcome.number} of {outcome.pipeline}{habits}: {word}, {outcome.seconds} s: {steps}"


def _write(path: Path, seed: int, outcomes: list[Outcome]) -> None:
    facts = {
        "seed": seed,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
    }
    facts |= {"load": os.getloadavg(), "python": platform.python_version()}
    facts |= {package: version(package) for package in ("pyspark", "delta-spark", "deltalake")}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts | {"runs": [asdict(outcome) for outcome in outcomes]}, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument(
        "--first", type=int, default=1, help="go on with this run; the results of those before it are kept"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one run to do again")
    parser.add_argument("--parallel", type=int, default=1, help="attempts at once, of tasks that ask for splits")
    parser.add_argument("--backend", default="folder", choices=BACKENDS, help="where lake and Spark are")
    parser.add_argument("--habits", action="store_true", help="one run for each habit of a function, with a kill")
    parser.add_argument("--results", help="where the raw data goes; an empty text for nowhere")
    asked = parser.parse_args()
    if asked.results is None:
        usual = RESULTS if asked.backend == "folder" else RESULTS.with_name(f"chaos_{asked.backend}.json")
        asked.results = str(OF_HABITS if asked.habits else usual)
    return asked


if __name__ == "__main__":
    sys.exit(main())
