"""Compares ledger and lake, and repairs what is safe to repair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagehold.chronicle.chronicle import LakeChronicle, open_ledger
from stagehold.chronicle.differences import Difference, Disagreement, disagreements
from stagehold.chronicle.missing_facts import (
    adopted_facts,
    missing_in_chronicle,
    missing_in_ledger,
    missing_rows,
    uncommitted,
)
from stagehold.model.records import Fact, PartitionRecord, Run
from stagehold.run.reconcile.evidence import Evidence, gather
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

AT_ONCE = 5_000  # facts in a file of the chronicle


@dataclass(frozen=True)
class Comparison:
    """What a ledger and a lake know, taken one after the other: the ledger first, since the lake never knows less."""

    known: tuple[Fact, ...]
    epochs: Mapping[str, int]
    evidence: Evidence

    @cached_property
    def adopted(self) -> tuple[Fact, ...]:
        lake = self.evidence.knowledge
        return adopted_facts((*self.known, *lake.told), lake)

    @cached_property
    def unchronicled(self) -> tuple[Fact, ...]:
        return missing_in_chronicle(self.known, self.evidence.knowledge.told)

    def _own(self, facts: Iterable[Fact]) -> Iterator[Fact]:
        """Without those whose commits are production's."""
        foreign = self.evidence.of_production
        return (fact for fact in facts if not (isinstance(fact, PartitionRecord) and fact in foreign))

    @cached_property
    def epochs_behind(self) -> Mapping[str, int]:
        return {lease: epoch for lease, epoch in self.evidence.epochs.items() if epoch > self.epochs.get(lease, 0)}

    def disagreements(self) -> Iterator[Disagreement]:
        """Everything that differs, in the order in which it matters."""
        lake, facts = self.evidence.knowledge, (*self.known, *self.evidence.knowledge.told)
        runs = {fact.run_id: fact for fact in facts if isinstance(fact, Run)}
        for difference, differing in (
            (Difference.ROW_MISSING, missing_rows(self.known, lake.told)),
            (Difference.COMMIT_UNRECORDED, self.adopted),
            (Difference.NOT_CHRONICLED, self.unchronicled),
            (Difference.ROW_UNCOMMITTED, uncommitted(self._own(facts), lake.published)),
            (Difference.DATA_CHANGED, self.evidence.gone),
        ):
            yield from disagreements(difference, differing, runs)
        if self.epochs_behind:
            yield Disagreement(Difference.EPOCH_BEHIND, None, None, "leases", len(self.epochs_behind))
        for torn in self.evidence.torn:
            yield Disagreement(Difference.TORN, None, None, torn.path, 1, detail=torn.problem)


def reconcile(pipelines: Iterable[Pipeline], settings: Settings, *, dry_run: bool) -> Sequence[Disagreement]:
    """Bring the ledger up to what the lake knows, and the chronicle up to what the ledger knows.

    Safe beside attempts that are under way, and whenever it is repeated. Whoever works under an epoch that the lake
    knows to be old is fenced by it, as they were in the lake before.
    """
    with open_ledger(settings) as ledger:
        known, epochs = ledger.facts.all(), ledger.facts.epochs()
        compared = Comparison(known, epochs, gather(known, pipelines, settings))
        if not dry_run:
            _chronicle((*compared.unchronicled, *compared.adopted), settings.lake_uri)
            ledger.facts.mend(lambda facts: missing_in_ledger(facts, compared.evidence.knowledge))
            ledger.facts.raise_epochs(compared.epochs_behind)
        return tuple(compared.disagreements())


def _chronicle(facts: Sequence[Fact], lake_uri: str) -> None:
    for start in range(0, len(facts), AT_ONCE):
        LakeChronicle(lake_uri)(facts[start : start + AT_ONCE])
