"""What a process keeps so that it need not be made again: bounded by bytes, all of it together, and told by kind."""

from __future__ import annotations

import gc
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from sys import getsizeof
from threading import RLock
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Generic, TypeVar

from stagehold.settings import load_settings

MEGABYTE = 2**20
IDLE_SECONDS = 900.0  # after which a value goes that nobody asked for
# What values point to and do not own.
SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
Value = TypeVar("Value")


@dataclass(frozen=True)
class KeptKind:
    """What is kept of a kind, such as pages of runs."""

    kind: str
    values: int
    bytes: int


@dataclass
class _Entry:
    value: object
    bytes: int
    used_at: float


class KeptMemory:
    """The values of several shelves, which may take so many bytes together. What was used longest ago goes first, and
    what nobody asked for in a while goes anyway, when somebody asks for anything.

    The value that came last stays, however large it is: else whoever waits for it would never see it.
    """

    def __init__(self, most_bytes: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """:param most_bytes: None is as many as the settings say."""
        self._given, self._clock, self._lock = most_bytes, clock, RLock()
        self._entries: OrderedDict[tuple[str, Hashable], _Entry] = OrderedDict()
        self._bytes = 0

    @cached_property
    def most_bytes(self) -> int:
        return load_settings().kept_megabytes * MEGABYTE if self._given is None else self._given

    @property
    def kinds(self) -> tuple[KeptKind, ...]:
        """What is kept now, by kind."""
        with self._lock:
            self._drop_idle()
            found: dict[str, list[int]] = {}
            for (kind, _), entry in self._entries.items():
                found.setdefault(kind, []).append(entry.bytes)
        return tuple(KeptKind(kind, len(sizes), sum(sizes)) for kind, sizes in sorted(found.items()))

    def get(self, kind: str, name: Hashable) -> object | None:
        with self._lock:
            self._drop_idle()
            entry = self._entries.get((kind, name))
            if entry is None:
                return None
            entry.used_at = self._clock()
            self._entries.move_to_end((kind, name))
            return entry.value

    def put(self, kind: str, name: Hashable, value: object, size: int) -> None:
        with self._lock:
            self.drop(kind, name)
            self._entries[kind, name] = _Entry(value, size, self._clock())
            self._bytes += size
            self._drop_idle()
            while self._bytes > self.most_bytes and len(self._entries) > 1:
                self._drop_first()

    def drop(self, kind: str, name: Hashable) -> None:
        with self._lock:
            entry = self._entries.pop((kind, name), None)
            self._bytes -= entry.bytes if entry else 0

    def _drop_idle(self) -> None:
        too_old = self._clock() - IDLE_SECONDS
        while self._entries and next(iter(self._entries.values())).used_at < too_old:
            self._drop_first()

    def _drop_first(self) -> None:
        _, entry = self._entries.popitem(last=False)
        self._bytes -= entry.bytes


OF_PROCESS = KeptMemory()


class Shelf(Generic[Value]):
    """The values of one kind, by their names."""

    def __init__(self, kind: str, memory: KeptMemory = OF_PROCESS) -> None:
        self._kind, self._memory = kind, memory

    def get(self, name: Hashable) -> Value | None:
        return self._memory.get(self._kind, name)  # type: ignore[return-value]

    def put(self, name: Hashable, value: Value, own: object | None = None) -> None:
        """:param own: the part of the value that nothing else has as well, if not all of it."""
        self._memory.put(self._kind, name, value, bytes_of(value if own is None else own))

    def drop(self, name: Hashable) -> None:
        self._memory.drop(self._kind, name)


def bytes_of(value: object) -> int:
    """The memory that a value takes with all that it is made of."""
    return sum(map(getsizeof, _parts(value)))


def _parts(value: object) -> Iterator[object]:
    waiting, seen = [value], {id(value)}
    while waiting:
        part = waiting.pop()
        yield part
        for inner in gc.get_referents(part):
            if id(inner) not in seen and not isinstance(inner, SHARED):
                seen.add(id(inner))
                waiting.append(inner)
