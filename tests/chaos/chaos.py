"""`make chaos RUNS=50 SEED=1`: runs of small pipelines to which random faults happen, checked after each of them.

Every second run is of the toy pipeline, the others of pipelines that the metamorphic tests made up.

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
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from random import Random

from tests.chaos.subjects import MadeUp, Subject, Toy
from tests.chaos.turmoil import Turmoil
from tests.conftest import QUICK_JAVA, free_port
from tests.metamorphic.generate import generate_runnable
from tests.run.lake_watch import LakeWatch
from tests.run.workbench import Workbench

from stagehold.spark.server.server import spark_server

RESULTS = Path(__file__).with_name("results") / "chaos.json"


@dataclass(frozen=True)
class Outcome:
    """One run of ``pipeline``. ``violation`` is what was found wrong, None when nothing was."""

    number: int
    pipeline: str
    seconds: float
    counts: dict[str, int]
    steps: list[str]
    violation: str | None


def main() -> int:
    asked = _arguments()
    numbers = [asked.only] if asked.only else list(range(asked.first, asked.runs + 1))
    outcomes = _done_before(asked)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        for outcome in chaos(Path(folder), asked.seed, numbers):
            outcomes.append(outcome)
            print(_line(outcome), flush=True)
            if asked.results:
                # every time, so that what was found stays when somebody ends it
                _write(Path(asked.results), asked.seed, outcomes)
    return report(asked.seed, outcomes)


def _done_before(asked: argparse.Namespace) -> list[Outcome]:
    """Those that were done before, as the results say, when a series is gone on with."""
    if asked.first == 1 or not asked.results:
        return []
    found = json.loads(Path(asked.results).read_text())
    assert found["seed"] == asked.seed, f"{asked.results} has the runs of another seed"
    return [Outcome(**one) for one in found["runs"] if one["number"] < asked.first]


def chaos(folder: Path, seed: int, numbers: list[int]) -> Iterator[Outcome]:
    """Stops at the first run in which something is wrong."""
    bench = Workbench.make(folder, "")
    bench = Workbench(replace(bench.settings, spark_port=free_port(), spark_memory="1g", spark_java_options=QUICK_JAVA))
    with spark_server(bench.settings):
        for number in numbers:
            outcome = _run(bench, seed, number)
            yield outcome
            if outcome.violation:
                break


def report(seed: int, outcomes: list[Outcome]) -> int:
    """Print what happened how often; 1 if anything was wrong."""
    counts = sum((Counter(outcome.counts) for outcome in outcomes), Counter())
    print(
        f"{len(outcomes)} runs, seed {seed}: {', '.join(f'{kind} {count}' for kind, count in sorted(counts.items()))}"
    )
    wrong = [outcome for outcome in outcomes if outcome.violation]
    for outcome in wrong:
        print(
            f"VIOLATION in run {outcome.number} after step {len(outcome.steps)}:\n{outcome.violation}", file=sys.stderr
        )
        print(f"Again: python -m tests.chaos.chaos --seed {seed} --only {outcome.number}", file=sys.stderr)
    return 1 if wrong else 0


def _run(bench: Workbench, seed: int, number: int) -> Outcome:
    subject = _subject(bench, seed, number)
    turmoil = Turmoil(subject, LakeWatch(subject.pipeline, f"run-{number}", bench.settings), Random(f"{seed}/{number}"))
    started, violation = time.monotonic(), None
    try:
        turmoil.run()
    except Exception:  # noqa: BLE001 - whatever is wrong is told with the seed
        violation = traceback.format_exc()
    return Outcome(
        number, subject.name, round(time.monotonic() - started, 1), dict(turmoil.counts), turmoil.steps, violation
    )


def _subject(bench: Workbench, seed: int, number: int) -> Subject:
    if number % 2:
        return Toy(bench)
    random = Random(f"{seed}/{number}/subject")
    return MadeUp.add(bench, generate_runnable(seed, number), random.choice((2, 5, 8)))


def _line(outcome: Outcome) -> str:
    word = "WRONG" if outcome.violation else "right"
    return f"run {outcome.number} of {outcome.pipeline}: {word}, {outcome.seconds} s: {'; '.join(outcome.steps)}"


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
    parser.add_argument("--results", default=str(RESULTS), help="where the raw data goes; an empty text for nowhere")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
