"""What a stage function is, and what it is given besides its frames.

A stage function is called as ``function(ctx, **frames)`` and returns one frame:

* The first parameter is called ``ctx``. A stage with a source has one more, ``source``; a stage with inputs has one
  per input, each called like the stage it comes from, in any order. The loader refuses a function with others.
* Frames hold only what the partitions in ``ctx.partitions`` may see: one partition's rows for a source and for
  ``forward`` inputs, the wave's key groups for ``keyed`` ones, everything for ``broadcast`` and ``gather``. A function
  that makes its rows one by one and does not ask for ``ctx.partitions`` may be given many partitions' rows: it cannot
  tell. One that does not keep the keys of ``keyed`` inputs apart, asks, or does anything with Spark but plan, is called
  for one partition at a time.
* The same frames, context and code must give the same rows, in any order: no clock, no unseeded random source, sums
  of decimals rather than of doubles, a total order wherever rows are ranked or cut off.
* A stage whose declaration has ``state`` reads what the interval before left, and puts what the next one begins with:
  ``before = ctx.state.read("totals")``, ``ctx.state.put("totals", after)``. It is called for one partition at a time.
  ``@stage(restore=function)`` names what makes state of an earlier declaration into that of the present one.
* It returns a frame, and may use Spark on the way: count, collect, temp views, functions by name, caches, settings.
  Names and settings are its own and end with the call. It writes nothing, unless its stage says ``effects: allowed``:
  it is called more than once for a partition (checked, computed, again after a failure).

    @stage
    def joined(ctx: StageContext, orders: DataFrame, lineitem: DataFrame) -> DataFrame:
        return orders.join(lineitem, orders.o_orderkey == lineitem.l_orderkey)

Nothing of this needs Airflow, or Stagehold's runner: a test calls ``joined(ctx, orders=..., lineitem=...)``.
"""

from __future__ import annotations

import logging
import re
import zlib
from collections import Counter as Sums
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from pyarrow import Table  # type: ignore[import-untyped]
    from pyspark.sql import Column, DataFrame

Function = TypeVar("Function", bound=Callable[..., Any])
RestoreFunction = Callable[..., Mapping[str, Any]]  # of the context, and frames by name; it gives frames by name


class StageState:
    """What a stage keeps from one interval to the next, under the names that the pipeline's file gives it.

    A test makes one of frames: ``StageState({"totals": frame})``.
    """

    def __init__(self, before: Mapping[str, DataFrame] | None = None) -> None:
        self._before: Mapping[str, DataFrame] = before or {}
        self._after: dict[str, DataFrame] = {}

    def read(self, name: str) -> DataFrame:
        """What this partition's part was left as by the interval before, with the declared columns; no rows where
        nothing was left.
        """
        self._refuse_unknown(name)
        return self._before[name]

    def put(self, name: str, frame: DataFrame) -> None:
        """Keep what the next interval begins with, in place of what this interval began with. It becomes readable
        together with the partition's rows, or not at all.
        """
        self._refuse_unknown(name)
        self._after[name] = frame

    @property
    def after(self) -> Mapping[str, DataFrame]:
        """Everything that the next interval begins with; what was not put stays as it was."""
        return {**self._before, **self._after}

    def _refuse_unknown(self, name: str) -> None:
        if name not in self._before:
            from stagehold.errors import UnknownName  # Spark's workers have this module, and not that one

            raise UnknownName("state", name, tuple(self._before))

    def __reduce__(self) -> tuple[type[StageState], tuple[()]]:
        """Frames belong to their session: a copy that goes along with a function to Spark's workers has none."""
        return StageState, ()


class StageSecrets:
    """The values of the secrets that a pipeline declares. They show in no text, and do not go to Spark's workers.

    A test makes one of values: ``StageSecrets({"api": "for-tests"})``.
    """

    def __init__(self, values: Mapping[str, str] | None = None, *, sent: bool = False) -> None:
        self._values, self._sent = values or {}, sent

    def value(self, name: str) -> str:
        if self._sent:
            raise RuntimeError(
                "secrets are not sent to Spark's workers: take the value before, in the stage's function, as in "
                f'`token = ctx.secret("{name}")`'
            )
        if name not in self._values:
            from stagehold.errors import UnknownName  # Spark's workers have this module, and not that one

            raise UnknownName("secret", name, tuple(self._values))
        return self._values[name]

    def __reduce__(self) -> tuple[partial[StageSecrets], tuple[()]]:
        return partial(StageSecrets, sent=True), ()


