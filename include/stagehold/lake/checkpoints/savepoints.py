"""Savepoints by name: which there are, whose they are, and where their manifests lie.

    LAKE/savepoints/NAME.json      there is a savepoint from the moment this file is made, until it is deleted
    LAKE/savepoints/NAME/          a lake of its own with all that an imported one consists of

The ledger is not needed to find one. A manifest of a savepoint that was made here lies among the checkpoints of its
run, with which it shares parts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from stagehold.errors import BadSavepointName, SavepointUnreadable, UnknownName
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.commit.delta_log import AT_ONCE
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import lake_root

FOLDER = "savepoints"
ENDING = ".json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
FORMAT, VERSION = "stagehold-savepoint", 1


@dataclass(frozen=True)
class Savepoint:
    """What its user called it and why, and the checkpoint that it is. ``root`` is the lake below this lake that was
    imported with it; empty if the savepoint was made here.
    """

    name: str
    pipeline: str
    interval: str
    run_id: str
    number: int
    created_by: str
    reason: str
    created_at: datetime
    root: str = ""

    @property
    def run(self) -> CheckpointedRun:
        return CheckpointedRun(self.pipeline, self.interval, self.run_id)


class Savepoints:
    """The savepoints of a lake."""

    def __init__(self, lake_uri: str) -> None:
        self._lake = lake_root(lake_uri)
        self._files = files_at(f"{self._lake}/{FOLDER}")

    def create(self, savepoint: Savepoint) -> bool:
        """Make the savepoint. Gives False if another savepoint has the name; the same savepoint may be made twice."""
        content = _encode(savepoint)
        path = f"{savepoint.name}{ENDING}"
        return self._files.create(path, content) or self._files.read(path) == content

    def get(self, name: str) -> Savepoint:
        """
        :raises UnknownName: there is none of that name.
        :raises SavepointUnreadable: nobody can say whose it is.
        """
        found = self.find(name)
        if found is None:
            raise UnknownName("savepoint", name, [savepoint.name for savepoint in self.all()])
        return found

    def find(self, name: str) -> Savepoint | None:
        """:raises SavepointUnreadable: nobody can say whose it is."""
        path = f"{checked_name(name)}{ENDING}"
        try:
            return _decode(self._files.read(path), f"{self._lake}/{FOLDER}/{path}")
        except FileNotFoundError:
            return None

    def all(self) -> tuple[Savepoint, ...]:
        """The newest first.

        :raises SavepointUnreadable: nobody can say what one of them needs.
        """
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = [savepoint for savepoint in pool.map(self.find, self._names()) if savepoint]
        return tuple(sorted(found, key=lambda savepoint: savepoint.created_at, reverse=True))

    def remove(self, savepoint: Savepoint) -> None:
        """Take the savepoint's name away. What the savepoint consists of stays."""
        self._files.remove([f"{savepoint.name}{ENDING}"])

    def delete_own(self, savepoint: Savepoint) -> None:
        """Delete the lake that was imported with it."""
        self._files.delete(savepoint.name)

    def stored(self, savepoint: Savepoint) -> StoredCheckpoints:
        """Where its manifest is, as checkpoint ``number``."""
        lake = f"{self._lake}/{savepoint.root}" if savepoint.root else self._lake
        return StoredCheckpoints(lake, savepoint.run)

    def _names(self) -> Iterator[str]:
        names = (path.removesuffix(ENDING) for path in self._files.names())
        return (name for name in names if NAME.fullmatch(name))


def checked_name(name: str) -> str:
    """:raises BadSavepointName: no savepoint can be called so."""
    if not NAME.fullmatch(name):
        raise BadSavepointName(name)
    return name


def _encode(savepoint: Savepoint) -> bytes:
    facts = {**asdict(savepoint), "created_at": savepoint.created_at.isoformat()}
    return json.dumps({"format": FORMAT, "version": VERSION, **facts}, indent=2).encode() + b"\n"


def _decode(content: bytes, file: str) -> Savepoint:
    try:
        facts = json.loads(content)
        if (facts.pop("format"), facts.pop("version")) != (FORMAT, VERSION):
            raise ValueError(f"its format is not {FORMAT} {VERSION}")
        found = Savepoint(**{**facts, "created_at": datetime.fromisoformat(facts["created_at"])})
        return replace(found, number=int(found.number))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise SavepointUnreadable(file, str(error)) from error
