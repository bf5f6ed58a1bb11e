"""The manifest of a checkpoint: JSON with everything but the partitions, and with references to the parts that have
those.

A manifest has only one form, canonical JSON: whatever is read must give the same bytes when it is written again. That
finds what a checksum does not: a key that is there twice, or an edit by somebody who mended the checksum along with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.stage_ids import StageShape
from stagehold.errors import CheckpointCorrupt, CheckpointTooNew
from stagehold.model.source_position import Position, read_position, write_position
from stagehold.model.stage_state import StateShape

FORMAT = "stagehold-checkpoint"
VERSION = 1
PARTITIONS_PER_PART = 500  # of version 1: parts are found again by the partition they begin with


@dataclass(frozen=True)
class CheckpointedRun:
    """The run that the checkpoints belong to."""

    pipeline: str
    interval: str
    run_id: str


@dataclass(frozen=True)
class PartReference:
    """A stored part: those partitions from ``first`` on that have a record. ``written_by`` is the number of the
    checkpoint that it was written for; later checkpoints may refer to it too.
    """

    written_by: int
    sha256: str
    bytes: int
    first: int
    partitions: int

    @property
    def file(self) -> str:
        return f"parts/{self.written_by:010d}-{self.sha256}.parquet"

    @property
    def covers(self) -> range:
        return range(self.first, self.first + PARTITIONS_PER_PART)


@dataclass(frozen=True)
class StageManifest:
    """A stage in a manifest, with references to parts in the place of its partitions."""

    shape: StageShape
    parallelism: int
    max_parallelism: int
    parts: tuple[PartReference, ...]
    states: tuple[StateShape, ...]
    position: Position | None


@dataclass(frozen=True)
class Manifest:
    """``spec`` is the pipeline as it was, for people and programs that have neither its code nor the ledger. ``lake``
    is where the lake was then: if the manifest is now found elsewhere, everything below that root has moved along with
    it.
    """

    number: int
    kind: SnapshotKind
    name: str | None
    run: CheckpointedRun
    lake: str
    taken_at: datetime
    spec: Mapping[str, Any]
    stages: tuple[StageManifest, ...]

    def continued(self, stage_id: str, parallelism: int, max_parallelism: int) -> StageManifest | None:
        """The stage, unless it was cut differently: then its partitions are others."""
        wanted = (stage_id, parallelism, max_parallelism)
        found = (stage for stage in self.stages if (stage.shape.id, stage.parallelism, stage.max_parallelism) == wanted)
        return next(found, None)

    @property
    def parts(self) -> tuple[PartReference, ...]:
        return tuple(part for stage in self.stages for part in stage.parts)


def encode_manifest(manifest: Manifest) -> bytes:
    facts = {
        **{"format": FORMAT, "version": VERSION, **vars(manifest.run), "number": manifest.number},
        **{"kind": manifest.kind, "name": manifest.name, "taken_at": manifest.taken_at.isoformat()},
        **{"lake": manifest.lake, "spec": manifest.spec, "stages": [_stage_facts(stage) for stage in manifest.stages]},
    }
    return _canonical({**facts, "checksum": _checksum(facts)})


def decode_manifest(content: bytes, number: int, file: str) -> Manifest:
    """
    :param number: and ``file`` are what an error names.
    :raises CheckpointCorrupt: it is not, to the last byte, what `encode_manifest` wrote.
    """
    facts = _facts(content, number, file)
    told = facts.pop("checksum", None)
    if told != _checksum(facts):
        raise CheckpointCorrupt(number, f"{file} has another checksum than the one in it")
    try:
        manifest = _manifest(facts)
        problem = None if encode_manifest(manifest) == content else "is not written as Stagehold writes it"
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        problem = f"says what cannot be ({error!r})"
    if problem:
        raise CheckpointCorrupt(number, f"{file} {problem}; it was changed by hand")
    return manifest


def _facts(content: bytes, number: int, file: str) -> dict[str, Any]:
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointCorrupt(number, f"{file} is no JSON, it was cut off or changed ({error})") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise CheckpointCorrupt(number, f"{file} is no manifest of a checkpoint")
    version = facts.get("version")
    if isinstance(version, int) and version > VERSION:
        raise CheckpointTooNew(number, file, version, VERSION)
    return facts


def _canonical(facts: Any) -> bytes:
    return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()


def _checksum(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(facts)).hexdigest()


def _stage_facts(stage: StageManifest) -> dict[str, Any]:
    return {
        **vars(stage.shape),
        "reads": sorted(stage.shape.reads),
        "parallelism": stage.parallelism,
        "max_parallelism": stage.max_parallelism,
        "parts": [{**vars(part), "file": part.file} for part in stage.parts],
        "states": [{**vars(state), "columns": [vars(column) for column in state.columns]} for state in stage.states],
        "position": None if stage.position is None else write_position(stage.position),
    }


def _manifest(facts: Mapping[str, Any]) -> Manifest:
    return Manifest(
        number=int(facts["number"]),
        kind=SnapshotKind(facts["kind"]),
        name=None if facts["name"] is None else str(facts["name"]),
        run=CheckpointedRun(str(facts["pipeline"]), str(facts["interval"]), str(facts["run_id"])),
        lake=str(facts["lake"]),
        taken_at=datetime.fromisoformat(facts["taken_at"]),
        spec=dict(facts["spec"]),
        stages=tuple(map(_stage, facts["stages"])),
    )


def _stage(facts: Mapping[str, Any]) -> StageManifest:
    named = {name: str(facts[name]) for name in ("id", "name", "job")}
    return StageManifest(
        shape=StageShape(**named, reads=frozenset(map(str, facts["reads"]))),
        parallelism=int(facts["parallelism"]),
        max_parallelism=int(facts["max_parallelism"]),
        parts=_in_order(tuple(map(_part, facts["parts"]))),
        states=tuple(map(StateShape.of, facts["states"])),
        position=None if facts["position"] is None else read_position(facts["position"]),
    )


def _in_order(parts: tuple[PartReference, ...]) -> tuple[PartReference, ...]:
    firsts = [part.first for part in parts]
    if firsts != sorted(set(firsts)) or any(first % PARTITIONS_PER_PART for first in firsts):
        raise ValueError(f"parts that begin with {firsts}")
    return parts


def _part(facts: Mapping[str, Any]) -> PartReference:
    numbers = {name: int(facts[name]) for name in ("written_by", "bytes", "first", "partitions")}
    return PartReference(**numbers, sha256=bytes.fromhex(facts["sha256"]).hex())
