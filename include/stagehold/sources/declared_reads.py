"""What stages read beside their inputs: a hash of each declared read, which changes with what is read, and the
undeclared reads with what their author is told about them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

from stagehold.code.side_reads import SideRead
from stagehold.code.unchanging_files import found_once, look_anew
from stagehold.errors import ReadMissing, UndeclaredRead
from stagehold.lake.commit.delta_log import open_table, table_exists
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.model.context import StageFile
from stagehold.model.keys.compute_key import DeclaredRead, ReadKind, digest
from stagehold.model.source_position import SourceFile
from stagehold.sources.source_files import SourceRoots, is_place
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.reads import Reads
from stagehold.spec.yaml import read_document

READ = "read"  # how names of declared files begin, in what is found once
NOT_SET = "not set"  # in place of a hash
READS_FIELDS = {ReadKind.ENV: "env", ReadKind.FILE: "files", ReadKind.TABLE: "tables"}  # of `reads`
INSTEAD = {ReadKind.ENV: "NAME", ReadKind.FILE: "PATH", ReadKind.TABLE: "TABLE"}  # of what nobody knows yet
PLAIN_IN_YAML = re.compile(r"(?!(?i:true|false|yes|no|on|off|null|y|n)$)[A-Za-z_][\w./-]*")


def declared_reads(
    stage: Stage, pipeline: Pipeline, roots: SourceRoots, environment: Mapping[str, str] = os.environ
) -> tuple[DeclaredRead, ...]:
    """Every read that the stage declares, each with a hash of what it is now. Values of variables go into nothing but
    the hash.

    Within `unchanging_files` files are what they are when they are first asked for, or behind `look_at_reads_anew`;
    `changed_files` tells of those that changed later. A table that changes before the function reads it is found by the
    next plan: versions only grow.

    :raises ReadMissing: a path matches no file, or there is no such table
    """
    reads = pipeline.reads_of(stage)
    found = [DeclaredRead(ReadKind.ENV, name, _variable(environment.get(name))) for name in reads.env]
    for path in reads.files:
        content = _content_at_first(path, roots)
        field = ("files",) if path in stage.files else ("reads", "files")
        found.append(DeclaredRead(ReadKind.FILE, path, content or _missing(stage, pipeline, field, path)))
    for table in reads.tables:
        content = _version_of_table(roots.table(table))
        field = ("reads", "tables")
        found.append(DeclaredRead(ReadKind.TABLE, table, content or _missing(stage, pipeline, field, table)))
    return tuple(found)


def changed_files(stage: Stage, pipeline: Pipeline, roots: SourceRoots) -> tuple[str, ...]:
    """The files of `declared_reads` that have changed since it found them, within the same `unchanging_files`."""
    files = pipeline.reads_of(stage).files
    return tuple(path for path in files if _content_of_files(path, roots) != _content_at_first(path, roots))


def look_at_reads_anew() -> None:
    """For a plan of stages that may read what others have written since the last one."""
    look_anew(READ)


def stage_files(stage: Stage, project: Path) -> Mapping[str, StageFile]:
    """The `files` of a stage by path, each with the name under which workers have its content."""
    places = {path: project / path for path in stage.files}
    return {path: StageFile(str(file), f"{_hash_now(file)[:16]}-{file.name}") for path, file in places.items()}


def _hash_now(file: Path) -> str:
    facts = file.stat()
    return _hash_of_file(str(file), facts.st_size, f"{facts.st_mtime_ns} {facts.st_ctime_ns}")


def _variable(value: str | None) -> str:
    return NOT_SET if value is None else digest((value,))


def _content_at_first(pattern: str, roots: SourceRoots) -> str | None:
    return found_once((READ, pattern), lambda: _content_of_files(pattern, roots))


def _content_of_files(pattern: str, roots: SourceRoots) -> str | None:
    """A hash of the files that a pattern means; None where there is no file."""
    files = roots.files(pattern)
    return digest(part for file in files for part in (roots.short(file.path), _content(file))) if files else None


def _content(file: SourceFile) -> str:
    """A hash of the content of a file on this machine; in an object store, of the facts that tell it."""
    if file.path.startswith(OBJECT_STORE):
        return f"{file.bytes} {file.version}"
    return _hash_now(Path(file.path))


@lru_cache(maxsize=1024)
def _hash_of_file(path: str, size: int, version: str) -> str:  # noqa: ARG001
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version_of_table(uri: str) -> str | None:
    """A hash of a table's identity and version; None where there is no table."""
    if not table_exists(uri):
        return None
    table = open_table(uri)
    return digest((str(table.metadata().id), str(table.version())))


