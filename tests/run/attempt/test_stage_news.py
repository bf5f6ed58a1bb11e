"""Listeners of installed packages hear what attempts make of stages, in the word that everybody is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.extensions.installed import install
from tests.run.protocol.world import RUN, World

from stagehold.extensions.installed import STAGE_LISTENERS, installed
from stagehold.run.intervals.interval_standings import states_in_run

CODE = """\
heard = []

def raising(change):
    raise RuntimeError("a listener of somebody else")

def listen(change):
    heard.append((change.run_id, change.stage, str(change.before), str(change.after)))
"""


@pytest.fixture
def listening(tmp_path, monkeypatch):
    installed.cache_clear()
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(packages))
    install(packages, "hears", CODE, {STAGE_LISTENERS: {"bad": "hears:raising", "mine": "hears:listen"}})
    yield tmp_path
    installed.cache_clear()
    sys.modules.pop("hears", None)


def heard() -> list[tuple[str, ...]]:
    told = list(sys.modules["hears"].heard)
    sys.modules["hears"].heard.clear()
    return told


def test_a_listener_hears_each_change_of_a_stage_and_one_that_raises_harms_nothing(listening: Path, caplog):
    world = World(listening)
    world.begin("drafts", cut=2, part=0).go_to("its end")
    assert heard() == [(RUN, "drafts", "created", "initializing"), (RUN, "drafts", "initializing", "running")]
    world.begin("drafts", cut=2, part=1).go_to("its end")
    assert [(before, after) for *_, before, after in heard()] == [
        ("running", "initializing"),
        ("initializing", "running"),
        ("running", "finished"),
    ]
    assert "stage status listener bad failed on drafts of r" in caplog.text


def test_what_listeners_hear_is_what_everybody_is_told(listening: Path):
    world = World(listening)
    world.write_suite(0)
    refused = world.begin("prints")
    refused.go_to("its end")
    states = states_in_run(world.pipelines[1], RUN, "2026-11-20", world.ledger)
    last = {stage: after for _, stage, _, after in heard()}
    assert (last["prints"], states[world.pipelines[1].stage("prints").id]) == ("failed", "failed")
