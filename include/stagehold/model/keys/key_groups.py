"""Key groups: how the rows of a keyed exchange are dealt to partitions, by Flink's rules.

A key belongs to one of ``max_parallelism`` groups for ever; partitions own contiguous ranges of groups. So the number
of partitions may change while stored data is found again by group.

What cannot be is refused with ImpossibleKeyGroups, since a wrong group would send rows to the wrong partition for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from stagehold.errors import ImpossibleKeyGroups

# The hash and the canonical forms of `run.key_columns`; a change to either needs another name. It is in the compute
# keys of what was grouped, in the names of group columns and in checkpoints, so that data of another hash can never be
# mistaken for data of this one.
HASH_NAME = "xxhash64-canonical-1"
LOWEST_DEFAULT = 128
HIGHEST = 32768
SEPARATOR = "\x1f"


def default_max_parallelism(partitions: int) -> int:
    """The next power of two from one and a half times ``partitions``, inside Flink's bounds."""
    _refuse_outside("partitions", partitions, 1, HIGHEST)
    wanted = partitions + partitions // 2
    return min(max(1 << (wanted - 1).bit_length(), LOWEST_DEFAULT), HIGHEST)


def range_of(index: int, partitions: int, max_parallelism: int) -> range:
    """The groups that partition ``index`` of ``partitions`` owns."""
    _refuse_impossible(partitions, max_parallelism)
    _refuse_outside("partition", index, 0, partitions - 1)
    return range(_ceil(index * max_parallelism, partitions), _ceil((index + 1) * max_parallelism, partitions))


def index_of_group(group: int, partitions: int, max_parallelism: int) -> int:
    """The partition that owns ``group``."""
    _refuse_impossible(partitions, max_parallelism)
    _refuse_outside("group", group, 0, max_parallelism - 1)
    return group * partitions // max_parallelism


def group_column(key: Sequence[str], max_parallelism: int, hash_name: str = HASH_NAME) -> str:
    """Name of the stored column that holds each row's group for one keyed reader,
    whatever its key columns are called.
    """
    _refuse_outside("max_parallelism", max_parallelism, 1, HIGHEST)
    return f"_group_{max_parallelism}_{crc32(SEPARATOR.join((hash_name, *key)).encode()):08x}"


def _refuse_impossible(partitions: int, max_parallelism: int) -> None:
    _refuse_outside("max_parallelism", max_parallelism, 1, HIGHEST)
    _refuse_outside("partitions", partitions, 1, max_parallelism)


def _refuse_outside(name: str, given: int, least: int, most: int) -> None:
    if not least <= given <= most:
        raise ImpossibleKeyGroups(name, given, least=least, most=most)


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
