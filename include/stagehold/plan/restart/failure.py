"""What kind of failure an error is, from its whole chain of causes.

class                   consequence
non_recoverable         the run fails at once
partition_data_missing  its producers run again too
environment             restarts
recoverable             restarts
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stagehold.errors import PartitionDataMissing
from stagehold.model.records import FailureClass
from stagehold.plan.restart.error_facts import facts_of
from stagehold.plan.restart.rules import RULES, FailureRule


@dataclass(frozen=True)
class Diagnosis:
    """``rule`` fits ``decided_by``, the error that counts; ``missing`` is the data that the chain names as gone, if
    any.
    """

    rule: FailureRule
    decided_by: BaseException
    missing: PartitionDataMissing | None

    @property
    def kind(self) -> FailureClass:
        return self.rule.kind


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all its causes, each once: causes, contexts that are not suppressed, and members of groups."""
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        found = rest.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        rest.extend(reversed(found.exceptions) if isinstance(found, BaseExceptionGroup) else ())
        rest.append(found.__cause__ if found.__suppress_context__ else found.__cause__ or found.__context__)


def diagnose(error: BaseException, rules: Sequence[FailureRule] = RULES) -> Diagnosis:
    """The first rule that fits any error in the chain decides, so the order of the rules is their weight; the last one
    fits every error.
    """
    chain = tuple((cause, facts_of(cause)) for cause in causes(error))
    rule, decided_by = next((rule, cause) for rule in rules for cause, facts in chain if rule.fits(facts))
    missing = next((cause for cause, _ in chain if isinstance(cause, PartitionDataMissing)), None)
    return Diagnosis(rule, decided_by, missing)
