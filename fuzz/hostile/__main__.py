"""`python -m fuzz.hostile --cases 1000 --seed 1`: what somebody could hand in who means harm, or has made a mess of it.

Specs, suites, manifests and parameters are made from good ones by changes that follow from the seed. Each has to be
read or refused by an error of Stagehold's own, within seconds, and no file may be written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from fuzz.hostile.cases import KINDS, Outcome, Target


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.hostile")
    parser.add_argument("--cases", type=int, default=1000, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    broken = 0
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        target = Target.make(Path(folder))
        for kind in KINDS:
            for number in range(asked.cases):
                outcome = kind(target, f"{asked.seed}/{number}")
                counts[kind.__name__, outcome.word] += 1
                if outcome.wrong:
                    broken += 1
                    _show(kind.__name__, number, outcome)
    for (name, word), count in sorted(counts.items()):
        print(f"{name}: {count} {word}")
    return 1 if broken else 0


def _show(kind: str, number: int, outcome: Outcome) -> None:
    print(f"{kind} {number}: {outcome.wrong}\n  {outcome.given[:500]!r}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
