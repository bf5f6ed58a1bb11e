"""The ledger that tests of sources share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stagehold.ledger import Ledger


@pytest.fixture
def ledger(ledger_file: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        yield opened
