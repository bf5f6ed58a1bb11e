"""What a partition's content follows from. Equal keys mean: computing again would give the same data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields

SEPARATOR = "."


def digest(parts: Iterable[str]) -> str:
    """A short hash of ``parts`` that does not confuse ("ab", "c") with ("a", "bc")."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(f"{len(part)}:{part}".encode())
    return whole.hexdigest()[:16]


@dataclass(frozen=True)
class ComputeKey:
    """One short hash per cause, so that a changed key also says what changed."""

    code: str
    settings: str
    environment: str
    params: str
    inputs: str

    def __str__(self) -> str:
        return SEPARATOR.join(getattr(self, field.name) for field in fields(self))

    @staticmethod
    def parse(text: str) -> ComputeKey | None:
        """Read what ``str`` wrote; None for a text of any other shape, which then equals no key."""
        parts = text.split(SEPARATOR)
        return ComputeKey(*parts) if len(parts) == len(fields(ComputeKey)) else None

    def changes_since(self, recorded: str) -> tuple[str, ...]:
        """Names of the causes that differ from the ``recorded`` key, in the order of the fields."""
        before = ComputeKey.parse(recorded)
        if before is None:
            return ("record format",)
        return tuple(field.name for field in fields(self) if getattr(self, field.name) != getattr(before, field.name))
