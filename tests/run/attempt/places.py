"""A workplace for tests that never get as far as opening a session."""

from __future__ import annotations

import time
from collections.abc import Callable

from stagehold.ledger.ledger import Ledger
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import Faults
from stagehold.run.stage.spark_engine import SparkEngine
from stagehold.settings import Settings


def workplace(
    ledger: Ledger,
    settings: Settings,
    progress: Callable[[str], None] = lambda line: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Workplace:
    faults = Faults(settings.home_path, "day")
    return Workplace(ledger, settings, progress, SparkEngine(settings, progress), faults, sleep=sleep)
