"""One process's way to the ledger's database."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, make_url
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import ArgumentError, DatabaseError, InterfaceError, OperationalError
from sqlalchemy.pool import NullPool, QueuePool

from stagehold.errors import InvalidSetting, LedgerCrowded, LedgerUnavailable, StorageProblem
from stagehold.model.records import Fact
from stagehold.model.states import RunStatusChange

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

Redact = Callable[[str], str]
Chronicle = Callable[[Sequence[Fact]], None]  # keeps facts where they outlive this database
Listen = Callable[[RunStatusChange], None]  # is told what a run has become, and raises nothing
LOCK_SECONDS = 10.0
ASLEEP_LOCKS = 9  # no step within a transaction takes longer than so many locks; tries of a bucket take a minute
PATIENCE_LOCKS = 9  # as long as others get on: SQLite's lock has no queue, so who came later may have it before
POLL_SECONDS = 0.2
_PROBLEMS = {
    "25006": StorageProblem.DENIED,  # read_only_sql_transaction
    "42501": StorageProblem.DENIED,  # insufficient_privilege
    "53100": StorageProblem.FULL,  # disk_full
    "58030": StorageProblem.BROKEN,  # io_error
    "SQLITE_FULL": StorageProblem.FULL,
    "SQLITE_READONLY": StorageProblem.DENIED,
    "SQLITE_CANTOPEN": StorageProblem.DENIED,
    "SQLITE_PERM": StorageProblem.DENIED,
    "SQLITE_IOERR": StorageProblem.BROKEN,
    "SQLITE_IOERR_SHMSIZE": StorageProblem.FULL,  # no room for the index of its log
}
_WRITES = "stagehold_writes"
_writing = set[tuple[int, int]]()  # process and thread of each that changes a ledger now
_SEARCH_PATH = re.compile(r"-c\s*search_path=(\S*)")
_ALLOWED = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"


def keep_nowhere(facts: Sequence[Fact]) -> None:
    """Keeps no chronicle: for who only reads, and for a ledger whose loss nobody minds."""


def tell_nobody(change: RunStatusChange) -> None:
    """Tells no listener: for a ledger of whose runs nobody is told."""


class Database:
    """Transactions on the ledger. Connects at the first one, so making it costs nothing and cannot fail for an absent
    server.

    A forked child may go on using it: engines are per process. Forking while another thread of the parent is inside a
    transaction is not supported, since SQLite keeps its file locks per process; nothing of ours does that.

    :param redact: takes out of a text what must not be stored; all free text passes it on its way in.
    :param chronicle: is given the facts of each transaction before it is committed, so that it never knows less. It
      may know more: of a transaction whose commit failed.
    :param listen: is told of each change of a run's state after it is committed. Who dies between the two tells nobody.
    :param lock_seconds: how long a transaction waits for another one before it gives up.
    """

    def __init__(
        self,
        url: str,
        redact: Redact = str,
        chronicle: Chronicle = keep_nowhere,
        listen: Listen = tell_nobody,
        *,
        lock_seconds: float = LOCK_SECONDS,
    ) -> None:
        self.url, self._lock_seconds = _parse(url), lock_seconds
        self.redact, self._chronicle, self._listen = redact, chronicle, listen
        self._joined = threading.local()
        self._pooled = self._patient = False

    @property
    def name(self) -> str:
        """The address without the password."""
        return self.url.render_as_string(hide_password=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that changes nothing and, on SQLite, waits for no writer."""
        with self._joining() or self._begun(writes=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that takes SQLite's write lock at once: it can wait for it here, but never lose it half-way."""
        with self._joining() or self._chronicled() as connection:
            yield connection

    def tell(self, *facts: Fact) -> None:
        """What the transaction under way of this thread has written, for the chronicle."""
        self._joined.facts.extend(facts)

    def announce(self, *changes: RunStatusChange) -> None:
        """What the transaction under way of this thread makes of runs, for the listeners, once it is committed."""
        self._joined.changes.extend(changes)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make one transaction of this thread's inside the block: others see all that it wrote, or nothing.
        Blocks do not nest.
        """
        with self.writing() as connection:
            self._joined.connection = connection
            try:
                yield
            finally:
                del self._joined.connection

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """For who works for long: wait for a server that is started anew for as long as for a lock, and keep a SQLite
        file's connections open from one transaction to the next, until the block ends.

        To open one takes longer than most transactions, and so does closing the last one, which moves the log into the
        file. A child that is forked inside the block would take the connections' file locks for its own, so nothing may
        fork there.
        """
        self._pooled = self.url.get_backend_name() == "sqlite"
        self._patient = not self._pooled
        try:
            yield
        finally:
            self.close()
            self._pooled = self._patient = False

    def insert(self, table: Table) -> sqlite.Insert | postgresql.Insert:
        """An INSERT that may say what happens on conflict, which standard SQL cannot."""
        if self.url.get_backend_name() == "sqlite":
            return sqlite.insert(table)
        from sqlalchemy.dialects import postgresql  # as large as the rest of a start with SQLite

        return postgresql.insert(table)

    def close(self) -> None:
        self._engine().dispose()

    @contextmanager
    def _chronicled(self) -> Iterator[Connection]:
        facts, changes = list[Fact](), list[RunStatusChange]()
        self._joined.facts, self._joined.changes = facts, changes
        with self._begun(writes=True) as connection:
            yield connection
            if facts:
                self._chronicle(facts)
        for change in changes:
            self._listen(change)

    def _joining(self) -> AbstractContextManager[Connection] | None:
        connection = getattr(self._joined, "connection", None)
        return nullcontext(connection) if connection is not None else None

    @contextmanager
    def _begun(self, *, writes: bool) -> Iterator[Connection]:
        engine = self._engine().execution_options(**{_WRITES: True}) if writes else self._engine()
        with (
            _marked() if writes else nullcontext(),
            self._outages_named(),
            self._connect(engine) as connection,
            connection.begin(),
        ):
            yield connection

    def _connect(self, engine: Engine) -> Connection:
        """Nothing has been asked of the server yet, so trying again does nothing twice."""
        deadline = time.monotonic() + self._lock_seconds
        while True:
            try:
                return engine.connect()
            except OperationalError:
                if not self._patient or time.monotonic() > deadline:
                    raise
            time.sleep(POLL_SECONDS)

    def _engine(self) -> Engine:
        return _engine_of(os.getpid(), self.url, self._lock_seconds, pooled=self._pooled)

    @contextmanager
    def _outages_named(self) -> Iterator[None]:
        try:
            yield
        except _PassedOver as passed:
            raise LedgerCrowded(self.name, PATIENCE_LOCKS * self._lock_seconds) from passed
        except (DatabaseError, InterfaceError) as error:
            problem = storage_problem(error.orig)
            # DatabaseError itself is SQLite's "file is not a database"; its other subclasses are mistakes of ours, or
            # PostgreSQL's of a database that takes no writing.
            outage = isinstance(error, OperationalError | InterfaceError) or type(error) is DatabaseError
            if not outage and problem is None:
                raise
            self.close()  # what is wrong with a connection may not be wrong with the next one
            reason = " ".join(str(error.orig).split()).rstrip(".")
            raise LedgerUnavailable(self.name, reason, problem) from error


def other_thread_writes() -> bool:
    """Whether another thread of this process is changing a ledger, so that everybody may have to wait for it."""
    process, own = os.getpid(), threading.get_ident()
    return any(writer == process and thread != own for writer, thread in tuple(_writing))


@contextmanager
def _marked() -> Iterator[None]:
    writer = os.getpid(), threading.get_ident()
    _writing.add(writer)
    try:
        yield
    finally:
        _writing.discard(writer)


def storage_problem(error: BaseException | None) -> StorageProblem | None:
    """The problem by PostgreSQL's or SQLite's code. SQLite's longer codes that are not named count as their kind."""
    code = getattr(error, "pgcode", None) or getattr(error, "sqlite_errorname", None) or ""
    return _PROBLEMS.get(code) or _PROBLEMS.get("_".join(code.split("_")[:2]))


def _parse(text: str) -> URL:
    try:
        url = _with_our_driver(make_url(text))
        _require_driver(url)
    except (ArgumentError, ValueError, ImportError) as error:
        raise _refused(text) from error
    if not _names_a_shared_database(url):
        raise _refused(text)
    return url


def _require_driver(url: URL) -> None:
    dialect = url.get_dialect()
    if url.get_backend_name() == "sqlite":
        return
    from stagehold.extras import Extra, brought_by

    with brought_by(Extra.POSTGRES):
        dialect.import_dbapi()


def _with_our_driver(url: URL) -> URL:
    """The URL with the driver that the extra installs, psycopg2. Without a driver's name SQLAlchemy 2.0 means psycopg2,
    but 2.1 means psycopg 3.
    """
    return url.set(drivername="postgresql+psycopg2") if url.drivername == "postgresql" else url


def _refused(text: str) -> InvalidSetting:
    # What cannot be parsed may hold a password all the same.
    return InvalidSetting("STAGEHOLD_LEDGER", re.sub(r"(://[^:@]*:).*@", r"\1***@", text), _ALLOWED)


def _names_a_shared_database(url: URL) -> bool:
    if url.get_backend_name() == "sqlite":
        return bool(url.database) and not str(url.database).startswith((":memory:", "file:"))
    return url.get_backend_name() == "postgresql"


@cache
def _engine_of(process: int, url: URL, lock_seconds: float, *, pooled: bool) -> Engine:  # noqa: ARG001
    """The engine that all users of the address share in a process, so that it compiles each statement once.

    The parent's stays referenced after a fork, so that a child never closes the parent's connections. Two threads may
    both make one, which connects to nothing, and one of the two is kept.
    """
    if url.get_backend_name() == "sqlite":
        return _create_sqlite(url, lock_seconds, pooled=pooled)
    return _create_postgresql(url, lock_seconds)


def _create_sqlite(url: URL, lock_seconds: float, *, pooled: bool) -> Engine:
    # A connection that is open during a fork takes the file's locks with it, unseen by SQLite. Without a pool none
    # stays open.
    engine = create_engine(url, poolclass=QueuePool if pooled else NullPool, connect_args={"timeout": lock_seconds})
    event.listen(engine, "connect", _let_us_begin)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _let_us_begin(connection: Any, _record: Any) -> None:
    """Keep Python's driver from opening transactions by itself, which it does too late and never IMMEDIATE."""
    connection.isolation_level = None


class _PassedOver(Exception):
    """Others have had the lock of a SQLite file in turns, and never who raises this."""


def _begin_sqlite(connection: Connection) -> None:
    if connection.get_execution_options().get(_WRITES):
        _begin_writing(connection)
    else:
        connection.exec_driver_sql("BEGIN")


def _begin_writing(connection: Connection) -> None:
    """Waits again as long as others get on with it; a lock that one has for all that time is an outage at once."""
    for _ in range(PATIENCE_LOCKS):
        commits = connection.exec_driver_sql("PRAGMA data_version").scalar()
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        except OperationalError as error:
            if getattr(error.orig, "sqlite_errorname", "") != "SQLITE_BUSY":
                raise
            if connection.exec_driver_sql("PRAGMA data_version").scalar() == commits:
                raise
        else:
            return
    raise _PassedOver


def _create_postgresql(url: URL, lock_seconds: float) -> Engine:
    # A server that vanished without a word is noticed after about the time that a lock may take.
    seconds, milliseconds = max(1, int(lock_seconds)), int(lock_seconds * 1000)
    patience = {"connect_timeout": seconds, "keepalives_idle": seconds, "tcp_user_timeout": max(1000, milliseconds)}
    connected, path = _without_search_path(url)
    engine = create_engine(connected, pool_pre_ping=True, connect_args=patience)
    given = {"lock_timeout": f"{milliseconds}ms", **({"search_path": path} if path else {})}
    # And so does the server with a client that was frozen, or whose host is gone, while others wait for its rows.
    asleep = {"idle_in_transaction_session_timeout": f"{ASLEEP_LOCKS * milliseconds}ms"}
    event.listen(engine, "begin", partial(_set_for_transaction, given, asleep))
    return engine


def _set_for_transaction(given: Mapping[str, str], of_writers: Mapping[str, str], connection: Connection) -> None:
    """A pooler between us and the server may hand the session to somebody else after the transaction."""
    wanted = {**given, **of_writers} if connection.get_execution_options().get(_WRITES) else dict(given)
    settings = ", ".join(f"set_config('{name}', %({name})s, true)" for name in wanted)
    connection.exec_driver_sql(f"SELECT {settings}", wanted)


def _without_search_path(url: URL) -> tuple[URL, str | None]:
    """The address without a search path among its options, and that: a pooler refuses to connect with it. The last of
    two counts.
    """
    given = url.query.get("options", ())
    options = given if isinstance(given, str) else " ".join(given)
    paths, others = _SEARCH_PATH.findall(options), _SEARCH_PATH.sub("", options).strip()
    bare = url.difference_update_query(["options"])
    return (bare.update_query_dict({"options": others}) if others else bare), (paths[-1] if paths else None)
