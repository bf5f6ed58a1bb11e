"""A wave is as long as the pipeline says, or with `auto` as the ledger's attempts of the pipeline suggest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest
from tests.plan.split.test_partition_counts import stage

from stagehold.ledger import Ledger
from stagehold.plan.waves.sizing import AdaptiveInterval, DeclaredInterval, WaveInterval
from stagehold.run.stage.runner import wave_interval
from stagehold.spec.pipeline import Pipeline


@pytest.fixture
def ledger(ledger_file: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        yield opened


@pytest.mark.parametrize(
    ("wave", "wanted"),
    [
        (timedelta(seconds=45), DeclaredInterval(45)),
        (timedelta(milliseconds=100), DeclaredInterval(0.1)),
        ("auto", AdaptiveInterval(failures=0, worked=0)),
    ],
)
def test_a_wave_is_as_long_as_the_pipeline_says(
    ledger: Ledger, wave: timedelta | Literal["auto"], wanted: WaveInterval
) -> None:
    pipeline = Pipeline(name="p", file="p.yaml", stages=(stage("joined"),), wave=wave)
    assert wave_interval(pipeline, ledger) == wanted
