"""How differences between two checkpoints are printed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text
from rich.tree import Tree

from stagehold.cli.checkpoints.documents import rows_document
from stagehold.cli.checkpoints.printing import add, add_some
from stagehold.cli.common.output import print_document, print_table, print_tree
from stagehold.errors.base import ranges
from stagehold.viewer.diff import Changes, CheckpointDiff, PositionDiff, StageDiff, change_words
from stagehold.viewer.read_rows import shown

if TYPE_CHECKING:
    from stagehold.viewer.row_diff import DifferingRows, RowDiff


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
    typer.echo(f"{difference.count:,} rows {words}")
    if difference.count:
        examples = [[shown(value) for value in row] for row in difference.examples.rows]
        print_table("", difference.examples.columns, examples)


def _row_diff_document(rows: RowDiff | None) -> dict[str, Any] | None:
    if rows is None:
        return None
    parts = {"removed": rows.removed, "added": rows.added, "changed": rows.changed}
    counted = {
        name: None if part is None else {"count": part.count, "first": rows_document(part.examples)["rows"]}
        for name, part in parts.items()
    }
    return {"key": rows.key, "only_in_a": rows.only_in_a, "only_in_b": rows.only_in_b, **counted}
