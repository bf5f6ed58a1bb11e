"""The ledger: one object per table family on one database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select

from stagehold.ledger.acceptances import Acceptances, Pins, Waivers
from stagehold.ledger.across.intervals import GateTallies, Intervals, Recoveries
from stagehold.ledger.across.pipelines import CheckpointHistory, PipelinesAtOnce
from stagehold.ledger.across.run_outcomes import RunOutcomes
from stagehold.ledger.across.sizes import Sizes
from stagehold.ledger.attempts import Attempts
from stagehold.ledger.checkpoints import Acknowledgements, Checkpoints, SavepointRequests
from stagehold.ledger.database.column_types import DatabaseTime
from stagehold.ledger.database.engine import Chronicle, Database, Listen, Redact, keep_nowhere, tell_nobody
from stagehold.ledger.database.migrate import migrate, schema_version
from stagehold.ledger.database.rows import records, row_of
from stagehold.ledger.database.schema import (
    acceptances,
    events,
    gate_results,
    leases,
    partitions,
    pins,
    positions,
    restores,
    transitions,
    waivers,
)
from stagehold.ledger.events import Events, Transitions
from stagehold.ledger.gate_verdicts import GateResults, VerdictsOnStages
from stagehold.ledger.history import History
from stagehold.ledger.kinds import KINDS, FactKind
from stagehold.ledger.leases import Leases
from stagehold.ledger.partitions import PartitionCounts, Partitions
from stagehold.ledger.positions import Positions
from stagehold.ledger.restores import Backfills, Restores
from stagehold.ledger.runs import Runs
from stagehold.model.records import Fact

Revision = tuple[int, ...]
_APPENDED = (partitions, transitions, gate_results, events, positions, acceptances, waivers, pins)


class Ledger:
    """What happened, and who may work on what. Every method is one transaction of its own, unless calls are put
    together.

    Threads may share a ledger, and a forked child may use its parent's. An outage of the database raises
    LedgerUnavailable.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.runs = Runs(database)
        self.attempts = Attempts(database)
        self.transitions = Transitions(database)
        self.leases = Leases(database)
        self.partitions = Partitions(database)
        self.partition_counts = PartitionCounts(database)
        self.positions = Positions(database)
        self.gates = GateResults(database)
        self.stage_verdicts = VerdictsOnStages(database)
        self.events = Events(database)
        self.acceptances = Acceptances(database)
        self.waivers = Waivers(database)
        self.pins = Pins(database)
        self.restores = Restores(database)
        self.backfills = Backfills(database)
        self.checkpoints = Checkpoints(database)
        self.acknowledgements = Acknowledgements(database)
        self.savepoint_requests = SavepointRequests(database)
        self.checkpoint_history = CheckpointHistory(database)
        self.gate_tallies = GateTallies(database)
        self.pipelines = PipelinesAtOnce(database)
        self.sizes = Sizes(database)
        self.facts = Facts(database)
        self.history = History(database)
        self.intervals = Intervals(database)
        self.recoveries = Recoveries(database)
        self.run_outcomes = RunOutcomes(database)

    @classmethod
    def open(
        cls, url: str, redact: Redact = str, chronicle: Chronicle = keep_nowhere, listen: Listen = tell_nobody
    ) -> Ledger:
        """Connect to the ledger at a SQLAlchemy ``url``; it is made, or migrated to this code's schema, first.

        :param redact: takes secrets out of the texts of errors, events, reasons and observations before they are
            stored.
        :param chronicle: is given facts that must outlive the ledger before the ledger itself has them.
        :param listen: is told of each change of a run's state when others can see it.
        """
        database = Database(url, redact, chronicle, listen)
        migrate(database)
        return cls(database)

    @property
    def name(self) -> str:
        """The address without the password."""
        return self._database.name

    @property
    def back_end(self) -> str:
        """The kind of its database: sqlite or postgresql."""
        return self._database.url.get_backend_name()

    @property
    def schema_version(self) -> str | None:
        """The version of the database, which newer code may have migrated since it was opened."""
        return schema_version(self._database)

    @property
    def revision(self) -> Revision:
        """How far the ledger has got; a value that changes after anything was written that a plan or a page shows, of
        any pipeline. So results can be kept until then. Forgetting may leave it as it is.
        """
        newest = (select(func.coalesce(func.max(table.c.id), 0)).scalar_subquery() for table in _APPENDED)
        asked = select(func.count()).select_from(restores).scalar_subquery()
        with self._database.reading() as connection:
            return tuple(connection.execute(select(*newest, asked)).one())

    def kept_open(self) -> AbstractContextManager[None]:
        """Make transactions cheaper inside the block, in which nothing may fork."""
        return self._database.kept_open()

    def together(self) -> AbstractContextManager[None]:
        """Make one transaction of all calls that this thread makes inside the block: they become visible together."""
        return self._database.together()

    def close(self) -> None:
        """Drop this process's connections; the next use makes new ones."""
        self._database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


