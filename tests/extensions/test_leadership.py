"""Leadership listeners of installed packages, found by their real entry points."""

from __future__ import annotations

import sys

import pytest
from tests.extensions.installed import install

from stagehold.extensions.installed import installed
from stagehold.extensions.leadership import LEADERSHIP, Leadership, LeadershipChange, tell_leadership

CODE = """\
heard = []

def raising(change):
    raise RuntimeError("a listener of somebody else")

def listen(change):
    heard.append((str(change.what), change.lease, change.holder, change.epoch, change.reason))
"""
LOST = LeadershipChange(Leadership.LOST, "sales/2024-01-01/joined", "ann|host|7|1", 3, "no ledger")


@pytest.fixture
def packages(tmp_path, monkeypatch):
    installed.cache_clear()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    installed.cache_clear()
    sys.modules.pop("leads", None)


def test_each_listener_hears_who_lost_what_and_why(packages, caplog):
    install(packages, "leads", CODE, {LEADERSHIP: {"bad": "leads:raising", "mine": "leads:listen"}})
    tell_leadership(LOST)
    assert sys.modules["leads"].heard == [("lost", "sales/2024-01-01/joined", "ann|host|7|1", 3, "no ledger")]
    assert "leadership listener bad failed on lost of sales/2024-01-01/joined" in caplog.text


def test_where_nobody_listens_nothing_happens(packages):
    tell_leadership(LOST)
