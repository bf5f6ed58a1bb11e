"""What is on record of intervals that are planned one after the other, read for some of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stagehold.ledger.ledger import Ledger
from stagehold.plan.split.regions import stage_regions
from stagehold.run.planning.interval_records import IntervalRecords, read_records
from stagehold.run.planning.task import region_lease
from stagehold.spec.pipeline import Pipeline

AT_ONCE = 2_500  # partitions that are read together; more of them at once are slower again


class RecordsAhead:
    """Of intervals that are planned one after the other: some are read at once, as a query takes longer than what it
    brings of one.
    """

    def __init__(self, pipeline: Pipeline, intervals: Sequence[str], ledger: Ledger) -> None:
        self._pipeline, self._intervals, self._ledger = pipeline.name, intervals, ledger
        self._regions = [region.name for region in stage_regions(pipeline)]
        self._each = max(1, AT_ONCE // sum(stage.partitions for stage in pipeline.stages))
        self._read: Mapping[str, IntervalRecords] = {}
        self._leases = frozenset[str]()

    def of(self, interval: str) -> IntervalRecords:
        """:raises KeyError: it is none of them."""
        if interval not in self._read:
            first = self._intervals.index(interval)
            some = self._intervals[first : first + self._each]
            self._read = read_records(self._pipeline, some, self._ledger)
            self._leases = self._ledger.leases.known([name for key in some for name in self._lease_names(key)])
        return self._read[interval]

    def are_known(self, interval: str) -> bool:
        """Whether anything is on record of the interval, or anybody ever had a lease of a region of it."""
        return bool(self.of(interval).partitions) or not self._leases.isdisjoint(self._lease_names(interval))

    def _lease_names(self, interval: str) -> Sequence[str]:
        return [region_lease(self._pipeline, interval, region) for region in self._regions]
