"""What may be in the tables of a pipeline with gates after each run, worked out from the sources by DuckDB and from
what somebody said of refused data, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import duckdb

Rows = tuple[tuple[int, int], ...]
Place = tuple[str, int]  # stage and partition
Data = tuple[str, int, Rows]

STAGES = ("drafts", "edits", "totals")  # each published; edits read partition by partition, totals all of them
PARTITIONS = {"drafts": 3, "edits": 3, "totals": 1}
QUERY = """
WITH drafts AS (SELECT CAST(regexp_extract(filename, '(\\d+).parquet', 1) AS int) AS part, amount % 3 AS k, amount AS v
                FROM read_parquet(?, filename = true)),
     edits AS (SELECT part, k, 2 * v AS v FROM drafts),
     totals AS (SELECT 0 AS part, k, CAST(sum(v) AS bigint) AS v FROM edits GROUP BY k)
SELECT part, k, v, v BETWEEN 0 AND ? AS met FROM {} ORDER BY ALL
"""


@dataclass(frozen=True)
class Made:
    """Rows of one partition, and what they were made from."""

    stage: str
    partition: int
    rows: Rows
    parents: tuple[Made, ...]

    @property
    def place(self) -> Place:
        return self.stage, self.partition

    @property
    def data(self) -> Data:
        """What somebody's word is about."""
        return self.stage, self.partition, self.rows

    @cached_property
    def lineage(self) -> frozenset[Made]:
        """Itself, and all that it was made from."""
        return frozenset((self, *(one for parent in self.parents for one in parent.lineage)))


@dataclass
class Shown:
    """``limits`` are what the gates let, by stage. ``made`` is the newest of each partition, whether it may be read or
    not; ``refused`` are the limits that data exceeded when its gate saw it last; ``words`` say whether somebody lets
    that, or has taken it back.
    """

    source: Path
    limits: dict[str, int]
    made: dict[Place, Made] = field(default_factory=dict)
    refused: dict[Data, int] = field(default_factory=dict)
    words: dict[tuple[Data, int], bool] = field(default_factory=dict)
    shown: dict[Place, Made] = field(default_factory=dict)

    def copy(self) -> Shown:
        return replace(self, made=dict(self.made), refused=dict(self.refused))

    def refuses(self, stage: str) -> bool:
        """Whether there is something that somebody could say a word about."""
        return any(one.stage == stage and one.data in self.refused for one in self.made.values())

    @property
    def holds(self) -> bool:
        """Whether something is let by somebody's word."""
        return any(one.data in self.refused and self._may_be_read(one) for one in self.made.values())

    def say(self, stage: str, *, ends: bool) -> None:
        for one in self.made.values():
            if one.stage == stage and one.data in self.refused:
                self.words[one.data, self.refused[one.data]] = not ends

    def run(self) -> str | None:
        """The stage at which it has to end, if one of its partitions may not be read."""
        for stage in STAGES:
            self._make(stage)
            if not all(self._may_be_read(one) for one in self.made.values() if one.stage == stage):
                return stage
        return None

    def differences(self, before: Shown, blocked: str | None, found: Mapping[Place, Rows]) -> Iterator[str]:
        """What tables show and should not, or do not and should, after a run.

        :param before: as it was known before that run.
        """
        reached = STAGES[: STAGES.index(blocked) + 1] if blocked else STAGES
        for place in _places(STAGES):
            rows, new, old = found.get(place, ()), self.made.get(place), self.shown.pop(place, None)
            if place[0] in reached and new is not None and self._may_be_read(new):
                self.shown[place] = new
                if rows != new.rows:
                    yield f"{place} shows {rows}, not {new.rows}"
            elif old is not None and rows == old.rows and not self._tainted(old):
                self.shown[place] = old
            elif rows:
                yield f"{place} shows {rows}, which nobody lets"
            elif old is not None and old.rows and self._stays(old, before):
                yield f"{place} shows nothing, and nothing was said against {old.rows}"

    def _make(self, stage: str) -> None:
        files = sorted(map(str, self.source.glob("*.parquet")))
        found = duckdb.execute(QUERY.format(stage), [files, self.limits[stage]]).fetchall()
        for place in _places([stage]):
            own = [row for row in found if row[0] == place[1]]
            made = Made(*place, tuple((k, v) for _, k, v, _ in own), self._parents(place))
            self.made[place] = made
            self.refused.pop(made.data, None)
            if not all(met for *_, met in own):
                self.refused[made.data] = self.limits[stage]

    def _parents(self, place: Place) -> tuple[Made, ...]:
        match place:
            case "drafts", _:
                return ()
            case "edits", partition:
                return (self.made["drafts", partition],)
        return tuple(self.made[place] for place in _places(["edits"]))

    def _may_be_read(self, made: Made) -> bool:
        limit = self.refused.get(made.data)
        return limit is None or self.words.get((made.data, limit), False)

    def _said_of(self, made: Made) -> bool:
        return any(data == made.data for data, _ in self.words)

    def _tainted(self, made: Made) -> bool:
        """Whether it, or what it was made from, was let by a word and is not any more."""
        return any(self._said_of(one) and not self._may_be_read(one) for one in made.lineage)

    def _stays(self, made: Made, before: Shown) -> bool:
        """Whether nothing that happened takes it out. What a gate refuses goes with other data in its place."""
        return all(self._is_sound(one, before) or self._goes_on(one, before) for one in made.lineage)

    def _is_sound(self, made: Made, before: Shown) -> bool:
        return not self._said_of(made) and made.data not in before.refused | self.refused

    def _goes_on(self, made: Made, before: Shown) -> bool:
        if not self.made.get(made.place) == made == before.made.get(made.place):
            return False
        same = self.refused.get(made.data) == before.refused.get(made.data)
        return not self._said_of(made) or (same and self._may_be_read(made))


def _places(stages: Collection[str]) -> Sequence[Place]:
    return [(stage, partition) for stage in STAGES if stage in stages for partition in range(PARTITIONS[stage])]
