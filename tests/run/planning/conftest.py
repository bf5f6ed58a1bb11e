"""A folder with a source of one file, and a ledger beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stagehold.ledger import Ledger
from stagehold.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    raw = tmp_path / "lake" / "raw"
    raw.mkdir(parents=True)
    (raw / "a.parquet").write_bytes(b"")
    return Settings(home=str(tmp_path), project=str(tmp_path), suites=str(tmp_path))


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    with Ledger.open(settings.ledger_url) as opened:
        yield opened
