"""The verdicts on an interval as pages of Great Expectations."""

from __future__ import annotations

from stagehold.gates.verdict_pages import DocSite, site_of
from stagehold.gates.verdicts import Waived, waived_in
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import GateResult
from stagehold.plan.resume.waiving import refused_data
from stagehold.run.planning.acceptance import newest_verdict, waivers_in_force
from stagehold.settings import Settings


def verdict_site(pipeline: str, interval: str, ledger: Ledger, settings: Settings) -> DocSite:
    """The pages of all stages that a gate has judged, whether or not the pipeline still has them."""
    words = waivers_in_force(pipeline, interval, ledger, settings)
    results: dict[str, tuple[GateResult, ...]] = {}
    waived: dict[str, Waived] = {}
    for stage, records in ledger.partitions.newest_of(pipeline, interval).items():
        said = ledger.gates.newest(records[0].cell)
        if said:
            data = refused_data(records, newest_verdict(records, ledger))
            results[stage], waived[stage] = said, waived_in(data, [word for word in words if word.stage == stage])
    return site_of(pipeline, interval, results, waived)
