"""A bucket whose keys have run out says nothing of the data that is in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from moto import settings as moto
from moto.core.responses import ActionAuthenticatorMixin
from tests.lake.stagehand import Stagehand
from tests.object_store import moto_store

from stagehold.lake.store.files import files_at
from stagehold.run.delivery.content_check import mismatches
from stagehold.run.stage.spark_engine import SparkStageSession
from stagehold.settings import Settings

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    """Moto's, whichever store is named for the other tests: its look at keys is switched on here."""
    with moto_store() as address:
        yield address


@contextmanager
def keys_ran_out() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as denied:
        denied.setattr(moto, "INITIAL_NO_AUTH_ACTION_COUNT", 0)
        denied.setattr(ActionAuthenticatorMixin, "request_count", 1)
        yield


@pytest.mark.parametrize("partitions", [1, 3])
def test_nothing_is_damaged_that_nobody_may_read(hand: Stagehand, lake_in_s3: str, tmp_path: Path, partitions: int):
    table = hand.at(location=replace(hand.location, uri=f"{lake_in_s3}/joined")).prepare()
    records = table.publish({number: [("a", number)] for number in range(partitions)})
    session = SparkStageSession(table.spark, Settings(home=str(tmp_path), lake=lake_in_s3))
    assert mismatches(records, session) == []
    with keys_ran_out(), pytest.raises(Exception, match=r"403|Forbidden|AccessDenied|InvalidAccessKeyId"):
        mismatches(records, session)
    assert mismatches(records, session) == []
    place, broken = files_at(table.location.uri), records[-1].files[0].path
    place.remove([broken])
    assert place.create(broken, b"no Parquet")
    assert mismatches(records, session) == [(records[-1], None)]