Choose = Callable[[Sequence[Fact]], Sequence[Fact]]  # given all facts
REBUILDER = "reconcile"  # holds a lease whose holder is no longer known


class Facts:
    """Everything that the ledger decides by, read as a whole and written back to rebuild a ledger: all tables but those
    of events and transitions, which are for people.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> tuple[Fact, ...]:
        """Every fact, each table in the order in which it was written."""
        with self._database.reading() as connection:
            return tuple(fact for kind in KINDS for fact in _read(connection, kind))

    def epochs(self) -> Mapping[str, int]:
        """The newest epoch of every lease, by its name."""
        with self._database.reading() as connection:
            return {row.name: row.epoch for row in connection.execute(select(leases.c.name, leases.c.epoch))}

    def mend(self, choose: Choose) -> tuple[Fact, ...]:
        """Write the facts that ``choose`` picks from all facts that are here, and return them. They bypass the state
        machines: they replace the row with their key, or are appended where rows are numbered.

        Nobody writes in between, so no row becomes newer without being known. They are not told to the chronicle, where
        they come from.
        """
        with self._database.writing() as connection:
            _lock(connection)
            chosen = tuple(choose(tuple(fact for kind in KINDS for fact in _read(connection, kind))))
            for kind in KINDS:
                rows = [row_of(fact) for fact in chosen if type(fact) is kind.type]
                if not kind.appended:
                    self._replace(connection, kind.table, rows)
                elif rows:
                    connection.execute(insert(kind.table), rows)
        return chosen

    def raise_epochs(self, epochs: Mapping[str, int]) -> None:
        """Have the next holder of each lease get a higher epoch; a holder with a lower one is fenced now."""
        with self._database.writing() as connection:
            for name, epoch in epochs.items():
                row = {"name": name, "holder": REBUILDER, "epoch": epoch, "expires_at": DatabaseTime()}
                new = self._database.insert(leases).values(row)
                higher = {"holder": REBUILDER, "epoch": epoch, "expires_at": DatabaseTime()}
                connection.execute(
                    new.on_conflict_do_update(index_elements=["name"], set_=higher, where=leases.c.epoch < epoch)
                )

    def _replace(self, connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        keys = [column.name for column in table.primary_key]
        for row in rows:
            new = self._database.insert(table).values(row)
            changed = {name: value for name, value in row.items() if name not in keys}
            connection.execute(new.on_conflict_do_update(index_elements=keys, set_=changed))


def _lock(connection: Connection) -> None:
    """SQLite's write lock is the same for the whole file."""
    if connection.dialect.name == "postgresql":
        names = ", ".join(kind.table.name for kind in KINDS)
        connection.exec_driver_sql(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")


def _read(connection: Connection, kind: FactKind[Any]) -> tuple[Fact, ...]:
    order = [kind.table.c.id] if kind.appended else list(kind.table.primary_key)
    return records(connection, kind.type, select(kind.table).order_by(*order))
