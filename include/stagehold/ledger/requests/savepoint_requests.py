"""Requests for savepoints: who wants one, handed from whoever asks to whoever coordinates the run."""

from __future__ import annotations

from sqlalchemy import select, update

from stagehold.ledger.database.columns import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, read_one, record_of, row_of
from stagehold.ledger.database.schema import savepoint_requests
from stagehold.model.checkpoint_records import SavepointRequest


class SavepointRequests:
    """The `savepoint_requests` table. What was made of a request stands in the lake, so no lake keeps requests."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, request: SavepointRequest) -> SavepointRequest:
        """Keep the request and give it as it stands. One of that name that is not settled is the same one again; one
        that is makes room.
        """
        new = self._database.insert(savepoint_requests).values(row_of(request))
        anew = {name: new.excluded[name] for name in row_of(request) if name != "name"}
        settled = savepoint_requests.c.settled_at.is_not(None)
        with self._database.writing() as connection:
            connection.execute(new.on_conflict_do_update(index_elements=["name"], set_=anew, where=settled))
            query = select(savepoint_requests).where(savepoint_requests.c.name == request.name)
            return record_of(SavepointRequest, connection.execute(query).mappings().one())

    def get(self, name: str) -> SavepointRequest | None:
        query = select(savepoint_requests).where(savepoint_requests.c.name == name)
        return read_one(self._database, SavepointRequest, query)

    def open_of(self, run_id: str) -> tuple[SavepointRequest, ...]:
        """Those of a run that nobody has served yet, in the order in which they came."""
        columns = savepoint_requests.c
        query = select(savepoint_requests).where(columns.run_id == run_id, columns.settled_at.is_(None))
        return read_all(self._database, SavepointRequest, query.order_by(columns.requested_at, columns.name))

    def settle(self, name: str, failure: str | None = None) -> None:
        """It was served, or there is none and ``failure`` says why; the first word counts."""
        open_one = (savepoint_requests.c.name == name, savepoint_requests.c.settled_at.is_(None))
        told = failure and self._database.redact(failure)
        with self._database.writing() as connection:
            connection.execute(
                update(savepoint_requests).where(*open_one).values(settled_at=DatabaseTime(), failure=told)
            )
