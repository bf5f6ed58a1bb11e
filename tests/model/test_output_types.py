from __future__ import annotations

import pytest

from stagehold.model.output_types import ReleasedBy, properties_of
from stagehold.model.spec import OutputType

TABLE = [
    # type, consumed while produced, re-consumable, bounded, persistent, released by
    (OutputType.BLOCKING, False, True, False, False, ReleasedBy.SCHEDULER),
    (OutputType.BLOCKING_PERSISTENT, False, True, False, True, ReleasedBy.SCHEDULER),
    (OutputType.PIPELINED, True, False, False, False, ReleasedBy.PRODUCER),
    (OutputType.PIPELINED_BOUNDED, True, False, True, False, ReleasedBy.PRODUCER),
]


@pytest.mark.parametrize(("output_type", "while_produced", "reconsumable", "bounded", "persistent", "released_by"), TABLE)
def test_each_type_keeps_its_promises(output_type, while_produced, reconsumable, bounded, persistent, released_by):
    properties = properties_of(output_type)
    assert properties.consumed_while_produced is while_produced
    assert properties.reconsumable is reconsumable
    assert properties.bounded is bounded
    assert properties.persistent is persistent
    assert properties.released_by is released_by


def test_every_type_has_properties_and_the_stored_ones_are_those_not_consumed_while_produced():
    assert {kind for kind in OutputType if not properties_of(kind).consumed_while_produced} == {kind for kind in OutputType if kind.stored}
