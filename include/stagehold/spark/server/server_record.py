"""The Spark server of a home on record: which process it is, and who uses it.

Each of its users holds a locked file, which the system unlocks when the process ends.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO
from uuid import uuid4

from stagehold.settings import Settings
from stagehold.spark.processes import ProcessIdentity


@dataclass(frozen=True)
class ServerState:
    """A server that was started; ``started``, in clock ticks, tells it from a later owner of its pid.

    It lives as long as its keeper: the process that waits for its last user to leave, or, if it is ``kept_up``, the
    supervisor.
    """

    pid: int
    started: int
    port: int
    token: str
    fingerprint: str
    started_at: str
    keeper_pid: int
    keeper_started: int
    kept_up: bool

    @property
    def keeper(self) -> ProcessIdentity:
        return ProcessIdentity(self.keeper_pid, self.keeper_started)

    @property
    def process(self) -> ProcessIdentity:
        return ProcessIdentity(self.pid, self.started)


def server_folder(settings: Settings) -> Path:
    """The server's working directory, so that nothing it writes by default lands elsewhere."""
    return Path(settings.spark_folder) if settings.spark_folder else settings.home_path / "spark"


def server_log(settings: Settings) -> Path:
    folder = server_folder(settings) if settings.spark_folder else settings.home_path / "logs"
    return folder / "spark.log"


def python_stacks(settings: Settings) -> Path:
    """Where Python workers write what they are doing."""
    return server_folder(settings) / "python-stacks.txt"


def read_state(settings: Settings) -> ServerState | None:
    try:
        return ServerState(**json.loads(_state_file(settings).read_text()))
    except (FileNotFoundError, ValueError, TypeError):  # none, torn, or written by another version: as good as none
        return None


def write_state(settings: Settings, state: ServerState) -> None:
    """Whole or not at all, and readable by its owner only: the token is in it."""
    write_private(_state_file(settings), json.dumps(asdict(state), indent=2))


def remove_state(settings: Settings) -> None:
    _state_file(settings).unlink(missing_ok=True)


def _state_file(settings: Settings) -> Path:
    return server_folder(settings) / "server.json"


def write_private(file: Path, content: str | bytes) -> None:
    """Replace ``file`` in one step by one that only its owner can read."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        output.write(content.encode() if isinstance(content, str) else content)
    draft.replace(file)


@dataclass(frozen=True)
class ServerUser:
    """A living process that uses the server. ``purpose`` is for people."""

    pid: int
    purpose: str
    since: str

    def __str__(self) -> str:
        return f"{self.purpose} (process {self.pid})"


class _Use:
    """This process's file, and the number of blocks that it is open for."""

    def __init__(self, file: IO[str], path: Path) -> None:
        self.file, self.path, self.blocks = file, path, 0


# By folder, since tests of one process have several homes.
_uses: dict[Path, _Use] = {}


def begin_use(settings: Settings, purpose: str) -> None:
    """Count this process among the users until it ends; once is enough."""
    folder = _folder(settings)
    if folder not in _uses:
        _uses[folder] = _locked_file(
            folder, ServerUser(os.getpid(), purpose, datetime.now(UTC).isoformat(timespec="seconds"))
        )
        forget_dead_users(settings)


@contextmanager
def using(settings: Settings, purpose: str) -> Iterator[None]:
    """Count this process among the users for the length of the outermost block."""
    begin_use(settings, purpose)
    folder = _folder(settings)
    use = _uses[folder]
    use.blocks += 1
    try:
        yield
    finally:
        use.blocks -= 1
        if not use.blocks:
            del _uses[folder]
            forget_dead_users(settings)
            use.path.unlink(missing_ok=True)
            use.file.close()


def server_users(settings: Settings) -> tuple[ServerUser, ...]:
    """The users of the server now."""
    found = (_user_of(path) for path in _files(settings))
    return tuple(user for user in found if user)


def died_in_use(settings: Settings) -> bool:
    """Whether a user has ended without leaving, and nobody has come since."""
    return any(path.exists() and not _user_of(path) for path in _files(settings))


def forget_dead_users(settings: Settings) -> None:
    for path in _files(settings):
        if not _user_of(path):
            path.unlink(missing_ok=True)


def _locked_file(folder: Path, user: ServerUser) -> _Use:
    """A file of this user's, which is locked before it has its name, so that nobody ever takes it for left behind."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{user.pid}-{uuid4()}.draft"
    file = draft.open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    json.dump(asdict(user), file)
    file.flush()
    return _Use(file, draft.rename(draft.with_suffix(".lock")))


def _user_of(path: Path) -> ServerUser | None:
    """Whose file it is; None if nobody holds it. A shared lock is enough to ask, so two processes that ask at once do
    not take each other for users.
    """
    try:
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return ServerUser(**json.load(file))
    except FileNotFoundError:
        pass
    return None


def _files(settings: Settings) -> list[Path]:
    return sorted(_folder(settings).glob("*.lock"))


def _folder(settings: Settings) -> Path:
    return server_folder(settings) / "users"
