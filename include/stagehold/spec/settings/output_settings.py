"""How an output is kept, and what counts of it although something has changed: what there is to choose, its declared
columns, how their types are spelled, and what a stage keeps beside it from interval to interval.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field, PlainValidator
from pydantic_core import PydanticCustomError

from stagehold.model.keys.key_groups import HASH_NAME
from stagehold.model.stage_state import StateColumn, StateKind, StateShape
from stagehold.model.units import PositiveDuration
from stagehold.spec.settings.fields import COLUMN_TYPES, Columns, ColumnType, KeyParts, SpecPart, Switch, plain_type

OUTPUT_TYPES = f"{COLUMN_TYPES}, or of such types array<string>, map<string,int>, struct<a:int,b:string>"
NESTED = re.compile(r"(?P<kind>array|map|struct)<(?P<inner>.+)>", re.IGNORECASE)
INNER_TYPES = {"array": 1, "map": 2}
FORBIDDEN_CHARACTERS = " ,;{}()\n\t="  # Parquet and Delta without column mapping refuse them
NO_NAME = f"space and any of {FORBIDDEN_CHARACTERS.strip()!r} cannot be in a name"


class TypeReason(StrEnum):
    """Why an output is stored, or computed along with its readers."""

    DECLARED = "declared"
    MODE = "mode"  # the execution mode chooses it
    UNREAD = "unread"
    GATE = "gate"
    STATE = "state"
    COLUMNS = "columns"
    SCRIPT = "script"
    AUTO = "auto"  # its bytes settle how many partitions a reader has
    TASKS = "tasks"  # several tasks share its region, and none of them has all that a shuffle needs
    JOINED_AGAIN = "joined_again"  # its branches meet again, which could deadlock
    DEADLOCK = "deadlock"  # its region would wait for itself


class ReleasedBy(StrEnum):
    """Who deletes an output: the scheduler once no reader needs it, or its producer once it was read."""

    SCHEDULER = "scheduler"
    PRODUCER = "producer"


@dataclass(frozen=True)
class Fallback:
    """The failure of an attempt, by its rule, after which an output is stored that was computed along until then."""

    rule: str
    epoch: int


@dataclass(frozen=True)
class Worth:
    """Whether an output is worth storing: the seconds that it takes to compute it again, and to store it; None as long
    as that is not on record.
    """

    stored: bool
    again: float | None = None
    storing: float | None = None

    def __str__(self) -> str:
        if self.again is None or self.storing is None:
            return "what it costs is not on record"
        return f"{self.again:.1f} s to compute again, {self.storing:.1f} s to store"


class CommitterKind(StrEnum):
    """Who makes an output's commits: delta-rs, of files that Spark staged, or delta-spark, which writes rows again."""

    STAGED = "staged"
    DELTA_SPARK = "delta_spark"


class OnCodeChange(StrEnum):
    """What becomes of recorded partitions that other code made than the stage has now."""

    RECOMPUTE = "recompute"
    KEEP = "keep"


class OnForeignChange(StrEnum):
    """What becomes of a published partition whose rows somebody else removed from its table."""

    FAIL = "fail"  # it is blocked until somebody decides
    HEAL = "heal"  # it is computed again and published
    KEEP = "keep"  # it stays as it is, and counts as done


class Evolution(StrEnum):
    """Whether a published table may gain columns or get wider types. It never loses or narrows any."""

    EVOLVE = "evolve"
    FAIL = "fail"


class OnWaiverEnd(StrEnum):
    """What becomes of a table's rows that rest on refused data, when the waiver ends that let the data through."""

    RETRACT = "retract"  # they are taken out of the table
    KEEP = "keep"  # they stay, and are marked


def is_fit_name(name: str) -> bool:
    """Whether a table can have a column of that name."""
    return not set(name) & set(FORBIDDEN_CHARACTERS)


def fit_name(text: str) -> str:
    """A name that a table can have, for a column that has the name, or is computed by the expression, ``text``."""
    return "_".join(re.findall(r"\w+", text)).lower()[:40].strip("_") or "value"


def _output_type(given: object) -> str:
    """A type as Spark spells it, without spaces."""
    if isinstance(given, str) and (spelled := _spelled(given.replace(" ", ""))):
        return spelled
    raise PydanticCustomError("output_type", OUTPUT_TYPES)


def _spelled(text: str) -> str | None:
    """A plain type, or an array, a map or a struct of types; None for what is none. Case counts in names of fields."""
    found = NESTED.fullmatch(text)
    if found is None:
        return plain_type(text)
    kind, parts = found["kind"].lower(), _parts(found["inner"])
    names = [part.partition(":")[0] for part in parts] if kind == "struct" else []
    types = [_spelled(part.partition(":")[2] if names else part) for part in parts]
    if len(types) != INNER_TYPES.get(kind, len(types)) or not all(types) or not all(names):
        return None
    spelled = [f"{name}:{inner}" for name, inner in zip(names, types, strict=True)] if names else map(str, types)
    return f"{kind}<{','.join(spelled)}>"


def _parts(inner: str) -> list[str]:
    """What stands between commas outside of all brackets."""
    parts, depth = [""], 0
    for letter in inner:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


OutputColumnType = Annotated[str, PlainValidator(_output_type, json_schema_input_type=str)]


class ColumnForm(SpecPart):
    """A column of an output, which the file names before it."""

    type: OutputColumnType | None = None
    """The column's type, as Spark spells it. Needed. A bare word stands for the mapping: `columns: {id: bigint}`.
    Example: `type: "decimal(18,2)"`"""

    null: Switch = True
    """Whether the column may be NULL. With `false` a NULL is refused before anything of its wave is published.
    Example: `type: bigint, null: false`"""

    description: str | None = None
    """What the column says, for readers of the table: it is the column's comment there.
    Example: `type: bigint, description: Number of the order`"""

    def __str__(self) -> str:
        return f"{self.type}{'' if self.null else ', never NULL'}"


class KeepSettings(SpecPart):
    """Which changes leave recorded partitions as they are, and how old they may be."""

    keep: KeyParts = ()
    """Changes that leave recorded partitions as they are, besides those that the pipeline names: of `code`, `params`,
    `environment` (versions of Python and Spark), `sources`. For a stored output. Example: `keep: [environment]`"""

    max_age: PositiveDuration | None = None
    """How old its data may be when a run begins; what is older runs again. Example: `max_age: 7d`"""


class StateForm(SpecPart):
    """What a stage keeps under one name from interval to interval; the file names it before."""

    kind: StateKind = StateKind.KEYED
    """How it is dealt to partitions: `keyed`, each row to the partition of its key, like the rows of a keyed input. The
    others are lists. When the number of partitions changes, elements of a `split` one are dealt anew, each partition
    is given all of a `union` one, and one copy of a `broadcast` one, of which all partitions hold the same.
    Example: `kind: split`"""

    key: Columns = ()
    """Columns of `keyed` state that tell a row's partition, one name or a list, like the `key` of the stage.
    Example: `key: customer`"""

    columns: Mapping[str, ColumnType] = Field(default_factory=dict)
    """Names and types of the columns, as Spark spells these. Needed. One that is added later is NULL in what was left
    before.
    Example: `columns: {customer: bigint, total: "decimal(18,2)"}`"""

    def shape(self, name: str) -> StateShape:
        """What is kept under ``name``, as checkpoints describe it."""
        return StateShape(
            name=name,
            kind=self.kind,
            columns=tuple(StateColumn(column, kind) for column, kind in self.columns.items()),
            key=self.key,
            hash_name=HASH_NAME if self.kind is StateKind.KEYED else None,
        )
