"""Sandboxes: which there are, what they read, and how one is deleted."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import make_url

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import ProductionMissing, UnknownName
from stagehold.lake.store.files import FileFacts, files_at
from stagehold.ledger.database.migrate import drop_schema, sandboxes_with_schema
from stagehold.settings import SANDBOX_NAME, Settings


@dataclass(frozen=True)
class Sandbox:
    """What a sandbox has of its own; ``changed_at`` is None if nothing has been written yet."""

    name: str
    lake: str
    ledger: str
    bytes: int
    changed_at: datetime | None


def require_production(settings: Settings) -> None:
    """Check that there is a lake for a sandbox to read.

    :raises ProductionMissing: these are the settings of a sandbox, and production has no lake.
    """
    lake = settings.production.lake_uri
    if settings.sandbox and not files_at(lake).folders(""):
        raise ProductionMissing(settings.sandbox, lake)


def sandboxes(settings: Settings) -> tuple[Sandbox, ...]:
    """All sandboxes of this home, by name."""
    production = settings.production
    names = {
        *files_at(production.sandboxes_uri).folders(""),
        *files_at(str(production.sandboxes_folder)).folders(""),
        *sandboxes_with_schema(production.ledger_url),
    }
    return tuple(_described(production.in_sandbox(name)) for name in sorted(names) if SANDBOX_NAME.fullmatch(name))


def remove_sandbox(name: str, settings: Settings) -> Sandbox:
    """Delete its lake and its ledger, and nothing else. If the process dies in the middle, it may be done again.

    :raises UnknownName: there is none of that name.
    :raises LeaseHeld: somebody works in it. A run that begins after that finds nothing to go on with.
    """
    found = {sandbox.name: sandbox for sandbox in sandboxes(settings)}
    if name not in found:
        raise UnknownName("sandbox", name, tuple(found))
    own = settings.production.in_sandbox(name)
    with open_ledger(own) as ledger:
        ledger.leases.require_none()
    drop_schema(own.ledger_url)
    files_at(own.sandboxes_uri).delete(name)
    shutil.rmtree(own.sandboxes_folder / name, ignore_errors=True)
    return found[name]


def _described(own: Settings) -> Sandbox:
    files = _files(own)
    return Sandbox(
        name=own.sandbox,
        lake=own.lake_uri,
        ledger=make_url(own.ledger_url).set(query={}).render_as_string(hide_password=True),
        bytes=sum(file.bytes for file in files),
        changed_at=max((file.modified.astimezone(UTC) for file in files), default=None),
    )


def _files(own: Settings) -> list[FileFacts]:
    """Files of its lake, and of a ledger on this machine."""
    places = dict.fromkeys((f"{own.sandboxes_uri}/{own.sandbox}", str(own.sandboxes_folder / own.sandbox)))
    return [file for place in places for file in files_at(place).facts("").values()]
