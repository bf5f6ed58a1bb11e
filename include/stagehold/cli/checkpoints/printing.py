"""How a checkpoint, and what differs between two, is printed: as a tree, as tables, or as one JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.filesize import decimal
from rich.text import Text
from rich.tree import Tree

from stagehold.cli.common.output import ShownTable, moment, print_document, print_table, print_tree
from stagehold.code.sql_job import shown_job
from stagehold.errors import UnknownName
from stagehold.errors.base import ranges
from stagehold.lake.checkpoints.encoding import RecordedPartition
from stagehold.lake.checkpoints.manifest import VERSION
from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint, OpenedStage
from stagehold.model.source_position import FilesRead, Position, write_position
from stagehold.model.standing import Amount
from stagehold.viewer.checkpoint_tree import (
    FileTrouble,
    HeldPart,
    PartitionLine,
    StageTree,
    StateTree,
    consumable_in,
    file_troubles,
    partition_lines,
    stage_tree,
)
from stagehold.viewer.diff import Changes, CheckpointDiff, PositionDiff, StageDiff, change_words
from stagehold.viewer.read_rows import Rows, plain, shown

if TYPE_CHECKING:
    from stagehold.viewer.row_diff import DifferingRows, RowDiff

FIRST = 5  # of a long list
PARTITION_COLUMNS = ("partition", "state", "rows", "bytes", "version", "wave", "seconds", "gate", "fingerprint", "key")

Troubles = Mapping[str, tuple[FileTrouble, ...]]  # by stage


def print_checkpoint(opened: OpenedCheckpoint, check: bool, as_json: bool) -> None:
    stages = tuple(map(stage_tree, opened.stages))
    troubles = {stage.name: file_troubles(opened.records(stage)) for stage in opened.stages} if check else {}
    if as_json:
        print_document(checkpoint_document(opened, stages, troubles))
        return
    root = Tree(Text(_title(opened), "bold"))
    for line in _about(opened, consumable_in(stages)):
        add(root, line)
    for stage in stages:
        _add_stage(root, stage, troubles.get(stage.shape.name))
    print_tree(root)


def print_stage(opened: OpenedCheckpoint, stage: OpenedStage, check: bool, as_json: bool) -> None:
    records = opened.records(stage)
    troubles, lines = file_troubles(records) if check else None, partition_lines(records)
    if as_json:
        each = partition_lines(records, len(records))
        print_document({**stage_document(stage_tree(stage), troubles), "partitions": [asdict(line) for line in each]})
        return
    root = Tree(Text(opened.address or _title(opened), "bold"))
    _add_stage(root, stage_tree(stage), troubles)
    print_tree(root)
    print_table("partitions", PARTITION_COLUMNS, map(_row, lines))


def print_partition(opened: OpenedCheckpoint, stage: OpenedStage, partition: int, check: bool, as_json: bool) -> None:
    records = {str(partition.record.partition): partition for partition in opened.records(stage)}
    if str(partition) not in records:
        raise UnknownName(f"partition of {stage.name} with a record", str(partition), [ranges([*map(int, records)])])
    found = records[str(partition)]
    troubles = file_troubles([found]) if check else None
    if as_json:
        verdicts = [asdict(verdict) for verdict in found.verdicts]
        missing = {} if troubles is None else {"file_troubles": [asdict(trouble) for trouble in troubles]}
        print_document({"stage": stage.name, **asdict(found.record), "verdicts": verdicts, **missing})
        return
    print_tree(_partition_tree(stage.name, found, troubles))


def print_answer(opened: OpenedCheckpoint, rows: Rows, as_json: bool) -> None:
    """The answer to a question; of what is not written, and so may be a part, with how much of each stage it is."""
    if opened.address:
        print_rows(rows, "", as_json)
        return
    stages = [stage_tree(stage) for stage in opened.stages]
    if as_json:
        told = {stage.shape.name: {"of": stage.parallelism, **asdict(stage.consumable)} for stage in stages}
        print_document({"consumable": told, "at": opened.manifest.taken_at, **rows_document(rows)})
        return
    cells = [(stage.shape.name, *_share(stage)) for stage in stages]
    typer.echo(f"Consumable at {moment(opened.manifest.taken_at)} UTC:")
    print_table("", ("stage", "partitions", "of", "rows"), cells)
    print_rows(rows, "", as_json)


def _share(stage: StageTree) -> tuple[str, str, str]:
    return f"{stage.consumable.partitions:,}", f"{stage.parallelism:,}", f"{stage.consumable.rows:,}"


def print_rows(rows: Rows, title: str, as_json: bool) -> None:
    if as_json:
        print_document(rows_document(rows))
        return
    found = rows_table(rows, title)
    print_table(title, found.columns, found.rows)
    for line in found.below:
        typer.echo(line)


def rows_table(rows: Rows, title: str) -> ShownTable:
    cells = [[shown(value) for value in row] for row in rows.rows]
    more = "; there are more, --limit shows them" if rows.more else ""
    return ShownTable(title, rows.columns, cells, (f"{len(cells)} rows{more}",))


def _title(opened: OpenedCheckpoint) -> str:
    manifest = opened.manifest
    if not opened.address:
        return f"what is there of {manifest.run.run_id}"
    return f"{manifest.kind.replace('_', ' ')} {manifest.name or manifest.number} of {manifest.run.run_id}"


def _about(opened: OpenedCheckpoint, consumable: Amount) -> Iterable[str]:
    manifest = opened.manifest
    place = f"pipeline {manifest.run.pipeline}, interval {manifest.run.interval}"
    if opened.address:
        yield f"{place}, number {manifest.number}"
        yield f"taken at {moment(manifest.taken_at)} UTC, format version {VERSION}"
        yield f"{opened.address}, with parts of {decimal(_bytes_of_parts(opened))}"
    else:
        yield f"{place}, at {moment(manifest.taken_at)} UTC"
    yield f"consumable: {_amount(consumable)}"


def _bytes_of_parts(opened: OpenedCheckpoint) -> int:
    """How large the checkpoint itself is, but for its manifest."""
    return sum(part.bytes for part in opened.manifest.parts)


def _add_stage(root: Tree, stage: StageTree, troubles: tuple[FileTrouble, ...] | None) -> None:
    shape = stage.shape
    named = shape.name if shape.name == shape.id else f"{shape.name} (id {shape.id})"
    branch = add(root, f"{named}: {_amount(stage.consumable)}", "bold")
    add(branch, f"job {shown_job(shape.job)}, parallelism {stage.parallelism}, max parallelism {stage.max_parallelism}")
    add(branch, _counts(stage))
    if stage.position is not None:
        _add_position(branch, stage.position)
    for state in stage.states:
        _add_state(branch, state)
    if troubles is not None:
        _add_troubles(branch, troubles)


def _counts(stage: StageTree) -> str:
    if not stage.amounts:
        return "partitions: none on record"
    counts = {state.value: amount.partitions for state, amount in stage.amounts.items()} | {"missing": stage.missing}
    return f"partitions: {', '.join(f'{count} {state}' for state, count in counts.items() if count)}"


def _add_position(branch: Tree, position: Position) -> None:
    if not isinstance(position, FilesRead):
        add(branch, f"source: {position}")
        return
    files = add(branch, f"source: {position}, {decimal(sum(file.bytes for file in position.files))}")
    add_some(files, [f"{file.path} {decimal(file.bytes)}" for file in position.files])


def _add_state(branch: Tree, state: StateTree) -> None:
    shape = state.shape
    of = f" by {', '.join(shape.key)}, hash {shape.hash_name}" if shape.key else ""
    node = add(branch, f"state {shape.name}, {shape.kind}{of}: {_amount(state.amount)}")
    add(node, ", ".join(f"{column.name} {column.type}" for column in shape.columns))
    add_some(node, list(map(_held, state.parts)))


def _held(part: HeldPart) -> str:
    groups = f", key groups {part.first_group}-{part.last_group}" if part.first_group is not None else ""
    return f"partition {part.partition}{groups}: {part.rows:,} rows, {decimal(part.bytes)}"


def _add_troubles(branch: Tree, troubles: tuple[FileTrouble, ...]) -> None:
    if not troubles:
        add(branch, "every file is there, as large as it was")
        return
    gone = sorted({trouble.partition for trouble in troubles})
    node = add(branch, f"files gone or of another size: partitions {ranges(gone)}", "red")
    add_some(node, [f"{trouble.path}: {_found(trouble)}" for trouble in troubles])


def _found(trouble: FileTrouble) -> str:
    return "gone" if trouble.found is None else f"{trouble.found:,} bytes, and not {trouble.bytes:,}"


def _partition_tree(stage: str, partition: RecordedPartition, troubles: tuple[FileTrouble, ...] | None) -> Tree:
    record = partition.record
    root = Tree(Text(f"{stage}[{record.partition}] {record.state}", "bold"))
    add(root, f"{record.rows:,} rows, {decimal(record.bytes)}, fingerprint {record.fingerprint}")
    add(root, f"version {record.version} of {record.table}")
    took = "" if record.seconds is None else f", {record.seconds:.3f} s"
    add(root, f"attempt {record.attempt_id} of run {record.run_id}, epoch {record.epoch}, wave {record.wave}{took}")
    add(root, f"recorded at {moment(record.recorded_at)} UTC, compute key {record.compute_key}")
    for text in (record.reason, "came out different, unexplained" if record.unexplained else None):
        if text:
            add(root, text)
    for verdict in partition.verdicts:
        said = "passed" if verdict.passed else "failed"
        add(root, f"gate {verdict.suite}: {verdict.expectation} {said}: {verdict.observed}")
    files = add(root, f"{len(record.files)} files")
    for file in record.files:
        add(files, f"{file.path} {file.rows:,} rows, {decimal(file.bytes)}")
    for part in record.kept:
        node = add(root, f"state {part.name}: {part.rows:,} rows, fingerprint {part.fingerprint}")
        for file in part.files:
            add(node, f"{file.path} {file.rows:,} rows, {decimal(file.bytes)}")
    if troubles is not None:
        _add_troubles(root, troubles)
    return root


def add_some(node: Tree, lines: list[str]) -> None:
    """The first of them, and how many there are more."""
    for line in lines[:FIRST]:
        add(node, line)
    if len(lines) > FIRST:
        add(node, f"... and {len(lines) - FIRST:,} more")


def add(tree: Tree, line: str, style: str = "") -> Tree:
    """A new branch, with the line as it is."""
    return tree.add(Text(line, style))


def _amount(amount: Amount) -> str:
    return f"{amount.partitions:,} partitions, {amount.rows:,} rows, {decimal(amount.bytes)}"


def _row(line: PartitionLine) -> tuple[str, ...]:
    failed = ", ".join(f"{result.expectation} failed: {result.observed}" for result in line.failed)
    return (
        str(line.first) if line.first == line.last else f"{line.first}-{line.last}",
        line.state,
        f"{line.rows:,}",
        decimal(line.bytes),
        "" if line.version is None else str(line.version),
        str(line.wave),
        "" if line.seconds is None else f"{line.seconds:.3f}",
        "; ".join(text for text in (f"{line.passed} passed" if line.passed else "", failed) if text),
        line.fingerprint or "...",
        line.compute_key or "...",
    )


def checkpoint_document(opened: OpenedCheckpoint, stages: Sequence[StageTree], troubles: Troubles) -> dict[str, Any]:
    manifest = opened.manifest
    return {
        "version": VERSION,
        "kind": manifest.kind,
        "name": manifest.name,
        "number": manifest.number,
        "taken_at": manifest.taken_at,
        "address": opened.address,
        "bytes_of_parts": _bytes_of_parts(opened),
        **vars(manifest.run),
        "consumable": asdict(consumable_in(stages)),
        "stages": [stage_document(stage, troubles.get(stage.shape.name)) for stage in stages],
    }


def stage_document(stage: StageTree, troubles: tuple[FileTrouble, ...] | None) -> dict[str, Any]:
    checked = {} if troubles is None else {"file_troubles": [asdict(trouble) for trouble in troubles]}
    return {
        **vars(stage.shape),
        "reads": sorted(stage.shape.reads),
        "parallelism": stage.parallelism,
        "max_parallelism": stage.max_parallelism,
        "amounts": {state.value: asdict(amount) for state, amount in stage.amounts.items()},
        "missing": stage.missing,
        "position": None if stage.position is None else write_position(stage.position),
        "states": [asdict(state) for state in stage.states],
        **checked,
    }


def rows_document(rows: Rows) -> dict[str, Any]:
    return {
        "columns": dict(zip(rows.columns, rows.types, strict=True)),
        "rows": [{name: plain(value) for name, value in zip(rows.columns, row, strict=True)} for row in rows.rows],
        "more": rows.more,
    }


def print_diff(diff: CheckpointDiff, rows: RowDiff | None, as_json: bool) -> None:
    if as_json:
        print_document({**asdict(diff), "alike": diff.alike, "rows": _row_diff_document(rows)})
        return
    root = Tree(Text("what differs" if not diff.alike else "nothing differs", "bold"))
    add(root, f"A {diff.a}")
    add(root, f"B {diff.b}")
    for side, stages in (("A", diff.only_in_a), ("B", diff.only_in_b)):
        if stages:
            add(root, f"stages only in {side}: {', '.join(stages)}")
    for stage in diff.stages:
        _add_stage_diff(root, stage)
    print_tree(root)
    if rows is not None:
        _print_row_diff(rows)


def _add_stage_diff(root: Tree, diff: StageDiff) -> None:
    branch = add(root, diff.name, "bold")
    if not diff.cut_alike:
        (a, b), (most_a, most_b) = diff.parallelism, diff.max_parallelism
        add(branch, f"parallelism {a} in A and {b} in B, max parallelism {most_a} and {most_b}")
    _add_changes(branch, diff.partitions)
    if diff.position is not None:
        _add_position_diff(branch, diff.position)
    for state in diff.states:
        node = add(branch, f"state {state.name}{', declared otherwise' if state.declared_otherwise else ''}")
        _add_changes(node, state.partitions)


def _add_changes(branch: Tree, changes: Changes) -> None:
    for words, partitions in change_words(changes):
        add(branch, f"{len(partitions):,} partitions {words}: {ranges(partitions)}")


def _add_position_diff(branch: Tree, diff: PositionDiff) -> None:
    node = add(branch, f"source: {diff.a or 'nothing'} in A, {diff.b or 'nothing'} in B")
    for words, paths in (("only in A", diff.only_in_a), ("only in B", diff.only_in_b), ("changed", diff.changed)):
        if paths:
            add_some(add(node, f"{len(paths):,} files {words}"), list(paths))


def _print_row_diff(rows: RowDiff) -> None:
    for side, columns in (("A", rows.only_in_a), ("B", rows.only_in_b)):
        if columns:
            typer.echo(f"columns only in {side}, not compared: {', '.join(columns)}")
    for words, difference in (("only in A", rows.removed), ("only in B", rows.added), ("changed", rows.changed)):
        if difference is not None:
            _print_difference(words, difference)


def _print_difference(words: str, difference: DifferingRows) -> None:
    count, examples = difference
    typer.echo(f"{count:,} rows {words}")
    if count:
        print_table("", examples.columns, [[shown(value) for value in row] for row in examples.rows])


def _row_diff_document(rows: RowDiff | None) -> dict[str, Any] | None:
    if rows is None:
        return None
    parts = {"removed": rows.removed, "added": rows.added, "changed": rows.changed}
    counted = {
        name: None if part is None else {"count": part[0], "first": rows_document(part[1])["rows"]}
        for name, part in parts.items()
    }
    return {"key": rows.key, "only_in_a": rows.only_in_a, "only_in_b": rows.only_in_b, **counted}
