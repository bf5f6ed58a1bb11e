"""Every command of the README and the guides does what they say, on a real stack."""

from __future__ import annotations

import json
import shlex
from datetime import date
from pathlib import Path

import pytest
from tests.documents import GUIDES, README, run_commands
from tests.e2e.stack import Stack

from stagehold.local.demo.sample import bring_day
from stagehold.run.faults import FaultAction, Point
from stagehold.settings import PROJECT

pytestmark = pytest.mark.e2e

FAILING = "run shipping_priority --interval 2026-11-20"
RESTORE = "--restore-from-stage"
SAMPLE = "python -m stagehold.local.demo.sample "
STATE = PROJECT / "docs" / "guide" / "state.md"
# State belongs to another pipeline, and the guides before it speak of the newest run.
PAGES = (README, *(path for path in GUIDES if path != STATE), STATE)


def commands() -> list[str]:
    return list(dict.fromkeys(command for page in PAGES for command in run_commands(page)))


@pytest.mark.timeout(900)
def test_every_command_of_the_readme_and_the_guides_works(sample: Stack):
    ours = [command.removeprefix("stagehold ") for command in commands() if command.startswith(("stagehold ", SAMPLE))]
    assert FAILING in ours
    for command in sorted(ours, key=lambda command: RESTORE in command):  # it is shown for an interval that ran
        if command.startswith(SAMPLE):
            bring_day(Path(sample.settings.lake_uri), date.fromisoformat(command.removeprefix(SAMPLE)))
            continue
        if command == FAILING:  # so that there is something to resume
            sample.inject(Point.AFTER_RECORD, "shipping_priority", 1, FaultAction.FAIL)
        ended = sample.command(*shlex.split(command))
        assert ended.returncode == (1 if command == FAILING else 0), f"{command}: {ended.stderr}"
    sample.assert_answer_is_right("2026-11-20")


def test_the_demo_fails_resumes_and_gives_the_right_answer(stack: Stack):
    ended = stack.command("demo", "--scale", "0.01", "--json")
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert (report["failed_stage"], report["consumable"], report["total"]) == ("shipping_priority", 72, 81)
    assert (report["reused"], report["computed"], report["equal"]) == (72, 9, True)