class StageFile:
    """A file that a stage declares in `files`: a path for whatever opens paths, where its function is called and in
    Python functions that Spark's workers run, whatever machine those are on.
    """

    def __init__(self, path: str, shipped: str) -> None:
        self.path, self.shipped = path, shipped

    def __fspath__(self) -> str:
        try:
            from pyspark import SparkFiles, TaskContext
        except ImportError:
            return self.path
        return SparkFiles.get(self.shipped) if TaskContext.get() else self.path

    __str__ = __fspath__


COUNTER_NAME = re.compile(r"[A-Za-z_][\w.-]{0,99}")


class StageCounters:
    """What one call of a function counts. A test asks for the ``sums`` after it has called the function."""

    def __init__(self, *, sent: bool = False) -> None:
        self._sent = sent
        self._taken: dict[str, tuple[str, DataFrame]] = {}  # by observation: its counter, and a frame of the count

    def __bool__(self) -> bool:
        return bool(self._taken)

    def observed(self, place: str, name: str, expression: Column, frame: DataFrame) -> DataFrame:
        count = expression.cast("bigint").alias("count")
        observation = f"counter/{place}/{len(self._taken)}"
        self._taken[observation] = name, frame.agg(count)
        return frame.observe(observation, count)

    def sums(self, observed: Mapping[str, int] | None = None) -> Mapping[str, int]:
        """The counts by name, which are added where several have one name.

        :param observed: what a query that is over has observed; Spark computes other counts now.
        """
        sums, known = Sums[str](), observed or {}
        for observation, (name, frame) in self._taken.items():
            # There is no sum of no rows.
            sums[name] += known[observation] if observation in known else frame.collect()[0][0] or 0
        return sums

    def settle(self, settled: Callable[[DataFrame], DataFrame]) -> None:
        """Have the counts mean afterwards what they mean now."""
        self._taken = {observation: (name, settled(frame)) for observation, (name, frame) in self._taken.items()}

    def require_unsent(self) -> None:
        if self._sent:
            raise RuntimeError(
                "counters are not sent to Spark's workers: count rows in the stage's function, as in "
                '`frame.transform(ctx.counter("bad").of(F.count_if("amount < 0")))`'
            )

    def __reduce__(self) -> tuple[partial[StageCounters], tuple[()]]:
        return partial(StageCounters, sent=True), ()


@dataclass(frozen=True)
class Counter:
    """A counter of the author's own, for what one call of a function makes."""

    name: str
    place: str
    counters: StageCounters

    def of(self, expression: Column) -> Callable[[DataFrame], DataFrame]:
        """What makes of a frame the same frame, of whose rows Spark computes the aggregate, a whole number, in the
        query that makes the partition: ``source.transform(ctx.counter("bad").of(F.count_if("amount < 0")))``. What
        several count under one name is added.
        """
        return partial(self.counters.observed, self.place, self.name, expression)


