"""What becomes of partitions after their gate has judged them, and what people are told of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from stagehold.gates.verdicts import GateVerdict
from stagehold.model.choices import Severity, Waiver
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import GateResult, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.resume.waiving import who_waived
from stagehold.run.delivery.wave import StageTask
from stagehold.run.equipment.workplace import Workplace

Said = TypeVar("Said", GateVerdict, GateResult)


@dataclass(frozen=True)
class Ruling:
    """What becomes of one partition: ``unmet`` are its critical expectations that are not met, each with the observed
    value; ``waivers`` are those that let it through all the same.
    """

    unmet: Mapping[str, str]
    waivers: tuple[Waiver, ...] = ()

    @property
    def refused(self) -> tuple[str, ...]:
        return tuple(self.unmet)

    @property
    def blocks(self) -> bool:
        return not {waiver.expectation for waiver in self.waivers} >= {*self.unmet}

    def state_in(self, task: StageTask, *, published: bool = False) -> PartitionState:
        """The state that follows. A partition that was published before is read as long as its gate does not refuse
        it.
        """
        if self.blocks:
            return PartitionState.BLOCKED
        return PartitionState.HELD if task.whole and not published else PartitionState.CONSUMABLE

    @property
    def reason(self) -> str | None:
        """Why the partition is blocked, or who let it through all the same."""
        if self.blocks:
            return "; ".join(f"{expectation}: got {seen}" for expectation, seen in self.unmet.items())
        return str(who_waived(self.waivers)) if self.waivers else None


@dataclass(frozen=True)
class Rulings:
    """Rulings by partition. A partition that meets all critical expectations has none."""

    by_partition: Mapping[int, Ruling]

    @classmethod
    def of(cls, unmet: Mapping[int, Mapping[str, str]], fingerprints: Mapping[int, str], task: StageTask) -> Rulings:
        """The rulings on these partitions.

        :param unmet: the expectations that each partition does not meet, with the observed values.
        """
        return cls(
            {
                partition: Ruling(
                    expectations, _waivers(partition, fingerprints[partition], expectations, task.waivers)
                )
                for partition, expectations in unmet.items()
                if expectations
            }
        )

    def of_partition(self, partition: int) -> Ruling:
        return self.by_partition.get(partition, LET_THROUGH)

    @property
    def blocked(self) -> Mapping[int, str]:
        """The blocked partitions, each with the reason."""
        return {partition: str(ruling.reason) for partition, ruling in self.by_partition.items() if ruling.blocks}

    @property
    def waived(self) -> Mapping[int, Ruling]:
        return {partition: ruling for partition, ruling in self.by_partition.items() if not ruling.blocks}

    def in_words(self, gate: str, judged: int) -> str:
        """A sentence about what a gate let through."""
        waived = f", and {len(self.waived)} may be read all the same" if self.waived else ""
        return f"gate {gate} lets {judged - len(self.by_partition)} of {judged} partitions through{waived}"


LET_THROUGH = Ruling({})


def unmet(verdicts: Iterable[GateVerdict]) -> Mapping[int, Mapping[str, str]]:
    """The expectations that block each partition unless they are waived: all its unmet critical expectations
    together.
    """
    found: dict[int, dict[str, str]] = {}
    for verdict in verdicts:
        if not verdict.passed and verdict.severity is Severity.CRITICAL:
            found.setdefault(verdict.partition, {})[verdict.expectation] = verdict.observed
    return found


def unmet_on_record(
    records: Sequence[PartitionRecord], failures: Iterable[GateResult]
) -> Mapping[int, Mapping[str, str]]:
    """Expectations that recorded data did not meet when it was judged. The observed values are for people, and may have
    been forgotten.
    """
    seen = {(result.partition, result.expectation): result.observed for result in failures}
    return {
        record.partition: {expectation: seen.get((record.partition, expectation), "") for expectation in record.refused}
        for record in records
    }


def results(task: StageTask, verdicts: Sequence[GateVerdict], now: datetime) -> list[GateResult]:
    """The verdicts as records."""
    suite, attempt_id = task.suite.name if task.suite else "", task.attempt.attempt_id
    return [
        GateResult(
            cell=task.cell,
            partition=verdict.partition,
            attempt_id=attempt_id,
            suite=suite,
            expectation=verdict.expectation,
            passed=verdict.passed,
            observed=verdict.observed,
            recorded_at=now,
            severity=verdict.severity,
            configuration=verdict.configuration,
            result=verdict.result,
        )
        for verdict in verdicts
    ]


def warn(task: StageTask, verdicts: Sequence[GateVerdict], rulings: Rulings, workplace: Workplace) -> None:
    """Warn of unmet expectations that block nothing, and of waived ones."""
    stage, run_id = task.stage.name, task.attempt.run_id
    warn_unmet(run_id, stage, verdicts, workplace)
    for word, let in partitions_waived(rulings).items():
        workplace.warn(run_id, "waived", stage, f"{stage}[{PartitionSet(let)}] may be read: {word}")


def warn_unmet(run_id: str, stage: str, verdicts: Sequence[Said], workplace: Workplace) -> None:
    """Warn of expectations that are not met and block nothing."""
    for expectation, failed in warnings(verdicts).items():
        partitions = str(PartitionSet(verdict.partition for verdict in failed))
        text = f"{stage}[{partitions}] does not meet {expectation}: got {failed[0].observed}"
        workplace.warn(run_id, "gate", stage, text)


def warnings(verdicts: Sequence[Said]) -> dict[str, list[Said]]:
    """Unmet verdicts that warn and block nothing, by expectation."""
    found: dict[str, list[Said]] = {}
    for verdict in verdicts:
        if not verdict.passed and verdict.severity is Severity.WARNING:
            found.setdefault(verdict.expectation, []).append(verdict)
    return found


def partitions_waived(rulings: Rulings) -> Mapping[str, list[int]]:
    """Partitions that were let through, by the text that says who waived the refusal."""
    found: dict[str, list[int]] = {}
    for partition, ruling in sorted(rulings.waived.items()):
        found.setdefault(str(ruling.reason), []).append(partition)
    return found


def _waivers(
    partition: int, fingerprint: str, refused: Mapping[str, str], words: Sequence[Waiver]
) -> tuple[Waiver, ...]:
    return tuple(
        waiver
        for waiver in words
        if (waiver.partition, waiver.fingerprint) == (partition, fingerprint) and waiver.expectation in refused
    )
