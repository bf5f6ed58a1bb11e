"""What each output type promises to its readers and to those who delete it.

type                 consumed              re-consumable  bounded  persistent  released by
blocking             after it is finished  yes            no       no          scheduler
blocking_persistent  after it is finished  yes            no       yes         scheduler
pipelined            while it is produced  no             no       no          producer
pipelined_bounded    while it is produced  no             yes      no          producer
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from stagehold.model.spec import OutputType


class ReleasedBy(StrEnum):
    """Who deletes an output: the scheduler once no reader needs it, or its producer once it was read."""

    SCHEDULER = "scheduler"
    PRODUCER = "producer"


@dataclass(frozen=True, kw_only=True)
class OutputProperties:
    """The promises of one output type.

    :param consumed_while_produced: the reader must run together with the producer, so both are in one region.
    :param reconsumable: a restarted reader can read it again.
    :param bounded: only a bounded part of it exists at any time.
    :param persistent: it belongs to the user when the run has finished, and is never released early.
    """

    consumed_while_produced: bool
    reconsumable: bool
    bounded: bool
    persistent: bool
    released_by: ReleasedBy


def _stored(*, persistent: bool) -> OutputProperties:
    return OutputProperties(
        consumed_while_produced=False, reconsumable=True, bounded=False, persistent=persistent, released_by=ReleasedBy.SCHEDULER
    )


def _streamed(*, bounded: bool) -> OutputProperties:
    return OutputProperties(
        consumed_while_produced=True, reconsumable=False, bounded=bounded, persistent=False, released_by=ReleasedBy.PRODUCER
    )


OUTPUT_PROPERTIES: Mapping[OutputType, OutputProperties] = {
    OutputType.BLOCKING: _stored(persistent=False),
    OutputType.BLOCKING_PERSISTENT: _stored(persistent=True),
    OutputType.PIPELINED: _streamed(bounded=False),
    OutputType.PIPELINED_BOUNDED: _streamed(bounded=True),
}


def properties_of(output_type: OutputType) -> OutputProperties:
    return OUTPUT_PROPERTIES[output_type]