def _missing(stage: Stage, pipeline: Pipeline, field: tuple[str, ...], name: str) -> NoReturn:
    """:raises ReadMissing: with the place where the pipeline's file declares it, as far as there is a file"""
    place, line = ("stages", stage.name, *field), None
    if Path(pipeline.file).is_file():
        document = read_document(Path(pipeline.file))
        index = getattr(stage if len(field) == 1 else stage.reads, field[-1]).index(name)
        line = document.line((*place, str(index)))
    where = pipeline.file if line is None else f"{pipeline.file}:{line}"
    raise ReadMissing(stage.name, where, field=".".join(place), given=name)


def undeclared(found: Sequence[SideRead], reads: Reads, roots: SourceRoots) -> tuple[SideRead, ...]:
    """The undeclared ones of the reads ``found``, each once, with paths relative to their root.

    A read without a name is covered by any declaration of its kind, since that may be what it names.
    """
    left = [_shortened(read, roots) for read in found if not _is_declared(read, reads, roots)]
    named = {(read.kind, read.place) for read in left if read.name is not None}
    first: dict[tuple[ReadKind, str], SideRead] = {}
    for read in left:
        if read.name is not None:
            first.setdefault((read.kind, read.name), read)
        elif (read.kind, read.place) not in named:  # where somebody saw what it was
            first.setdefault((read.kind, f"at {read.place}"), read)
    return tuple(first.values())


def side_read_text(stage: str, read: SideRead) -> str:
    """The warning about a read where `reads` is not strict."""
    return (
        f"{stage} reads {read}, which its `reads` does not declare: a change of it is not seen, and old data is "
        f"reused; take it from an input, or add `reads: {_declaration(Reads(), (read,), None)}` to the stage"
    )


def undeclared_error(pipeline: Pipeline, found: Mapping[str, Sequence[SideRead]]) -> UndeclaredRead:
    """The refusal of stages with `reads: strict`, given by name with the reads that were found in each."""
    texts = {stage: [f"{stage} reads {read}" for read in reads] for stage, reads in found.items()}
    lines = {}
    for stage, reads in found.items():
        declared = pipeline.stage(stage)
        lines[stage] = _declaration(pipeline.reads_of(declared), reads, declared.reads.undeclared)
    return UndeclaredRead(texts, lines)


def _declaration(reads: Reads, found: Sequence[SideRead], undeclared: str | None) -> str:
    """What ``reads`` would be with these, in YAML."""
    fields = {
        field: dict.fromkeys((*getattr(reads, field), *(_name(read) for read in found if read.kind is kind)))
        for kind, field in READS_FIELDS.items()
    }
    parts = [f"{field}: [{', '.join(map(_in_yaml, names))}]" for field, names in fields.items() if names]
    return f"{{{', '.join([*parts, *([f'undeclared: {undeclared}'] if undeclared else [])])}}}"


def _name(read: SideRead) -> str:
    return INSTEAD[read.kind] if read.name is None else read.name


def _in_yaml(name: str) -> str:
    return name if PLAIN_IN_YAML.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _is_declared(read: SideRead, reads: Reads, roots: SourceRoots) -> bool:
    if read.name is None:
        return bool(getattr(reads, READS_FIELDS[read.kind]))
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


def _address(path: str, roots: SourceRoots) -> str:
    """A path that code or Spark uses, in a form that does not depend on the current folder."""
    text = re.sub(r"^s3[an]://", OBJECT_STORE, re.sub(r"^file:(//)?(?=/)", "", path))
    if "://" in text and not text.startswith(OBJECT_STORE):
        return text
    address = roots.address(text)
    return address if address.startswith(OBJECT_STORE) else os.path.normpath(address)


def _shortened(read: SideRead, roots: SourceRoots) -> SideRead:
    if read.name is None or read.kind is ReadKind.ENV or (read.kind is ReadKind.TABLE and not is_place(read.name)):
        return read
    return replace(read, name=roots.short(_address(read.name, roots)))
