"""What holds after every step, whoever stands where. ARCHITECTURE.md has each under the name that it has here.

They are told from the table's log, the files of the lake and rows of the ledger, and not from what the product makes of
these.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fuzz.simulator.simulated_lake import Snapshot, log_file

from stagehold.lake.commit.wave_commit import epoch_of
from stagehold.model.partition_set import Share

if TYPE_CHECKING:
    from fuzz.simulator.simulation import Simulation

Moment = tuple[int, int]  # epoch and wave
BEGINNING: Moment = (0, 0)


class Violation(AssertionError):
    """An invariant does not hold: ``name`` is its name."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


@dataclass(frozen=True)
class Row:
    """What the ledger has recorded of a partition."""

    state: str
    moment: Moment
    files: frozenset[str]


@dataclass
class Known:
    """What has been seen of a ledger and a log so far. ``backwards`` and ``repeated`` tell what went wrong in it."""

    rows: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    last_id: int = 0
    epochs: dict[str, int] = field(default_factory=dict)
    log: list[Snapshot] = field(default_factory=list)
    beginning: bytes | None = None
    committed: dict[int, Moment] = field(default_factory=dict)
    authors: set[tuple[int, str, int]] = field(default_factory=set)
    backwards: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)


class Invariants:
    def __init__(self, world: Simulation) -> None:
        self._world, self._known = world, Known()
        self._checked_at = (-1, -1)

    def check(self) -> None:
        """:raises Violation: an invariant does not hold."""
        now = (self._world.effects.changes, self._world.happened)
        if now == self._checked_at:
            return
        self._checked_at = now
        self._follow_log()
        self._follow_ledger()
        for holds in (
            self.epochs_never_go_back,
            self.no_row_twice,
            self.no_mixture_of_attempts,
            self.none_lost_once_consumable,
            self.none_visible_ungated,
            self.ledger_and_log_agree,
        ):
            for problem in holds():
                raise Violation(holds.__name__, problem)

    def epochs_never_go_back(self) -> Iterator[str]:
        """Leases, records and commits of a partition, and the tokens of a log have ever higher epochs."""
        return iter(self._known.backwards)

    def no_row_twice(self) -> Iterator[str]:
        """No half of a partition is in the table twice, and no wave was committed twice."""
        yield from self._known.repeated
        for partition, files in self._shown().items():
            halves = [path.rpartition("/")[2] for path in files]
            if len(halves) != len({*halves}):
                yield f"partition {partition} is read from {sorted(files)}"

    def no_mixture_of_attempts(self) -> Iterator[str]:
        """A partition is read from the files of one wave of one attempt, in the table and by its record."""
        recorded = {partition: row.files for partition, row in self._newest() if row.state == "consumable"}
        for partition, files in (*self._shown().items(), *recorded.items()):
            if len({path.rpartition("/")[0] for path in files}) > 1:
                yield f"partition {partition} is read from {sorted(files)}"

    def none_lost_once_consumable(self) -> Iterator[str]:
        """What is on record as consumable, or in the table, is in the lake, wholly."""
        world = self._world
        recorded = {partition: row.files for partition, row in self._newest() if row.state == "consumable"}
        for partition, files in (*self._shown().items(), *recorded.items()):
            gone = {path for path in files - world.lost if f"{world.uri}/{path}" not in world.lake.files}
            if gone:
                yield f"partition {partition} can be read, and {sorted(gone)} are gone"

    def none_visible_ungated(self) -> Iterator[str]:
        """The table shows nothing that no gate has let."""
        for partition, files in self._shown().items():
            if not files <= self._world.let:
                yield f"partition {partition} shows {sorted(files - self._world.let)}"

    def ledger_and_log_agree(self) -> Iterator[str]:
        """What is recorded as consumable is what the table shows, unless a newer commit waits to be adopted. Once the
        newest attempt has finished, nothing waits, whoever may still wake up.
        """
        shown, finished = self._shown(), self._finished()
        for partition in range(self._world.shape.partitions):
            rows, files = self._known.rows.get(partition, []), shown.get(partition, frozenset())
            readable = [row for row in rows if row.state in ("consumable", "released")]
            if readable and readable[-1].state == "released":
                continue  # its interval is being deleted
            recorded = readable[-1].files if readable else frozenset()
            newest = rows[-1].moment if rows else BEGINNING
            waits = self._known.committed.get(partition, BEGINNING) > newest and partition not in finished
            if recorded != files and not waits:
                yield f"partition {partition} shows {sorted(files)}, {sorted(recorded)} is recorded"

    def forget_ledger(self) -> None:
        """It was lost, or put back: what it has from now on is new. The log has not changed."""
        self._known.rows.clear()
        self._known.last_id, self._known.epochs = 0, {}

    def _follow_ledger(self) -> None:
        database, known = self._world.database, self._known
        for number, partition, state, epoch, wave, files in database.rows(_ROWS, known.last_id):
            row = Row(state, (epoch, wave), frozenset(file["path"] for file in json.loads(files)))
            if known.rows[partition] and row.moment < known.rows[partition][-1].moment:
                known.backwards.append(f"{row} is recorded behind {known.rows[partition][-1]}")
            known.rows[partition].append(row)
            known.last_id = number
        for name, epoch in database.rows(_EPOCHS):
            if epoch < known.epochs.get(name, 0):
                known.backwards.append(f"the lease {name} had epoch {known.epochs[name]}, and has {epoch}")
            known.epochs[name] = epoch

    def _follow_log(self) -> None:
        files, uri, known = self._world.lake.files, self._world.uri, self._known
        beginning = files.get(log_file(uri, 0))
        if beginning != known.beginning:  # the table was deleted, and is made anew
            known.log, known.committed, known.beginning = [], {}, beginning
        while log_file(uri, len(known.log)) in files:
            landed = self._world.lake.snapshot(uri, len(known.log))
            self._look_at(landed)
            known.log.append(landed)

    def _look_at(self, landed: Snapshot) -> None:
        """A commit that is new in the log."""
        known, wave = self._known, landed.wave
        before = known.log[-1].tokens if known.log else {}
        for token, version in landed.tokens.items():
            if version < before.get(token, 0):
                known.backwards.append(f"token {token} was {before[token]}, and is {version}")
        for partition in landed.changed if wave else ():
            moment, author = (wave["epoch"], wave["wave"]), (partition, wave["attempt_id"], wave["wave"])
            if author in known.authors:
                known.repeated.append(f"wave {wave['wave']} of {wave['attempt_id']} was committed twice")
            elif moment <= known.committed.get(partition, BEGINNING):
                known.backwards.append(f"{moment} of partition {partition} landed behind {known.committed[partition]}")
            known.committed[partition] = moment
            known.authors.add(author)

    def _newest(self) -> Iterator[tuple[int, Row]]:
        return ((partition, rows[-1]) for partition, rows in self._known.rows.items() if rows)

    def _shown(self) -> Mapping[int, frozenset[str]]:
        """Files of the table's newest version, by partition."""
        found: dict[int, set[str]] = defaultdict(set)
        for path, values in self._known.log[-1].live.items() if self._known.log else ():
            found[int(str(values["_partition"]))].add(path)
        return {partition: frozenset(paths) for partition, paths in found.items()}

    def _finished(self) -> frozenset[int]:
        """Partitions of which the newest attempt that ledger and log know has finished."""
        tokens = self._known.log[-1].tokens if self._known.log else {}
        highest = max((*map(epoch_of, tokens.values()), *self._known.epochs.values()), default=0)
        everything = range(self._world.shape.partitions)
        found = self._world.database.rows(_FINISHED, highest)
        shares = (Share.parse(share) if share else None for (share,) in found)
        return frozenset(one for share in shares for one in everything if share is None or one in share)


_ROWS = "SELECT id, partition, state, epoch, wave, files FROM partitions WHERE id > ? ORDER BY id"
_EPOCHS = "SELECT name, epoch FROM leases"
_FINISHED = "SELECT share FROM attempts WHERE epoch = ? AND state = 'finished'"