@dataclass(frozen=True)
class StageContext:
    """The facts a stage may depend on, so that it needs neither the clock nor a random source.

    ``partitions`` are the ids computed by this call: one, unless the stage is ``per_wave``. ``seed`` is the same for
    every attempt of the same stage and interval. ``restored_from`` is the address of the checkpoint or savepoint that
    the run began with, if it did. ``state`` is what the stage keeps from interval to interval, ``files`` what it
    declares so, by path, ``counters`` what its function counts. The interval is from ``logical_date``, which
    is also called ``interval_start``, to before ``interval_end``; an interval that is no date has none of them, and a
    moment without a schedule no end.
    """

    pipeline: str
    stage: str
    interval: str
    logical_date: datetime | None
    partitions: tuple[int, ...]
    seed: int
    params: Mapping[str, Any] = field(default_factory=dict)
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("stagehold.stage"))
    restored_from: str | None = None
    state: StageState = field(default_factory=StageState)
    interval_end: datetime | None = None
    secrets: StageSecrets = field(default_factory=StageSecrets, repr=False, compare=False)
    files: Mapping[str, StageFile] = field(default_factory=dict)
    counters: StageCounters = field(default_factory=StageCounters, repr=False, compare=False)

    def counter(self, name: str) -> Counter:
        """A counter of this name. It is kept for each partition, and added up over those of the stage that count."""
        self.counters.require_unsent()
        if not COUNTER_NAME.fullmatch(name) or len(self.partitions) != 1:
            from stagehold.errors import StageContractBroken  # Spark's workers have this module, and not that one

            why = f"calls a counter {name!r}" if len(self.partitions) == 1 else "counts for a whole wave (`per_wave`)"
            allowed = "a counter has a name of letters, digits, `_`, `.` and `-`, and counts for one partition"
            raise StageContractBroken(self.stage, f"its function {why}; {allowed}")
        return Counter(name, f"{self.stage}/{self.partitions[0]}", self.counters)

    def secret(self, name: str) -> str:
        """The value of a secret that the pipeline declares in `secrets`. It counts in no key, and is taken out of
        errors and logs; out of rows it is not.
        """
        return self.secrets.value(name)

    def file(self, name: str) -> StageFile:
        """A file of the stage's `files`, by its path there or by its name alone: `open(ctx.file("rates.csv"))`."""
        for path, found in self.files.items():
            if name in (path, path.rpartition("/")[2]):
                return found
        from stagehold.errors import UnknownName  # Spark's workers have this module, and not that one

        raise UnknownName("file of the stage", name, tuple(self.files))

    @property
    def interval_start(self) -> datetime | None:
        return self.logical_date

    @property
    def is_restored(self) -> bool:
        return self.restored_from is not None


@dataclass(frozen=True)
class SourceSplit:
    """What a source in Python reads at once. It is read again when its ``stamp`` is another one, such as the time of
    its newest row; without one it counts as it was first read. Splits are dealt into partitions by their ``bytes``.
    """

    name: str
    stamp: str = ""
    bytes: int = 1


@dataclass(frozen=True)
class StageCheckpoint:
    """What a stage has in a checkpoint of its run that is complete: the ``ctx`` of its `on_complete` function.

    ``partitions`` are the consumable ones of ``parallelism``, ``counters`` the sums of what was counted for these. The
    function is called in the process that takes the
    run's checkpoints, for one checkpoint after the other, at least once for each: again if that process died, or if the
    function raised. A checkpoint that a newer one replaced before it could be told is passed over.
    """

    pipeline: str
    stage: str
    interval: str
    run_id: str
    number: int
    partitions: tuple[int, ...]
    parallelism: int
    read: Callable[[], Table] = field(repr=False)
    counters: Mapping[str, int] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("stagehold.stage"))

    @property
    def is_whole(self) -> bool:
        """Whether all partitions of the stage are in it."""
        return len(self.partitions) == self.parallelism

    def rows(self) -> Table:
        """The rows of these partitions as a table of Arrow's, all in memory, with their partition as `_partition`."""
        return self.read()


def seed_of(pipeline: str, stage_id: str, interval: str) -> int:
    """The seed of all attempts of a stage and an interval."""
    return zlib.crc32(f"{pipeline}/{stage_id}/{interval}".encode())


@overload
def stage(function: Function) -> Function: ...


@overload
def stage(*, restore: RestoreFunction) -> Callable[[Function], Function]: ...


def stage(function: Function | None = None, *, restore: RestoreFunction | None = None) -> Any:
    """Mark a function as a stage, which a pipeline's job has to be;
    it stays an ordinary function for tests and spark-submit.

    :param restore: is called as ``restore(ctx, before)`` when the state that the stage goes on with was kept in other
        columns, by another kind or key, or under other names than are declared now. ``before`` is all that was kept,
        by all partitions, as it was; it gives all that the partitions begin with, by name, which is then dealt to them.
        A name that it leaves out, and that was kept as it is declared, stays as it was.
    """

    def marked(function: Function) -> Function:
        function.__stagehold_stage__, function.__stagehold_restore__ = True, restore  # type: ignore[attr-defined]
        return function

    return marked if function is None else marked(function)


def restore_function(function: Callable[..., Any]) -> RestoreFunction | None:
    """What makes state of other shapes into that which the stage declares."""
    return getattr(function, "__stagehold_restore__", None)


def is_stage(function: Callable[..., Any]) -> bool:
    return getattr(function, "__stagehold_stage__", False)
