"""Which pages a site of verdicts has: of partitions for which all came to the same, one stands for all. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from stagehold.gates.outcomes import Outcome, Waived, outcome_of
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import GateResult, Waiver

MOST_PAGES = 40  # of a stage; those with the most that is not met come first


@dataclass(frozen=True)
class DocPage:
    """One page. ``results`` are what was said of the first of its partitions; ``waivers`` are words for that one."""

    file: str
    stage: str
    partitions: tuple[int, ...]
    results: tuple[GateResult, ...]
    outcomes: Mapping[Outcome, int]
    waivers: tuple[Waiver, ...]

    @property
    def title(self) -> str:
        return f"{self.stage}[{PartitionSet(self.partitions)}]"

    @property
    def suite(self) -> str:
        return self.results[0].suite

    @property
    def judged_at(self) -> datetime:
        return max(one.recorded_at for one in self.results)


@dataclass(frozen=True)
class DocSite:
    """The pages of one interval. ``left_out`` are partitions, by stage, that have none: there would be too many."""

    pipeline: str
    interval: str
    pages: tuple[DocPage, ...]
    left_out: Mapping[str, tuple[int, ...]]


def site_of(
    pipeline: str, interval: str, results: Mapping[str, Sequence[GateResult]], waived: Mapping[str, Waived]
) -> DocSite:
    """
    :param results: by stage, what was said when each partition was judged last.
    :param waived: by stage, the words that hold for the data on record.
    """
    pages: list[DocPage] = []
    left_out: dict[str, tuple[int, ...]] = {}
    for stage, some in results.items():
        of_stage = _pages(stage, some, waived.get(stage, {}), len(pages))
        pages += of_stage[:MOST_PAGES]
        others = sorted(number for page in of_stage[MOST_PAGES:] for number in page.partitions)
        left_out |= {stage: tuple(others)} if others else {}
    return DocSite(pipeline, interval, tuple(pages), left_out)


def _pages(stage: str, results: Iterable[GateResult], waived: Waived, before: int) -> Sequence[DocPage]:
    by_partition: dict[int, list[GateResult]] = {}
    for one in results:
        by_partition.setdefault(one.partition, []).append(one)
    alike: dict[tuple[tuple[str, Outcome], ...], list[int]] = {}
    for partition, said in by_partition.items():
        alike.setdefault(tuple((one.expectation, outcome_of(one, waived)) for one in said), []).append(partition)
    worst_first = sorted(
        alike.items(), key=lambda kind: sum(came is Outcome.PASSED for _, came in kind[0]) - len(kind[0])
    )
    return [
        DocPage(
            file=f"{before + place}.html",
            stage=stage,
            partitions=tuple(sorted(partitions)),
            results=tuple(by_partition[partitions[0]]),
            outcomes={one: count for one in Outcome if (count := sum(came is one for _, came in kind))},
            waivers=tuple(waived[key] for name, _ in kind if (key := (partitions[0], name)) in waived),
        )
        for place, (kind, partitions) in enumerate(worst_first)
    ]
