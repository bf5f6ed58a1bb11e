"""What is in a checkpoint as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from stagehold.model.source_position import write_position
from stagehold.viewer.checking import FileTrouble
from stagehold.viewer.checkpoint_tree import CheckpointTree, StageTree
from stagehold.viewer.read_rows import Rows, plain

Troubles = Mapping[str, tuple[FileTrouble, ...]]  # by stage


def checkpoint_document(tree: CheckpointTree, troubles: Troubles) -> dict[str, Any]:
    stages = [stage_document(stage, troubles.get(stage.shape.name)) for stage in tree.stages]
    run = vars(tree.run)
    facts = {name: value for name, value in vars(tree).items() if name not in ("run", "stages")}
    return {**facts, **run, "consumable": asdict(tree.consumable), "stages": stages}


def stage_document(stage: StageTree, troubles: tuple[FileTrouble, ...] | None) -> dict[str, Any]:
    checked = {} if troubles is None else {"file_troubles": [asdict(one) for one in troubles]}
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
