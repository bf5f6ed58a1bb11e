"""What a gate has said of all partitions of a stage together, found by their content; and which data of other code
counts as made by the present code, because somebody accepted it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stagehold.model.choices import Acceptance
from stagehold.model.keys.compute_key import ComputeKey, KeyPart, digest
from stagehold.model.records import PartitionRecord, StageVerdict


def content_of(records: Iterable[PartitionRecord]) -> str:
    """Equal for equal content of all partitions of a stage."""
    ordered = sorted(records, key=lambda record: record.partition)
    return digest(text for record in ordered for text in (str(record.partition), record.fingerprint))


def verdict_on(content: str, judged: str, verdicts: Sequence[StageVerdict]) -> StageVerdict | None:
    """The newest verdict on this content by these expectations: whoever computed it, it need not be judged again.

    :param verdicts: what is on record of what a stage's gate said of all partitions, oldest first.
    """
    alike = (verdict for verdict in reversed(verdicts) if (verdict.fingerprint, verdict.judged) == (content, judged))
    return next(alike, None)


def last_verdict_on(content: str, verdicts: Sequence[StageVerdict]) -> StageVerdict | None:
    """What was said of this content last, by whatever expectations."""
    return next((verdict for verdict in reversed(verdicts) if verdict.fingerprint == content), None)


def acceptance_of(
    recorded: str, present: str, words: Sequence[Acceptance], part: KeyPart = KeyPart.CODE
) -> Acceptance | None:
    """The word by which data of the ``recorded`` code, or other ``part`` of keys, counts under the ``present`` one,
    maybe through further ones; the newest wins.
    """
    good: dict[str, Acceptance | None] = {present: None}
    while word := next(
        (
            acceptance
            for acceptance in reversed(words)
            if acceptance.part == part and acceptance.accepted_code in good and acceptance.recorded_code not in good
        ),
        None,
    ):
        good[word.recorded_code] = word
    return good.get(recorded)


def code_to_accept(records: Iterable[PartitionRecord], present: str, words: Sequence[Acceptance]) -> tuple[str, ...]:
    """Other code that made consumable ``records`` and does not count yet. Accepting it cannot undo a gate's refusal."""
    keys = (ComputeKey.parse(record.compute_key) for record in records if record.state.counts_as_done)
    made_by = dict.fromkeys(key.code for key in keys if key and key.code)
    return tuple(code for code in made_by if code != present and acceptance_of(code, present, words) is None)
