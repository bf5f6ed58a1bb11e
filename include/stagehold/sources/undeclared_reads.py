"""Which reads of a stage no `reads` declares, and what its author is told of them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from stagehold.code.side_reads import SideRead
from stagehold.errors import UndeclaredRead
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.model.keys.compute_key import ReadKind
from stagehold.sources.declared_reads import ReadRoots, is_place
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.source import Reads

FIELDS = {ReadKind.ENV: "env", ReadKind.FILE: "files", ReadKind.TABLE: "tables"}  # of `reads`
INSTEAD = {ReadKind.ENV: "NAME", ReadKind.FILE: "PATH", ReadKind.TABLE: "TABLE"}  # of what nobody knows yet
PLAIN_IN_YAML = re.compile(r"(?!(?i:true|false|yes|no|on|off|null|y|n)$)[A-Za-z_][\w./-]*")


def undeclared(found: Sequence[SideRead], reads: Reads, roots: ReadRoots) -> tuple[SideRead, ...]:
    """Those of ``found`` that are not declared, each once, with paths as they are called from their root.

    What has no name is covered by any declaration of its kind: that names what it may be.
    """
    left = [_shortened(one, roots) for one in found if not _is_declared(one, reads, roots)]
    named = {(one.kind, one.place) for one in left if one.name is not None}
    first: dict[tuple[ReadKind, str], SideRead] = {}
    for one in left:
        if one.name is not None:
            first.setdefault((one.kind, one.name), one)
        elif (one.kind, one.place) not in named:  # where somebody saw what it was
            first.setdefault((one.kind, f"at {one.place}"), one)
    return tuple(first.values())


def side_read_text(stage: str, read: SideRead) -> str:
    """What is said of a read that is only told."""
    return (
        f"{stage} reads {read}, which its `reads` does not declare: a change of it is not seen, and old data is "
        f"reused; take it from an input, or add `reads: {_declaration(Reads(), (read,), None)}` to the stage"
    )


def undeclared_error(pipeline: Pipeline, found: Mapping[str, Sequence[SideRead]]) -> UndeclaredRead:
    """For stages with `reads: strict`, by name, and what was found in them."""
    texts = {stage: [f"{stage} reads {one}" for one in reads] for stage, reads in found.items()}
    lines = {}
    for stage, reads in found.items():
        declared = pipeline.stage(stage)
        lines[stage] = _declaration(pipeline.reads_of(declared), reads, declared.reads.undeclared)
    return UndeclaredRead(texts, lines)


def _declaration(reads: Reads, found: Sequence[SideRead], undeclared: str | None) -> str:
    """What ``reads`` would be with these, in YAML."""
    fields = {
        field: dict.fromkeys((*getattr(reads, field), *(_name(one) for one in found if one.kind is kind)))
        for kind, field in FIELDS.items()
    }
    parts = [f"{field}: [{', '.join(map(_in_yaml, names))}]" for field, names in fields.items() if names]
    return f"{{{', '.join([*parts, *([f'undeclared: {undeclared}'] if undeclared else [])])}}}"


def _name(read: SideRead) -> str:
    return INSTEAD[read.kind] if read.name is None else read.name


def _in_yaml(name: str) -> str:
    return name if PLAIN_IN_YAML.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _is_declared(read: SideRead, reads: Reads, roots: ReadRoots) -> bool:
    if read.name is None:
        return bool(getattr(reads, FIELDS[read.kind]))
    if read.kind is ReadKind.ENV:
        return read.name in reads.env
    if read.kind is ReadKind.TABLE and not is_place(read.name):
        return _table_name(read.name) in {_table_name(name) for name in reads.tables}
    address = _address(read.name, roots)
    places = (*reads.files, *filter(is_place, reads.tables))
    return any(roots.means(place, address) for place in places) or address in map(roots.table, reads.tables)


def _table_name(name: str) -> str:
    """A table's name as Spark compares it, without its catalog."""
    return ".".join(name.lower().replace("`", "").split(".")[-2:])


def _address(path: str, roots: ReadRoots) -> str:
    """A path as code or Spark calls it, as one that does not depend on the current folder."""
    text = re.sub(r"^s3[an]://", OBJECT_STORE, re.sub(r"^file:(//)?(?=/)", "", path))
    if "://" in text and not text.startswith(OBJECT_STORE):
        return text
    address = roots.address(text)
    return address if address.startswith(OBJECT_STORE) else os.path.normpath(address)


def _shortened(read: SideRead, roots: ReadRoots) -> SideRead:
    if read.name is None or read.kind is ReadKind.ENV or (read.kind is ReadKind.TABLE and not is_place(read.name)):
        return read
    return replace(read, name=roots.short(_address(read.name, roots)))
