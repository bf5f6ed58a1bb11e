"""Listeners of installed packages, found by their real entry points, hear what becomes of a run."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.extensions.installed import install
from tests.ledger.samples import RUN_ENDS, run

from stagehold.chronicle.chronicle import open_ledger
from stagehold.extensions.installed import LISTENERS, installed
from stagehold.ledger import Ledger
from stagehold.model.records import RunState
from stagehold.settings import Settings

HEARD = """\
heard = []

def listen(change):
    before = change.before and str(change.before)
    heard.append((change.run_id, change.pipeline, change.interval, before, str(change.after)))

def raising(change):
    raise RuntimeError("a listener of somebody else")

number = 1
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder for packages, and a home."""
    installed.cache_clear()
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    (tmp_path / "packages").mkdir()
    yield tmp_path
    installed.cache_clear()
    for name in ("listens", "listens_too"):
        sys.modules.pop(name, None)


def heard(place: Path) -> list[tuple[str, ...]]:
    return list(sys.modules["listens"].heard)


def run_fails(place: Path, *, together: bool = False) -> None:
    with open_ledger(Settings(home=str(place))) as ledger:
        ledger.runs.start(run("r"))
        if together:
            with ledger.together():
                ledger.runs.apply("r", *RUN_ENDS[RunState.FAILED])
                assert [change[-1] for change in heard(place)] == ["created", "running"], (
                    "told before others can see it"
                )
        else:
            ledger.runs.apply("r", *RUN_ENDS[RunState.FAILED])


@pytest.mark.parametrize("together", [False, True])
def test_a_listener_hears_every_change_once_and_in_order_after_it_is_recorded(place, together):
    install(place / "packages", "listens", HEARD, {LISTENERS: {"mine": "listens:listen"}})
    run_fails(place, together=together)
    assert [(before, after) for *_, before, after in heard(place)] == [
        (None, "created"),
        ("created", "running"),
        ("running", "failing"),
        ("failing", "failed"),
    ]
    told = run("r")
    assert {change[:3] for change in heard(place)} == {("r", told.pipeline, told.interval)}


def test_a_listener_that_raises_or_cannot_be_loaded_is_logged_and_harms_nothing(place, caplog):
    broken = {
        "raises": "listens:raising",
        "typo": "listens:lisen",
        "gone": "no_such_module:x",
        "data": "listens:number",
    }
    install(place / "packages", "listens", HEARD, {LISTENERS: {"mine": "listens:listen", **broken}})
    run_fails(place)
    assert len(heard(place)) == 4
    with open_ledger(Settings(home=str(place))) as ledger:
        assert ledger.runs.get("r").state is RunState.FAILED
    for told in (
        "listener raises failed on r -> failed",
        "typo (listens:lisen) is left out",
        "gone (no_such",
        "data (list",
    ):
        assert told in caplog.text


def test_a_name_that_two_packages_offer_is_left_out(place, caplog):
    install(place / "packages", "listens", HEARD, {LISTENERS: {"mine": "listens:listen", "both": "listens:raising"}})
    install(place / "packages", "listens_too", HEARD, {LISTENERS: {"both": "listens_too:raising"}})
    run_fails(place)
    assert "both is left out, since more than one package offers it" in caplog.text
    assert "a listener of somebody else" not in caplog.text


def test_what_is_rolled_back_is_told_to_nobody(place):
    install(place / "packages", "listens", HEARD, {LISTENERS: {"mine": "listens:listen"}})
    with open_ledger(Settings(home=str(place))) as ledger:
        ledger.runs.start(run("r"))
        known = len(heard(place))
        with suppress(RuntimeError), ledger.together():
            ledger.runs.apply("r", *RUN_ENDS[RunState.FAILED])
            raise RuntimeError
        assert (len(heard(place)), ledger.runs.get("r").state) == (known, RunState.RUNNING)


def test_a_ledger_that_is_opened_to_look_at_it_tells_nobody(place):
    install(place / "packages", "listens", HEARD, {LISTENERS: {"mine": "listens:listen"}})
    with Ledger.open(Settings(home=str(place)).ledger_url) as ledger:
        ledger.runs.start(run("r"))
    assert "listens" not in sys.modules
