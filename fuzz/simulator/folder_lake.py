"""The lake of a world in a folder, with the tables of delta-rs itself: to see that the lake in memory is like it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, Schema
from fuzz.simulator.effects import Effects, Fault, Unreachable, stepping
from fuzz.simulator.simulated_lake import SimulatedLake
from tests.run.protocol.stepper import pause

MEMORY = Path("/dev/shm")


class FolderLake(SimulatedLake):
    def __init__(self) -> None:
        place = MEMORY if MEMORY.is_dir() else None
        self._folder = Path(tempfile.mkdtemp(prefix="simulator-", dir=place))
        super().__init__(Effects(), str(self._folder))
        self.files = _FolderFiles()
        self.files.folder = self._folder

    def open_table(self, uri: str, version: int | None = None) -> DeltaTable:
        self.effects.look(f"looks at {self.named(uri)}")
        return _SteppedTable(self, uri, version)  # type: ignore[return-value]

    def create_table(
        self, uri: str, schema: Schema, partition_by: Sequence[str], configuration: Mapping[str, str]
    ) -> None:
        def create() -> None:
            DeltaTable.create(uri, schema, partition_by=[*partition_by], configuration={**configuration})

        self.effects.carry_out(f"creates {self.named(uri)}", create)

    def close(self) -> None:
        shutil.rmtree(self._folder)


class _SteppedTable:
    """A handle of delta-rs whose commits are steps. None of them is delayed: delta-rs writes the log itself."""

    def __init__(self, lake: FolderLake, uri: str, version: int | None) -> None:
        self._lake, self._uri, self._table = lake, uri, DeltaTable(uri, version=version)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def create_write_transaction(self, *facts: Any, **more: Any) -> None:
        if stepping() is not None:
            pause(f"commits to {self._lake.named(self._uri)} on version {self._table.version()}")
        fault = self._lake.effects.take_fault()
        if fault is Fault.LOST_REQUEST:
            raise Unreachable(fault)
        self._lake.effects.changes += 1
        self._table.create_write_transaction(*facts, **more)
        if fault is not None:
            raise Unreachable(fault)


class _FolderFiles(MutableMapping[str, bytes]):
    """Files of a folder by address."""

    folder: Path

    def __getitem__(self, path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError:
            raise KeyError(path) from None

    def __setitem__(self, path: str, content: bytes) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)

    def __delitem__(self, path: str) -> None:
        try:
            Path(path).unlink()
        except OSError:
            raise KeyError(path) from None

    def __contains__(self, path: object) -> bool:
        return Path(str(path)).is_file()

    def __iter__(self) -> Iterator[str]:
        return (str(path) for path in sorted(self.folder.rglob("*")) if path.is_file())

    def __len__(self) -> int:
        return sum(1 for _ in self)
