"""`python -m fuzz.chaos.kills --each 40`: a run whose client, Spark server or keeper is killed, or two of them, at any
moment of its life, and which is resumed at once, or by two at once.

Each of these must find a server or start one, whatever is left of the last one: it is starting, has been left by its
users, or is just stopping. Then what is published is compared with the source. The same seed kills after the same share
of the time that a run takes which nobody kills.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from random import Random

from deltalake import DeltaTable
from tests.conftest import QUICK_JAVA, free_port
from tests.run.workbench import FILES, ROWS, Workbench, ended
from tests.run.zygote import Command

from stagehold.spark.server.server_record import read_state

# In two waves, so that most of a run is the start of its server, and the rest is not nothing.
SMALL = """\
pipeline: small
wave: 1ms
stages:
  numbers:
    job: toy_jobs:numbers
    source: {kind: parquet, path: "${lake}/raw/numbers/*.parquet", splits: 4}
    output: {type: blocking_persistent, table: marts.small}
"""
RESULTS = Path(__file__).with_name("results") / "kills.json"
ONE = (("client",), ("server",), ("keeper",))
VICTIMS = (*ONE, *combinations(("client", "server", "keeper"), 2))
SECONDS = 300
KILLED = -signal.SIGKILL
LOST = ("the server did not start", "its keeper ended")  # beneath whoever waited for it, which is what was killed
OVERTAKEN = ("Fenced", "LeaseLost", "was fenced", "newer attempt")  # by the other one of two that work on the same run
WRONG = ("taken by another program", "Traceback (most recent call last)")


@dataclass(frozen=True)
class Case:
    """``resumes`` are how many were started at once behind the kill, ``hit`` those that were there to be killed."""

    number: int
    victims: tuple[str, ...]
    resumes: int
    after: float
    hit: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    seconds: float = 0.0
    violation: str | None = None

    def __str__(self) -> str:
        word = "WRONG" if self.violation else "right"
        names = "+".join(one if one in self.hit else f"({one})" for one in self.victims)
        return f"{self.number} {names} after {self.after:.1f} s, {self.resumes} at once: {word} {self.codes}"


def main() -> int:
    asked = _arguments()
    cases: list[Case] = []
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        for case in kills(Path(folder), asked.seed, asked.each):
            cases.append(case)
            print(case, flush=True)
            if asked.results:
                _write(Path(asked.results), asked.seed, cases)
    wrong = [case for case in cases if case.violation]
    print(f"{len(cases)} kills, seed {asked.seed}: {_counts(cases)}; {len(wrong)} wrong")
    for case in wrong:
        print(f"VIOLATION in case {case.number}: {case.violation}", file=sys.stderr)
    return 1 if wrong else 0


def kills(folder: Path, seed: int, each: int) -> Iterator[Case]:
    """Every kind of victim in turn, so that whoever ends it early has seen all."""
    bench = Workbench.make(folder, "")
    bench = Workbench(replace(bench.settings, spark_port=free_port(), spark_memory="1g", spark_java_options=QUICK_JAVA))
    Path(bench.settings.pipelines, "small.yaml").write_text(SMALL)
    random, whole = Random(seed), _seconds_of_a_run(bench)
    for number in range(each * len(VICTIMS)):
        victims = VICTIMS[number % len(VICTIMS)]
        yield _carried_out(Case(number, victims, 1 + number // len(VICTIMS) % 2, random.random() * whole), bench)


def _seconds_of_a_run(bench: Workbench) -> float:
    """From the start of its server to its end."""
    begun = time.monotonic()
    first = ended(_resume("unharmed", bench), SECONDS)
    assert first.code == 0, first.err
    return time.monotonic() - begun


def _carried_out(case: Case, bench: Workbench) -> Case:
    begun = time.monotonic()
    interval = f"kill-{case.number}"
    client = _resume(interval, bench)
    _await_end(client, case.after)
    hit = tuple(name for name, pid in _pids(client, bench).items() if name in case.victims and _kill(pid))
    workers = [client, *(_resume(interval, bench) for _ in range(case.resumes))]
    ends = [ended(worker, SECONDS) for worker in workers]
    allowed = (*OVERTAKEN, *LOST) if hit else OVERTAKEN
    violation = next((one.err for one in ends if _is_wrong(one.code, one.err, allowed)), None)
    if violation is None and all(one.code for one in ends):  # whose server was killed may have gone on before them
        violation = "nobody came to an end: " + "\nand another said: ".join(one.err for one in ends)
    if violation is None:
        violation = _wrong_at_the_end(interval, bench)
    codes = tuple(one.code for one in ends)
    return replace(case, hit=hit, codes=codes, seconds=round(time.monotonic() - begun, 1), violation=violation)


def _resume(interval: str, bench: Workbench) -> Command:
    """Of a run that may have been killed before it was one; `run` with its id does what `resume` does then, too."""
    return bench.command("run", "small", "--interval", interval, "--run-id", interval)


def _await_end(client: Command, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while client.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


def _pids(client: Command, bench: Workbench) -> Mapping[str, int]:
    """Of those that are there; a keeper is, before its server is on record."""
    found = {"client": client.pid} if client.poll() is None else {}
    keeper = _keeper(bench)
    state = read_state(bench.settings)
    if keeper is not None:
        found["keeper"] = keeper
        if state is not None and state.keeper_pid == keeper:
            found["server"] = state.pid
    return found


def _keeper(bench: Workbench) -> int | None:
    home = f"STAGEHOLD_HOME={bench.settings.home_path}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"stagehold.spark.server.keeper" in words and home in (folder / "environ").read_bytes().split(b"\0"):
                return int(folder.name)
    return None


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _is_wrong(code: int, said: str, allowed: tuple[str, ...]) -> bool:
    if any(text in said for text in WRONG):
        return True
    return code not in (0, KILLED) and not any(text in said for text in allowed)


def _wrong_at_the_end(interval: str, bench: Workbench) -> str | None:
    """Once more, with nobody else there: all is done, and right."""
    last = ended(_resume(interval, bench), SECONDS)
    if last.code:
        return last.err
    table = DeltaTable(f"{bench.settings.lake_uri}/marts/small")
    published = sorted(table.to_pyarrow_table(filters=[("_interval", "=", interval)])["number"].to_pylist())
    return None if published == list(range(FILES * ROWS)) else f"published is {published}"


def _counts(cases: list[Case]) -> str:
    counts = Counter(("+".join(case.hit) or "nobody was there", case.resumes) for case in cases)
    return ", ".join(f"{who} with {resumes} at once {count}" for (who, resumes), count in sorted(counts.items()))


def _write(path: Path, seed: int, cases: list[Case]) -> None:
    facts = {"seed": seed, "at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": platform.platform()}
    facts |= {"cores": os.cpu_count(), "load": os.getloadavg(), "counts": _counts(cases)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts | {"cases": [asdict(case) for case in cases]}, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=40, help="how often each kind of victim is killed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", default=str(RESULTS), help="where the raw data goes; an empty text for nowhere")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
