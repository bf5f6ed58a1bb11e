"""Starts `stagehold` commands as forks of one process that has imported everything slow.

A command begins in a few milliseconds instead of seconds, and is otherwise what a user's is: a process of its own with
its own environment, files, signals and exit code. The zygote itself opens no connection and no thread, so a fork has
nothing to break.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

POLL_SECONDS = 0.01
SLOW_TO_IMPORT = (
    "alembic",
    "deltalake",
    "great_expectations",
    "pandas",
    "pyarrow.parquet",
    "pyspark.sql.connect.session",
    "stagehold.cli.main",
    "stagehold.run.here.local_run",
)


@dataclass
class Command:
    """One `stagehold` command that was started."""

    pid: int
    files: Path  # without their suffixes; not named by the pid, which the machine gives out again

    def poll(self) -> int | None:
        """Its exit code as subprocess gives it, minus the signal that killed it; None while it runs."""
        try:
            return int(self.files.with_suffix(".code").read_text())
        except FileNotFoundError:
            return None

    def wait(self, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        while (code := self.poll()) is None:
            assert time.monotonic() < deadline, f"still runs after {seconds} s: {self.err()}"
            time.sleep(POLL_SECONDS)
        return code

    def await_frozen(self, seconds: float = 120) -> None:
        """Until a `freeze` fault has stopped it."""
        assert self.stops(seconds), self.err()

    def stops(self, seconds: float) -> bool:
        """Wait until a `freeze` fault has stopped it; False if it ends before."""
        deadline = time.monotonic() + seconds
        while self.poll() is None:
            if self._state() == "T":
                return True
            assert time.monotonic() < deadline, f"neither frozen nor ended after {seconds} s: {self.err()}"
            time.sleep(POLL_SECONDS)
        return False

    def _state(self) -> str:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:  # it has been reaped, and its exit code is being written
            return ""

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def out(self) -> str:
        return self.files.with_suffix(".out").read_text()

    def err(self) -> str:
        """What it has said by now; nothing before it has begun."""
        path = self.files.with_suffix(".err")
        return path.read_text() if path.exists() else ""


@dataclass
class Zygote:
    """Use as a context: its end kills the zygote, not the commands."""

    _folder: TemporaryDirectory[str] = field(default_factory=TemporaryDirectory)
    _process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Zygote:
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._folder.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def start(self, words: Sequence[str], environment: Mapping[str, str]) -> Command:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"words": list(words), "environment": dict(environment)}) + "\n")
        self._process.stdin.flush()
        pid, number = self._process.stdout.readline().split()
        return Command(int(pid), Path(self._folder.name) / number)


def serve(folder: Path) -> None:
    """Fork for every line that comes in, and say the pid."""
    sys.path.remove(str(Path(__file__).parent))
    for name in SLOW_TO_IMPORT:
        __import__(name)
    running: dict[int, Path] = {}
    signal.signal(signal.SIGCHLD, lambda *_: reap(running))
    for number, line in enumerate(sys.stdin):
        asked, files = json.loads(line), folder / str(number)
        # Whoever ends at once is reaped after it is known, not before.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = os.fork()
        if pid == 0:
            become(asked["words"], asked["environment"], files)
        running[pid] = files
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        print(pid, number, flush=True)


def become(words: Sequence[str], environment: Mapping[str, str], files: Path) -> None:
    """Run the command in this process and end it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    for number, kind in ((1, "out"), (2, "err")):
        file = os.open(files.with_suffix(f".{kind}"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(environment)
    code = 1
    try:
        from stagehold.cli.main import app

        app(list(words), prog_name="stagehold")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - whatever a command dies of is in its output
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def reap(running: dict[int, Path]) -> None:
    """Leave the exit code of every command that has ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        files = running.pop(pid)
        files.with_suffix(".unfinished").write_text(str(os.waitstatus_to_exitcode(status)))
        files.with_suffix(".unfinished").rename(files.with_suffix(".code"))


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
