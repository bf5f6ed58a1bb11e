"""The process that computes a region with a Spark application of its own, and outlives whoever submitted it:
`python -m stagehold.run.here.driver FOLDER`.

The application is a Spark Connect server that this process starts as `spark-submit` would, on the master of the
settings, when there is something to compute. So functions mean there what they mean on a server that all share.

The process has a lock from its first moment to its last, which was taken for it: whoever looks for it finds it. What it
says is in its log, and what came of it in a file beside that. A process that is killed leaves none.
"""

from __future__ import annotations

import fcntl
import logging
import pickle
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stagehold.lake.store.location import path_safe
from stagehold.model.records import Attempt
from stagehold.run.here.process_end import End, be_interruptible, end_of
from stagehold.run.here.region import run_region
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.stage.spark_engine import SparkEngine, SparkStageSession
from stagehold.run.stopping.cancel_watch import cancel_watch
from stagehold.secrets import masked
from stagehold.settings import Settings
from stagehold.spark.server.server import start_server
from stagehold.spark.server.server_record import using, write_private

KEPT_SECONDS = 7 * 24 * 3600.0
Order = tuple[RegionTask, Settings, Attempt | None]  # the attempt that waited for the inputs, if one did


@dataclass(frozen=True)
class DriverFolder:
    """What is on this machine of the driver of a task, for all tries of it."""

    path: Path

    @staticmethod
    def of(task: RegionTask, settings: Settings) -> DriverFolder:
        return DriverFolder(settings.home_path / "drivers" / path_safe(f"{task.request.run_id}.{task.subject}"))

    @property
    def log(self) -> Path:
        return self.path / "driver.log"

    @property
    def spark(self) -> Path:
        return self.path / "spark"

    def take(self) -> IO[str]:
        """The lock, for a driver that is about to be started.

        :raises BlockingIOError: one is at work.
        """
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = self._lock.open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise
        return lock

    @property
    def at_work(self) -> bool:
        """Whether a driver lives. To ask takes a shared lock for a moment: two who ask do not see each other."""
        try:
            with self._lock.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False

    def forget_others(self) -> None:
        """Delete what drivers of other tasks have left: of one that failed, once nobody will look at it any more; of
        another one, what its Java wrote as it ended.
        """
        for other in map(DriverFolder, self.path.parent.glob("*/")):
            done = not other.log.exists() or other.path.stat().st_mtime < time.time() - KEPT_SECONDS
            if done and other != self and not other.at_work:
                shutil.rmtree(other.path, ignore_errors=True)

    def give(self, order: Order) -> None:
        self._end.unlink(missing_ok=True)
        write_private(self._order, pickle.dumps(order))

    def order(self) -> Order:
        found: Order = pickle.loads(self._order.read_bytes())  # noqa: S301 - only we can write it
        return found

    def keep(self, end: End) -> None:
        write_private(self._end, pickle.dumps(end))

    def end(self) -> End | None:
        """What came of the driver; None of one that was killed."""
        try:
            found: End = pickle.loads(self._end.read_bytes())  # noqa: S301 - only we can write it
        except FileNotFoundError:
            return None
        return found

    @property
    def _lock(self) -> Path:
        return self.path / "at-work"

    @property
    def _order(self) -> Path:
        return self.path / "order"

    @property
    def _end(self) -> Path:
        return self.path / "end"


class ApplicationEngine(SparkEngine):
    """Starts the application when the first session is opened, so none for a region that is only reused."""

    @contextmanager
    def open(self, task: RegionTask, attempt: Attempt, died: Sequence[Attempt]) -> Iterator[SparkStageSession]:
        start_server(self._settings)
        with super().open(task, attempt, died) as session:
            self._progress(f"{task.subject} is computed by Spark application {session.application}")
            yield session


def drive(folder: DriverFolder) -> None:
    """Make the attempts that the folder's order asks for, and keep there what came of them. The application ends with
    this process; if that is killed, it is kept for a while for the next one.
    """
    task, settings, waiting = folder.order()

    def attempts() -> RegionOutcome:
        watch = cancel_watch(task.request.run_id, task.pipeline.cancellation, settings, by_any=True)
        with watch, using(settings, f"the driver of {task.subject}"):
            return run_region(task, settings, _say, waiting, ApplicationEngine)

    folder.keep(end_of(task.subject, attempts))


def _say(line: str) -> None:
    print(masked(line), flush=True)


if __name__ == "__main__":
    be_interruptible()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
    drive(DriverFolder(Path(sys.argv[1])))
