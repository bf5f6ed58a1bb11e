"""The property: a case has one outcome, in one wave, in waves of one, after any loss,
and for any number of partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fuzz.metamorphic.answers import Answer, Outcome, Refusal, Rows, difference
from fuzz.metamorphic.case import Case, Trap, Variant
from fuzz.metamorphic.laboratory import Laboratory, Trial

from stagehold.errors import InvalidSpec

COUNTS = (1, 2, 5, 16)
LOSE_SOURCES = 0.25
# these may have more or fewer columns than the key, which the file shows
OTHER_COLUMNS = (Trap.FINER, Trap.OTHER, Trap.NULL_SIDE)
# refusals that hang on what is in a partition: with fewer partitions, or other rows, there may be none
BY_ROW = ("StrayKey",)
FEW_WAVES = 5  # more partitions than this are not computed one by one, unless all is asked for


@dataclass(frozen=True)
class Finding:
    """One outcome with how it came about; ``count`` is the number of partitions."""

    how: str
    count: int
    outcome: Outcome


@dataclass(frozen=True)
class Verdict:
    """``violation`` is what is wrong, None when nothing is;
    ``kind`` is `equal`, `isolated` or the class of the refusal.
    """

    kind: str
    violation: str | None
    findings: tuple[Finding, ...]


def variants_of(case: Case, random: Random, *, all_counts: bool) -> tuple[Variant, ...]:
    """Number of partitions and waves. Where DuckDB does not know the answer,
    one number of partitions is taken twice.
    """
    if all_counts:
        pairs = [(count, one) for count in COUNTS for one in (False, True)]
    else:
        first = random.choice([count for count in COUNTS if 1 < count <= FEW_WAVES])
        other = random.choice([count for count in COUNTS if count != first])
        pairs = [(first, True), (other if case.comparable else first, False)]
        pairs += [] if case.comparable or random.random() < 0.7 else [(other, False)]
    return tuple(Variant("abcdefgh"[place], count, one) for place, (count, one) in enumerate(pairs))


def judge(lab: Laboratory, case: Case, random: Random, *, all_counts: bool = False) -> tuple[Verdict, Trial | None]:
    """Run a case in several ways, and compare."""
    variants = variants_of(case, random, all_counts=all_counts)
    try:
        trial = lab.trial(case, variants)
    except InvalidSpec as error:
        return Verdict("InvalidSpec", None if case.trap in OTHER_COLUMNS else str(error), ()), None
    healed = variants if all_counts else (random.choice(variants),)
    findings = [
        finding for variant in variants for finding in _findings(trial, variant, random, heal=variant in healed)
    ]
    return _verdict(lab, case, tuple(findings)), trial


def _findings(trial: Trial, variant: Variant, random: Random, *, heal: bool) -> list[Finding]:
    """As it is run, and perhaps healed after a loss: by the other size of waves."""
    first = Finding(str(variant), variant.partitions, trial.outcome(variant, waves_of_one=variant.waves_of_one))
    if isinstance(first.outcome, Refusal) or not heal:
        return [first]
    lost = trial.lose(random, variant, sources=random.random() < LOSE_SOURCES)
    healed = trial.outcome(variant, waves_of_one=not variant.waves_of_one and variant.partitions <= FEW_WAVES)
    return [first, Finding(f"{variant}, healed after {', '.join(lost)} were lost", variant.partitions, healed)]


def _verdict(lab: Laboratory, case: Case, findings: tuple[Finding, ...]) -> Verdict:
    refusals = [(finding, finding.outcome) for finding in findings if isinstance(finding.outcome, Refusal)]
    if refusals:
        return Verdict(refusals[0][1].error, _wrong_refusals(refusals, findings), findings)
    right = lab.oracle(case) if case.comparable else None
    return Verdict("isolated" if right is None else "equal", _wrong_answers(findings, right), findings)


def _wrong_refusals(refusals: list[tuple[Finding, Refusal]], findings: tuple[Finding, ...]) -> str | None:
    """What is refused because of its plan is refused in every way, before anything can be read;
    what is because of a row, if it has it.
    """
    first, refusal = refusals[0]
    by_row = refusal.error in BY_ROW
    for finding in findings:
        comparable = not by_row or finding.count == first.count
        if comparable and not isinstance(finding.outcome, Refusal):
            return f"{first.how}: {refusal}\n{finding.how}: accepted, {finding.outcome}"
    for finding, other in refusals:
        if not other.meant:
            return f"{finding.how}: no refusal but a failure: {other}"
        if other.published and not by_row:
            return f"{finding.how}: refused when {', '.join(other.published)} had been published: {other}"
        if (other.error, other.stage) != (refusal.error, refusal.stage):
            return f"{first.how}: {refusal}\n{finding.how}: {other}"
    return None


def _wrong_answers(findings: tuple[Finding, ...], right: Rows | None) -> str | None:
    by_count: dict[int, tuple[Finding, Answer]] = {}
    for finding in findings:
        assert isinstance(finding.outcome, Answer)
        before, answer = by_count.setdefault(finding.count, (finding, finding.outcome))
        for partition, rows in finding.outcome.partitions.items():
            if rows != answer.partitions[partition]:
                return (
                    f"partition {partition}, {finding.how}, against "
                    f"{before.how}:\n{difference(rows, answer.partitions[partition])}"
                )
        if right is not None and finding.outcome.rows != right:
            return (
                f"{finding.how}: {finding.outcome} for {right.total()}, against "
                f"DuckDB:\n{difference(finding.outcome.rows, right)}"
            )
    return None
