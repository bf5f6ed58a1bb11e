"""What a preview says of released outputs is what is computed, on a real Spark server; of a pinned interval nothing."""

from __future__ import annotations

import json

import pytest
from tests.run.workbench import INTERVAL, Ended, Workbench, ended

from stagehold.ledger.ledger import Ledger

pytestmark = pytest.mark.spark

PINNED, NEWEST = "2026-11-21", "2026-11-22"
RESTORE = ("--restore-from-stage", "summary")


@pytest.fixture
def bench(tmp_path, spark_remote):
    """Outputs of the first interval were released, those of the second one are there only since it is pinned."""
    bench = Workbench.make(tmp_path, spark_remote)
    bench.declare("retain: {intervals: 1}")
    for interval in (INTERVAL, PINNED):
        assert say(bench, "run", "toy", "--interval", interval).code == 0
    assert say(bench, "intervals", "pin", "toy", PINNED, "--why", "the audit").code == 0
    assert say(bench, "run", "toy", "--interval", NEWEST).code == 0
    return bench


def say(bench: Workbench, *words: str) -> Ended:
    return ended(bench.command(*words, "--json"))


def said(bench: Workbench, interval: str) -> tuple[str, dict[str, set[int]]]:
    """What the plan and the plan of a backfill say alike: the sentence, and the partitions by stage."""
    plan = json.loads(say(bench, "plan", "toy", "--interval", interval, *RESTORE).out).get("released")
    backfill = json.loads(say(bench, "backfill", "toy", "--from", interval, *RESTORE, "--dry-run").out)
    assert backfill["released"] == (plan and plan["text"])
    found = {output["stage"]: set(output["partitions"]) for output in plan["outputs"]} if plan else {}
    (planned,) = backfill["intervals"]
    told = {cell["stage"]: cell["released"] for cell in planned["cells"] if cell["released"]}
    assert told == {stage: len(partitions) for stage, partitions in found.items()}
    return plan["text"] if plan else "", found


def computed(bench: Workbench, interval: str, run_id: str) -> dict[str, set[int]]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        newest = ledger.partitions.newest_of("toy", interval)
    found = {stage: {one.partition for one in some if one.run_id == run_id} for stage, some in newest.items()}
    return {stage: partitions for stage, partitions in found.items() if partitions and stage != "summary"}


def test_what_is_said_to_be_released_is_computed_and_what_is_pinned_is_not(bench):
    text, expected = said(bench, INTERVAL)
    assert text.startswith("restores from summary; ")
    assert f"by_colour of {INTERVAL} was released: " in text
    assert expected["by_colour"] == {0, 1, 2, 3}
    ran = say(bench, "run", "toy", "--interval", INTERVAL, "--run-id", "again", *RESTORE)
    assert ran.code == 0, ran.err
    assert computed(bench, INTERVAL, "again") == expected
    assert text in ran.err

    assert said(bench, PINNED) == ("", {})
    ran = say(bench, "run", "toy", "--interval", PINNED, "--run-id", "pinned", *RESTORE)
    assert ran.code == 0, ran.err
    assert computed(bench, PINNED, "pinned") == {}
    assert "was released" not in ran.err
    assert bench.published() == sorted(3 * bench.expected())
