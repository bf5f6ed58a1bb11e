"""Intervals of the sample pipeline that are whole, and a source file that somebody writes anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.airflow.made_runs import SOURCES, SPLITS, fill_ledger, make_sources
from tests.airflow.pipeline_page.made_intervals import PIPELINE, emptied_ledger

from stagehold.airflow.answering.kept_pages import KeptPages
from stagehold.model.kept import KeptMemory
from stagehold.settings import load_settings

ALL = dict.fromkeys((*SOURCES, "orders_by_customer", "shipping_priority"), SPLITS) | {"top_orders": 1}


@contextmanager
def nothing_on_record() -> Iterator[None]:
    """Of the pipeline; its sources are there, and so is whatever data records tell of."""
    make_sources(Path(load_settings().lake_uri))
    with emptied_ledger(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "stagehold.airflow.pipeline_page.interval_staleness._PLANS", KeptPages("plans", KeptMemory(), at_once=1)
        )
        yield


def make_interval(interval: str) -> None:
    """As the pipeline is now."""
    fill_ledger(PIPELINE, interval, ALL)


def write_orders_anew() -> None:
    """One of the files: what is on record by now has other rows of a partition, and so of all that reads it."""
    Path(load_settings().lake_uri, "raw", "orders", "03.parquet").touch()
