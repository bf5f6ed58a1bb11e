"""Rows of a stage's inputs for tests of it: few, the same ones each time, and those of one key together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.errors import InvalidArgument, UnknownName
from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.masking import Masking
from stagehold.run.here.stage_frames import stage_frames
from stagehold.run.planning.planning import RunRequest
from stagehold.settings import Settings
from stagehold.spec.pipeline import Exchange, Stage

if TYPE_CHECKING:
    from pyarrow import Table  # type: ignore[import-untyped]
    from pyspark.sql import Column, DataFrame, SparkSession

NOT_HASHED = ("map", "variant", "void")  # how types begin, or are called, of which Spark makes no hash
Keys = Mapping[str, tuple[str, ...]]  # by input, the columns of its declared key


@dataclass(frozen=True)
class SampledInput:
    """Some of ``of`` rows of an input. Those with a value of its ``key`` are all there or none of them is; without a
    key, rows are chosen by themselves.
    """

    name: str
    rows: Table
    of: int
    key: tuple[str, ...] = ()


def sample_inputs(
    request: RunRequest, stage: str, settings: Settings, progress: Progress, *, most: int, mask: Sequence[str] = ()
) -> tuple[SampledInput, ...]:
    """At most so many rows of each input of an interval, chosen by a hash of their keys, or else of themselves.

    :param mask: columns, of whichever inputs have them, whose values are replaced; equal values by equal ones.
    :raises InvalidArgument: no key has so few rows, or a column of that type cannot be masked
    :raises UnknownName: no input has a column that is to be masked
    """
    with stage_frames(request, stage, (), settings, progress) as found:
        frames = found.inputs()
        _refuse_unknown(mask, frames)
        sampled = tuple(_sampled(found.spark, frames, _keys(found.stage), most))
    masking = Masking.of_home(settings.home_path) if mask else None
    return tuple(replace(each, rows=masking.masked(each.rows, mask)) if masking else each for each in sampled)


def write_sample(sampled: Sequence[SampledInput], folder: Path) -> Mapping[str, Path]:
    """A Parquet file for each input."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    folder.mkdir(parents=True, exist_ok=True)
    files = {each.name: folder / f"{each.name}.parquet" for each in sampled}
    for each in sampled:
        pq.write_table(each.rows, files[each.name])
    return files


def _refuse_unknown(mask: Sequence[str], frames: Mapping[str, DataFrame]) -> None:
    known = tuple(dict.fromkeys(column for frame in frames.values() for column in frame.columns)) if mask else ()
    for name in mask:
        if name not in known:
            raise UnknownName("column of an input", name, known)


def _keys(stage: Stage) -> Keys:
    return {edge.given_as: edge.key for edge in stage.inputs if edge.exchange is Exchange.KEYED}


def _sampled(spark: SparkSession, frames: Mapping[str, DataFrame], keys: Keys, most: int) -> Iterator[SampledInput]:
    """In the order of the inputs."""
    chosen = _chosen_keys(spark, {name: frames[name] for name in keys}, keys, most) if keys else None
    for name, frame in frames.items():
        key = keys.get(name, ())
        few = _with_keys(frame, chosen, key) if chosen is not None and key else _first(frame, _hash_of(frame), most)
        yield SampledInput(name, few.toArrow(), frame.count(), key)


def _first(frame: DataFrame, order: Sequence[Column], most: int) -> DataFrame:
    return frame.orderBy(*order).limit(most)


def _hash_of(frame: DataFrame) -> tuple[Column, ...]:
    from pyspark.sql import functions as F

    hashed = [F.col(_quoted(name)) for name, kind in frame.dtypes if not any(each in kind for each in NOT_HASHED)]
    return (F.xxhash64(*hashed),) if hashed else ()


def _chosen_keys(spark: SparkSession, frames: Mapping[str, DataFrame], keys: Keys, most: int) -> DataFrame:
    """Values of the key, in the order of their hashes, as long as no input has more than ``most`` rows of them."""
    from pyspark.sql import functions as F

    columns = [f"key_{place}" for place, _ in enumerate(next(iter(keys.values())))]
    found = reduce(
        lambda all_rows, rows: all_rows.unionByName(rows), (_rows_of_keys(each, frames, keys) for each in keys)
    )
    counted = found.groupBy(*columns).agg(*(F.sum(_count(name)).alias(_count(name)) for name in keys))
    table = counted.orderBy(F.xxhash64(*columns), *columns).limit(most).toArrow()
    taken = fitting([tuple(row[_count(name)] for name in keys) for row in table.to_pylist()], most)
    if table.num_rows and not taken:
        least = min(max(row[_count(name)] for name in keys) for row in table.to_pylist())
        raise InvalidArgument("--rows", str(most), f"{least} or more: so many rows of one key are together")
    return spark.createDataFrame(table.take(taken).select(columns))


def fitting(counts: Sequence[tuple[int, ...]], most: int) -> list[int]:
    """The places of keys that go together, one after the other, each with its number of rows in each input; one that is
    too much is left out.
    """
    taken, sums = list[int](), [0] * (len(counts[0]) if counts else 0)
    for place, rows in enumerate(counts):
        together = [before + more for before, more in zip(sums, rows, strict=True)]
        if max(together) <= most:
            taken.append(place)
            sums = together
    return taken


def _rows_of_keys(name: str, frames: Mapping[str, DataFrame], keys: Keys) -> DataFrame:
    """For each value of the key that an input has, how many rows of it."""
    from pyspark.sql import functions as F

    names = [F.col(_quoted(column)).alias(f"key_{place}") for place, column in enumerate(keys[name])]
    counted = frames[name].groupBy(*names).agg(F.count("*").alias(_count(name)))
    return counted.select("*", *(F.lit(0).alias(_count(other)) for other in keys if other != name))


def _with_keys(frame: DataFrame, chosen: DataFrame, key: Sequence[str]) -> DataFrame:
    same = (frame[_quoted(column)].eqNullSafe(chosen[f"key_{place}"]) for place, column in enumerate(key))
    return frame.join(chosen, reduce(and_, same), "left_semi")


def _count(name: str) -> str:
    return f"rows_{name}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
