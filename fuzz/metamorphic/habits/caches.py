"""Frames that Spark is told to keep, and to let go."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fuzz.metamorphic.algebra import Scans, Script, Unary
from fuzz.metamorphic.habits.habit import Habit, Way
from fuzz.metamorphic.habits.views import named


class Keeping(StrEnum):
    """How Spark is told; the frame stands for ``{}``, or its view."""

    CACHE = "{}.cache()"
    PERSIST = "{}.persist()"
    ON_DISK = "{}.persist(StorageLevel.DISK_ONLY)"
    CHECKPOINT = "{}.localCheckpoint()"
    LAZY_CHECKPOINT = "{}.localCheckpoint(eager=False)"
    TABLE = "CACHE TABLE {}"
    LAZY_TABLE = "CACHE LAZY TABLE {}"
    TABLE_AS = "CACHE TABLE {}_kept AS SELECT * FROM {}"
    CATALOG = "cacheTable"

    @property
    def is_of_frame(self) -> bool:
        return self.value.startswith("{}.")

    @property
    def is_checkpoint(self) -> bool:
        return self in (Keeping.CHECKPOINT, Keeping.LAZY_CHECKPOINT)


@dataclass(frozen=True)
class Kept(Unary, Habit):
    """The same rows, kept by Spark; perhaps it is asked for their number, and perhaps told to let them go."""

    name: str
    keeping: Keeping
    counted: bool
    let_go: bool
    way: Way

    def spark(self, script: Script) -> str:
        child = self.child.spark(script)
        return self._of_frame(script, child) if self.keeping.is_of_frame else self._of_view(script, child)

    def _of_frame(self, script: Script, child: str) -> str:
        kept = script.add(self.keeping.format(child))
        script.define([f"{kept}.count()"] if self.counted else [])
        made = script.add(f'{kept}.select("*")')
        script.define([f"{kept}.unpersist()"] if self.let_go and not self.keeping.is_checkpoint else [])
        return made

    def _of_view(self, script: Script, child: str) -> str:
        session, name = self.way.of(child), named(script, self.name, once=self.keeping is Keeping.TABLE_AS)
        script.define((f'{child}.createOrReplaceTempView("{name}")',))
        if self.keeping is Keeping.CATALOG:
            script.define((f'{session}.catalog.cacheTable("{name}")',))
        else:
            script.define((f'{session}.sql("{self.keeping.format(name, name)}")',))
        read = f"{name}_kept" if self.keeping is Keeping.TABLE_AS else name
        made = script.add(f'{session}.table("{read}")')
        script.define([f"{made}.count()"] if self.counted else [])
        by_catalog = self.keeping is Keeping.CATALOG
        gone = f'catalog.uncacheTable("{read}")' if by_catalog else f'sql("UNCACHE TABLE {read}")'
        script.define([f"{session}.{gone}"] if self.let_go else [])
        return made

    def sql(self, scans: Scans) -> str:
        return self.child.sql(scans)
