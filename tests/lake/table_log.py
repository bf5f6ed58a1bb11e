"""Reads a Delta table's log by itself, entry by entry, as the judge of those who write it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from stagehold.lake.store.files import files_at

EPOCH_WIDTH = 10**12


@dataclass(frozen=True)
class Entry:
    """One commit. ``epochs`` are those that its tokens stand for; a fence or a change of columns has no ``wave``."""

    version: int
    epochs: frozenset[int]
    wave: dict[str, Any] | None

    @property
    def partitions(self) -> tuple[int, ...]:
        return tuple(partition["partition"] for partition in self.wave["partitions"]) if self.wave else ()

    @property
    def retracted(self) -> tuple[int, ...]:
        """Those that it takes out."""
        return tuple(self.wave.get("retracted", ())) if self.wave else ()

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
    """What one interval has in the log of a table; ``live`` are the newest version's files with their partitions."""

    def __init__(self, uri: str, interval: str) -> None:
        self.uri, self._interval = uri, interval
        self.entries: list[Entry] = []
        self.live: dict[str, int] = {}

    def follow(self) -> list[Entry]:
        """Read what was committed since; returns the new entries."""
        known, files = len(self.entries), files_at(self.uri)
        with suppress(FileNotFoundError):
            while True:
                version = len(self.entries)
                text = files.read(f"_delta_log/{version:020d}.json").decode()
                self.entries.append(self._read(version, [json.loads(line) for line in text.splitlines()]))
        return self.entries[known:]

    def files_of(self, partition: int) -> set[str]:
        return {path for path, owner in self.live.items() if owner == partition}

    def _read(self, version: int, actions: list[dict[str, Any]]) -> Entry:
        for action in actions:
            if "remove" in action:
                self.live.pop(action["remove"]["path"], None)
        for action in actions:
            if "add" in action:
                self._add(action["add"])
        texts = [action["commitInfo"].get("userMetadata") for action in actions if "commitInfo" in action]
        tokens = [action["txn"] for action in actions if "txn" in action and self._is_ours(action["txn"]["appId"])]
        wave = json.loads(texts[0]) if texts and texts[0] else None
        epochs = frozenset(token["version"] // EPOCH_WIDTH for token in tokens)
        return Entry(version, epochs, wave if wave and self._is_ours(wave["token"]) else None)

    def _add(self, file: dict[str, Any]) -> None:
        values = file["partitionValues"]
        if values.get("_interval", self._interval) == self._interval:
            assert file["path"] not in self.live, f"{file['path']} is in {self.uri} twice"
            self.live[file["path"]] = int(values["_partition"])

    def _is_ours(self, token: str) -> bool:
        return token.endswith(f"/{self._interval}")
