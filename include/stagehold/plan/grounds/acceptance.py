"""Which data of other code counts as made by the present one, because somebody said so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.records import Acceptance, PartitionRecord


def acceptance_of(recorded: str, present: str, words: Sequence[Acceptance]) -> Acceptance | None:
    """The word by which data of the ``recorded`` code counts under the ``present`` one, maybe through further ones;
    the newest wins.
    """
    good: dict[str, Acceptance | None] = {present: None}
    while word := next(
        (one for one in reversed(words) if one.accepted_code in good and one.recorded_code not in good), None
    ):
        good[word.recorded_code] = word
    return good.get(recorded)


def code_to_accept(records: Iterable[PartitionRecord], present: str, words: Sequence[Acceptance]) -> tuple[str, ...]:
    """Code that made consumable ``records`` and does not count yet. A gate's refusal is not accepted away."""
    keys = (ComputeKey.parse(record.compute_key) for record in records if record.state.counts_as_done)
    made_by = dict.fromkeys(key.code for key in keys if key and key.code)
    return tuple(code for code in made_by if code != present and acceptance_of(code, present, words) is None)
