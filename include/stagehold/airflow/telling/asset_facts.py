"""What an event of a table's asset tells whoever follows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from stagehold.airflow.telling.work_done import StageWork
from stagehold.gates.verdicts import Outcome, outcome_of, waived_in
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Waiver
from stagehold.model.standing import Standing


def asset_facts(work: StageWork, standing: Standing, run_id: str, waivers: Sequence[Waiver]) -> dict[str, Any]:
    """What an event tells of the data that is there now, of how much of it this run made, and of what its gate said.

    :param standing: that of the stage, of which all partitions are told that the interval is to have.
    """
    cell, waived = work.records[0].cell, waived_in(work.records, waivers)
    outcomes = [(one, outcome_of(one, waived)) for one in work.verdicts]
    counts = Counter(outcome.value for _, outcome in outcomes)
    unmet: dict[tuple[str, str], list[int]] = {}
    for one, outcome in outcomes:
        if outcome is not Outcome.PASSED:
            unmet.setdefault((outcome.value, one.expectation), []).append(one.partition)
    return {
        "pipeline": cell.pipeline,
        "stage": work.stage.name,
        "interval": cell.interval,
        "run_id": run_id,
        "partitions": standing.total,
        "consumable": standing.consumable,
        "whole": standing.whole,
        "computed": sum(one.run_id == run_id and not one.taken_over for one in work.records),
        "rows": sum(one.rows for one in work.records),
        "gate": work.stage.gate,
        "verdicts": {outcome.value: counts[outcome.value] for outcome in Outcome} if work.stage.gate else {},
        "not_met": [
            {"verdict": verdict, "expectation": expectation, "partitions": str(PartitionSet(some))}
            for (verdict, expectation), some in sorted(unmet.items())
        ],
    }
