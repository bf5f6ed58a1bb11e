"""Which input split goes to which reader: every split once, local ones first, and back in the queue when a reader fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

Place = tuple[int, int]  # how many hosts hold the split, then its place in the given order


@dataclass(frozen=True)
class InputSplit:
    """A piece of a source, such as a file, and the hosts that hold it; without hosts it is equally far for all."""

    id: str
    hosts: frozenset[str] = frozenset()


class SplitAssigner:
    """Hands out splits, each to one reader.

    A reader on a host that holds waiting splits gets, of those, one that the fewest hosts hold: the others can still be
    local to somebody else. Who has no local split left helps with one the fewest hosts hold, for the same reason. Equals
    come in the given order, so the same requests always give the same assignment.
    """

    def __init__(self, splits: Iterable[InputSplit]) -> None:
        self._splits = tuple(splits)
        self._reader: dict[int, str] = {}
        self._everywhere: list[Place] = []
        self._on_host: dict[str, list[Place]] = {host: [] for split in self._splits for host in split.hosts}
        for number in range(len(self._splits)):
            self._queue(number)

    @property
    def assigned(self) -> Mapping[str, str]:
        """The reader of every split that was handed out and not given back."""
        return {self._splits[number].id: reader for number, reader in self._reader.items()}

    @property
    def waiting(self) -> int:
        """How many splits nobody has been given."""
        return len(self._splits) - len(self._reader)

    def next_split(self, reader: str, host: str | None = None) -> InputSplit | None:
        """The next split for ``reader``, None when all are handed out."""
        for queue in (self._on_host.get(host or "", []), self._everywhere):
            while queue:
                _, number = heappop(queue)
                # A split waits in several queues and leaves the others only when they meet it.
                if number not in self._reader:
                    self._reader[number] = reader
                    return self._splits[number]
        return None

    def give_back(self, reader: str) -> tuple[InputSplit, ...]:
        """Everything a failed reader was given waits again: its output is lost, so what it had finished reading is too."""
        returned = sorted(number for number, holder in self._reader.items() if holder == reader)
        for number in returned:
            del self._reader[number]
            self._queue(number)
        return tuple(self._splits[number] for number in returned)

    def _queue(self, number: int) -> None:
        hosts = self._splits[number].hosts
        for queue in (self._everywhere, *(self._on_host[host] for host in hosts)):
            heappush(queue, (len(hosts), number))
