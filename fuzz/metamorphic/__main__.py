"""`python -m fuzz.metamorphic --cases 100 --seed 1`: made-up stages that have to have one outcome however they are
run.

Stops at the first case that has two, shows it as small as dropping operators makes it, and says how to run it again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from random import Random

from fuzz.metamorphic.case import Case
from fuzz.metamorphic.generate import generate
from fuzz.metamorphic.judge import Verdict, judge
from fuzz.metamorphic.laboratory import Laboratory
from fuzz.metamorphic.shrink import shrunk
from tests.conftest import QUICK_JAVA, free_port

from stagehold.settings import Settings
from stagehold.spark.server.server import spark_server


def main() -> int:
    asked = _arguments()
    numbers = [asked.only] if asked.only is not None else range(asked.first, asked.first + asked.cases)
    with tempfile.TemporaryDirectory(prefix="metamorphic-") as home:
        settings = Settings(home=home, spark_port=free_port(), spark_memory="1g", spark_java_options=QUICK_JAVA)
        with spark_server(settings):
            return _run_all(Laboratory.make(settings, asked.seed), asked, numbers)


def _run_all(lab: Laboratory, asked: argparse.Namespace, numbers: Iterable[int]) -> int:
    counts: Counter[str] = Counter()
    habits: Counter[str] = Counter()
    violations = 0
    for number in numbers:
        case, started = generate(asked.seed, number), time.monotonic()
        if asked.habit and all(habit.family != asked.habit for _, habit in case.habits):
            continue
        habits.update({habit.family for _, habit in case.habits} or {"none"})
        verdict, trial = judge(lab, case, Random(f"{asked.seed}/{number}/ways"), all_counts=asked.all_counts)
        counts["VIOLATION" if verdict.violation else verdict.kind] += 1
        print(_line(number, case, verdict, time.monotonic() - started), flush=True)
        if asked.only is not None and trial:
            print("\n".join(trial.told))
        if verdict.violation:
            violations += 1
            _show(lab, asked, number, case, verdict)
            if not asked.go_on:
                break
    print(f"seed {asked.seed}: {_counted(counts)}")
    print(f"cases by habit: {_counted(habits)}")
    return 1 if violations else 0


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))


def _line(number: int, case: Case, verdict: Verdict, seconds: float) -> str:
    facts = [
        case.trap.name if case.trap else "loose" if case.loose else "keyed",
        case.second.exchange if case.second else "one stage",
        "+".join(sorted({habit.family for _, habit in case.habits})) or "no habit",
    ]
    rows = {str(finding.outcome) for finding in verdict.findings} if verdict.kind in ("equal", "isolated") else ()
    word = "WRONG" if verdict.violation else verdict.kind
    return f"case {number}: {word}, {', '.join((*facts, *sorted(rows)))}, {len(verdict.findings)} ways, {seconds:.1f} s"


def _show(lab: Laboratory, asked: argparse.Namespace, number: int, case: Case, verdict: Verdict) -> None:
    print(f"VIOLATION in case {number}: {verdict.violation}", file=sys.stderr)
    smallest = case
    if not asked.as_it_is:
        smallest, verdict = shrunk(lab, case, verdict, Random(f"{asked.seed}/{number}/shrink"))
        print(f"Smallest: {verdict.violation}", file=sys.stderr)
    print(smallest.text(), file=sys.stderr)
    print(f"Again: python -m fuzz.metamorphic --seed {asked.seed} --only {number}", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one case to run again, with all that the runs say")
    parser.add_argument(
        "--all-counts",
        action="store_true",
        help="run each case with 1, 2, 5 and 16 partitions, all in waves of one, too",
    )
    parser.add_argument("--habit", help="run only cases with this one, by its class in fuzz/metamorphic/habits")
    parser.add_argument("--go-on", action="store_true", help="do not stop at the first violation")
    parser.add_argument("--as-it-is", action="store_true", help="do not make what is found smaller")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
