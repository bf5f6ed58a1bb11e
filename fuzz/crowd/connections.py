"""How many connections a PostgreSQL server has, second by second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread

from sqlalchemy import Connection, create_engine, text

# A connection that is not idle has begun a transaction.
ASKED = text("""
    SELECT count(*), count(xact_start) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
""")
EVERY_SECONDS = 1.0


@dataclass
class Connections:
    """As counted last, but for the one that counts; and the most that there were."""

    open: int = 0
    in_transaction: int = 0
    most: int = 0

    def count(self, connection: Connection) -> None:
        self.open, self.in_transaction = connection.execute(ASKED).one()
        self.most = max(self.most, self.open)

    def __str__(self) -> str:
        return (
            f"{self.most} connections at most, {self.open} at the end, {self.in_transaction} of them in a transaction"
        )


@contextmanager
def counted(server: str) -> Iterator[Connections]:
    """Counts until the end of the block, and once more there."""
    found, over = Connections(), Event()
    engine = create_engine(server, isolation_level="AUTOCOMMIT")

    def count() -> None:
        with engine.connect() as connection:
            while not over.wait(EVERY_SECONDS):
                found.count(connection)
            found.count(connection)

    counting = Thread(target=count, daemon=True)
    counting.start()
    try:
        yield found
    finally:
        over.set()
        counting.join()
        engine.dispose()
