"""Reads a Delta table's log by itself, entry by entry, as the judge of those who write it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EPOCH_WIDTH = 1_000_000


@dataclass(frozen=True)
class Entry:
    """One commit. ``epochs`` are those that its tokens stand for; a fence or a change of columns has no ``wave``."""

    version: int
    epochs: frozenset[int]
    wave: dict[str, Any] | None

    @property
    def partitions(self) -> tuple[int, ...]:
        return tuple(one["partition"] for one in self.wave["partitions"]) if self.wave else ()

    @property
    def author(self) -> tuple[str, int]:
        """Attempt and wave; of a wave's commit only."""
        assert self.wave is not None, f"version {self.version} is no wave's"
        return (self.wave["attempt_id"], self.wave["wave"])

    @property
    def moment(self) -> tuple[int, int]:
        """Epoch and wave; of a wave's commit only."""
        assert self.wave is not None, f"version {self.version} is no wave's"
        return (self.wave["epoch"], self.wave["wave"])


class TableLog:
    """The log of one table, as far as it has been read; ``live`` are the newest version's files with their partitions."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.entries: list[Entry] = []
        self.live: dict[str, int] = {}

    def follow(self) -> list[Entry]:
        """Read what was committed since; returns the new entries."""
        fresh = []
        while (path := Path(self.uri, "_delta_log", f"{len(self.entries) + len(fresh):020d}.json")).exists():
            fresh.append(self._read(len(self.entries) + len(fresh), [json.loads(line) for line in path.read_text().splitlines()]))
        self.entries += fresh
        return fresh

    def files_of(self, partition: int) -> set[str]:
        return {path for path, owner in self.live.items() if owner == partition}

    def _read(self, version: int, actions: list[dict[str, Any]]) -> Entry:
        for action in actions:
            if "remove" in action:
                del self.live[action["remove"]["path"]]
        for action in actions:
            if "add" in action:
                assert action["add"]["path"] not in self.live, f"{action['add']['path']} is in {self.uri} twice"
                self.live[action["add"]["path"]] = int(action["add"]["partitionValues"]["_partition"])
        texts = [action["commitInfo"].get("userMetadata") for action in actions if "commitInfo" in action]
        tokens = [action["txn"]["version"] // EPOCH_WIDTH for action in actions if "txn" in action]
        return Entry(version, frozenset(tokens), json.loads(texts[0]) if texts and texts[0] else None)
