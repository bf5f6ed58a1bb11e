"""The pages of docs/reference/ are what the code says now; tests/airflow has the one of the API."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from tools.reference import commands_page, settings_page

from stagehold.settings import PROJECT, Settings

PAGES = {"settings": settings_page, "commands": commands_page}


def written(name: str) -> str:
    return Path(PROJECT, "docs", "reference", f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_current(name: str) -> None:
    assert written(name) == PAGES[name](), "run `make docs`"


def test_every_setting_is_listed() -> None:
    listed = re.findall(r"^\| `STAGEHOLD_(\w+)` \| \S", written("settings"), flags=re.MULTILINE)
    assert listed == [field.name.upper() for field in fields(Settings)]


def test_every_setting_and_option_says_what_it_means() -> None:
    rows = re.findall(r"^\| `.*$", written("settings") + written("commands"), flags=re.MULTILINE)
    assert [row for row in rows if re.search(r"\|\s*\|$", row)] == []
