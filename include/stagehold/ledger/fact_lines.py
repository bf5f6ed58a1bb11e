"""Facts as lines of a file: a line for each, behind a line with their number and checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from stagehold.ledger.database.column_types import written_part
from stagehold.ledger.kinds import BY_TYPE, BY_WORD
from stagehold.model.records import Fact, PartitionRecord

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MARK = "stagehold_ledger"
VERSION = 1
# Fields that were added since, with what a line without them means.
LATER = {"untold": False, "part": "code", "counted": [], "storing": None}


def to_lines(facts: Sequence[Fact]) -> bytes:
    """A file of the chronicle."""
    lines = b"".join(_line(fact) for fact in facts)
    head = {MARK: VERSION, "facts": len(facts), "sha256": hashlib.sha256(lines).hexdigest()}
    return json.dumps(head).encode() + b"\n" + lines


def from_lines(content: bytes) -> tuple[Fact, ...]:
    """What `to_lines` wrote.

    :raises ValueError: it is something else.
    """
    head, _, lines = content.partition(b"\n")
    said = json.loads(head)
    if not isinstance(said, dict) or MARK not in said:
        raise ValueError("it does not begin as a file of the chronicle does")
    if said[MARK] != VERSION:
        raise ValueError(f"its format is {said[MARK]}; this Stagehold knows format {VERSION}")
    if said.get("sha256") != hashlib.sha256(lines).hexdigest():
        raise ValueError("its content does not match its checksum")
    return tuple(_fact(json.loads(line)) for line in lines.splitlines())


def _line(fact: Fact) -> bytes:
    kind = BY_TYPE[type(fact)]
    said = _form(kind.word).dump_python(fact, mode="json")
    facts = {name: value for name, value in said.items() if name not in LATER or value != LATER[name]}
    if isinstance(fact, PartitionRecord):
        facts["kept"] = [written_part(part) for part in fact.kept]
    return json.dumps({"kind": kind.word, **facts}).encode() + b"\n"


def _fact(said: dict[str, Any]) -> Fact:
    fact: Fact = _form(said.pop("kind")).validate_python(said)
    return fact


@cache
def _form(word: str) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # here, as who only reads the ledger needs none of it

    return TypeAdapter(BY_WORD[word].type)
