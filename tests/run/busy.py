"""A stage function that keeps Spark's Python workers busy until it is let go, and shows when it works."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.run.workbench import Workbench

# Replaces the toy's source function. It works for as long as the file `busy` is there.
JOB = """
@stage
def numbers(ctx: StageContext, source: DataFrame) -> DataFrame:
    def work(batches):
        import pathlib
        import time

        for batch in batches:
            while pathlib.Path("{folder}/busy").exists():
                pathlib.Path("{folder}/ticks").open("a").write(".")
                time.sleep(0.1)
            yield batch

    frame = source.select("number", (F.col("number") % 7).alias("colour"))
    return frame.mapInArrow(work, "number long, colour long")
"""


@dataclass(frozen=True)
class BusyJob:
    """``ticks`` grows ten times a second while the function works, wherever Spark runs it."""

    busy: Path
    ticks: Path

    @staticmethod
    def put_into(bench: Workbench, folder: Path) -> BusyJob:
        jobs = Path(bench.settings.project) / "toy_jobs.py"
        jobs.write_text(jobs.read_text() + JOB.replace("{folder}", str(folder)))
        (folder / "busy").touch()
        return BusyJob(folder / "busy", folder / "ticks")

    def works(self) -> bool:
        return self.ticks.exists() and self.ticks.stat().st_size > 10

    def worked_last(self) -> float:
        return self.ticks.stat().st_mtime

    def let_go(self) -> None:
        self.busy.unlink()


def until(condition: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.1)
