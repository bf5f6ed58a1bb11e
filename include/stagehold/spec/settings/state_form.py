"""What a stage keeps from interval to interval, as its pipeline's file declares it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from stagehold.model.keys.key_groups import HASH_NAME
from stagehold.model.stage_state import StateColumn, StateKind, StateShape
from stagehold.spec.settings.fields import Columns, ColumnType, SpecPart


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
