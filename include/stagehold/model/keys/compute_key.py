"""What a partition's content follows from. Equal keys mean: computing again would give the same data."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from enum import StrEnum

SEPARATOR = "."
MARK = 4  # hex digits that stand for a name in a key, and for what it was
MOST_MARKS = 16  # a key has room for so many in the ledger
# Spark whole, or its client alone, which is a part of it: the same files under the same names.
SPARK = ("pyspark", "pyspark-client")
DELTA = "4.4.0"  # of the pinned JARs: Python's package of it computes nothing
READS_PART = re.compile(rf"[0-9a-f]{{16}}([0-9a-f]{{{2 * MARK}}})*")


def digest(parts: Iterable[str]) -> str:
    """A short hash of ``parts`` that does not confuse ("ab", "c") with ("a", "bc")."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(f"{len(part)}:{part}".encode())
    return whole.hexdigest()[:16]


def result_versions() -> Mapping[str, str]:
    """The versions that can change a result, by the names that they have in keys."""
    from importlib.metadata import PackageNotFoundError, version

    for package in SPARK:
        with suppress(PackageNotFoundError):
            return {"pyspark": version(package), "delta-spark": DELTA}
    raise PackageNotFoundError(SPARK[-1])


@dataclass(frozen=True)
class ComputeKey:
    """A short hash for each cause, so that a changed key also says what changed.

    ``reads`` is what `reads_part` makes of declared reads; it is empty, and in no text, where nothing is declared.
    """

    code: str
    settings: str
    environment: str
    params: str
    inputs: str
    reads: str = ""

    def __str__(self) -> str:
        parts = [getattr(self, name) for name in CAUSES]
        return SEPARATOR.join(parts if self.reads else parts[:-1])

    @staticmethod
    def parse(text: str) -> ComputeKey | None:
        """Read what ``str`` wrote; None for a text of any other shape, which then equals no key."""
        parts = text.split(SEPARATOR)
        without_reads = len(CAUSES) - 1
        if any(not READS_PART.fullmatch(part) for part in parts[without_reads:]):
            return None
        return ComputeKey(*parts) if len(parts) in (without_reads, without_reads + 1) else None

    def changes_since(self, recorded: str) -> tuple[str, ...]:
        """Names of the causes that differ from the ``recorded`` key, in the order of the fields."""
        before = ComputeKey.parse(recorded)
        if before is None:
            return ("record format",)
        return tuple(name for name in CAUSES if getattr(self, name) != getattr(before, name))


class KeyPart(StrEnum):
    """What a change of may be let pass: data that was made with another one counts all the same. Settings say how rows
    are cut into partitions, so that of other ones nothing can be kept.
    """

    CODE = "code"
    PARAMS = "params"
    ENVIRONMENT = "environment"  # versions of Python, Spark and packages
    SOURCES = "sources"  # what a stage with a source has read

    @property
    def cause(self) -> str:
        """The part of a key that it stands for."""
        return "inputs" if self is KeyPart.SOURCES else self.value

    def of(self, key: ComputeKey) -> str:
        return str(getattr(key, self.cause))


CAUSES = tuple(field.name for field in fields(ComputeKey))


def tells_of_the_same(recorded: str, now: str) -> bool:
    """Whether two keys say that the same code made data of the same inputs. Where code cannot be compared, be it the
    stage's (its key has none) or that of what is computed along with it (there is no key), nobody knows.
    """
    key = ComputeKey.parse(recorded)
    return recorded == now and key is not None and bool(key.code)


class ReadKind(StrEnum):
    """What a function may read beside its inputs."""

    ENV = "env"
    FILE = "file"
    TABLE = "table"


@dataclass(frozen=True)
class DeclaredRead:
    """Something that a stage declares to read, and a hash of what it was when a key was made."""

    kind: ReadKind
    name: str
    content: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def marks(self) -> tuple[str, str]:
        return digest((self.kind, self.name))[:MARK], digest((self.content,))[:MARK]


def reads_part(reads: Sequence[DeclaredRead]) -> str:
    """What a key says of declared reads: one hash of all, by which keys are compared, and of a few also marks, by which
    a later plan tells which of them changed.
    """
    if not reads:
        return ""
    ordered = sorted(reads, key=str)
    whole = digest(part for read in ordered for part in (read.kind, read.name, read.content))
    return whole + "".join("".join(read.marks) for read in ordered if len(reads) <= MOST_MARKS)


def changed_reads(reads: Sequence[DeclaredRead], recorded: ComputeKey) -> Iterator[str]:
    """What ``reads`` differ in from those that a ``recorded`` key was made from, in words; nothing where marks do not
    tell.
    """
    before = _marks(recorded.reads)
    if (recorded.reads and not before) or len(reads) > MOST_MARKS:
        return
    for read in reads:
        name, content = read.marks
        if name not in before:
            yield f"{read} is declared now"
        elif before[name] != content:
            yield f"{read} changed"
    if before.keys() - {read.marks[0] for read in reads}:
        yield "something is declared no more"


def _marks(part: str) -> dict[str, str]:
    """What was marked, by the mark of its name."""
    marks = part[len(digest(())) :]
    pairs = (marks[start : start + 2 * MARK] for start in range(0, len(marks), 2 * MARK))
    return {pair[:MARK]: pair[MARK:] for pair in pairs}
