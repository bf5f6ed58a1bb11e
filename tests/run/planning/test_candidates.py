"""What a run begins with that is to begin with the latest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from tests.made_records import savepoint_request
from tests.run.clearing.nights import PIPELINE, Nights

from stagehold.errors import NoSnapshot
from stagehold.model.records import PartitionRecord
from stagehold.run.checkpoints.savepoint_creation import create_savepoint
from stagehold.run.planning.candidates import Candidates
from stagehold.run.upkeep.scrubbing import ScrubPlace, SnapshotComparison
from stagehold.spec.settings.run_settings import VerifyPolicy

pytestmark = pytest.mark.slow

DAY = "2026-11-20"


@pytest.fixture
def nights(tmp_path):
    nights = Nights(tmp_path, retained=9)
    nights.run(DAY, "a")
    nights.run(DAY, "b")
    asked = savepoint_request("kept", f"b.{DAY}")
    create_savepoint(asked, nights.pipeline, nights.workplace)
    return nights


def latest(nights: Nights, run: str = "new") -> tuple[str, list[str]]:
    """Run, number, and why others were passed over."""
    found = Candidates(PIPELINE, DAY, f"{run}.{DAY}", nights.settings.lake_uri, nights.ledger)
    address, passed_over = found.latest()
    return "/".join(address.split("/")[-2:]), [f"{source}: {why}" for source, why in passed_over]


def manifest(nights: Nights, run: str, number: int) -> Path:
    return Path(nights.settings.lake_uri, "checkpoints", PIPELINE, DAY, f"{run}.{DAY}", f"{number:010d}.json")


def test_other_runs_newest_comes_before_savepoints_and_the_runs_own_before_that(nights):
    assert latest(nights) == (f"b.{DAY}/0000000001.json", [])
    assert latest(nights, "a") == (f"a.{DAY}/0000000001.json", [])


def test_a_checkpoint_that_cannot_be_read_is_passed_over_and_named(nights):
    manifest(nights, "b", 1).write_text("torn")
    found, passed = latest(nights)
    assert found == f"a.{DAY}/0000000001.json"
    assert len(passed) == 1
    assert "0000000001.json is no JSON" in passed[0]


def test_a_checkpoint_whose_data_is_gone_is_passed_over(nights):
    Path(nights.files(DAY)["drafts"][0]).unlink()
    with pytest.raises(NoSnapshot, match="the data of 1 partitions of drafts is gone") as refused:
        latest(nights)
    assert len(refused.value.refused) == 3


class Reader:
    """Stands for Spark, for which one partition of a run's data is another one than was recorded."""

    def __init__(self, run: str = "") -> None:
        self.run, self.opened, self.read = run, 0, list[str]()

    @contextmanager
    def open(self, stall_timeout: timedelta) -> Iterator[Reader]:
        self.opened += 1
        yield self

    def fingerprints(self, records: Sequence[PartitionRecord]) -> Mapping[int, str]:
        self.read.extend(f"{record.cell.stage}[{record.partition}]" for record in records)
        bad = [record.partition for record in records if record.run_id == self.run][:1]
        return {record.partition: "c-0-0-0" if record.partition in bad else record.fingerprint for record in records}

    def read_log(self, table: str) -> None:
        raise AssertionError(f"{table} was read by its records")


def compared(nights: Nights, verify: VerifyPolicy, reader: Reader) -> tuple[str, list[str]]:
    found = Candidates(PIPELINE, DAY, f"new.{DAY}", nights.settings.lake_uri, nights.ledger)
    pipeline = nights.pipeline.model_copy(update={"verify": verify})
    with ExitStack() as opened:
        place = ScrubPlace(nights.ledger, nights.settings, print, reader.open)
        address, passed_over = found.latest(SnapshotComparison(pipeline, place, opened).damaged)
    return "/".join(address.split("/")[-2:]), [f"{source}: {why}" for source, why in passed_over]


def test_a_checkpoint_with_other_content_is_passed_over(nights):
    nights.write_source(0, 9)
    nights.run(DAY, "bad")
    reader = Reader(f"bad.{DAY}")
    found, passed = compared(nights, VerifyPolicy.ALWAYS, reader)
    assert found == f"b.{DAY}/0000000001.json"
    assert passed == [
        f"checkpoint of another run 1 (bad.{DAY}): drafts[0]: its content no longer matches its fingerprint"
    ]
    assert reader.opened == 1


@pytest.mark.parametrize(("verify", "read", "opened"), [("always", 9, 1), ("sample", 6, 1), ("never", 0, 0)])
def test_so_much_is_read_as_the_pipeline_verifies(nights, verify, read, opened):
    reader = Reader()
    assert compared(nights, VerifyPolicy(verify), reader) == (f"b.{DAY}/0000000001.json", [])
    assert (len(reader.read), reader.opened) == (read, opened)


def test_without_any_there_is_none(tmp_path):
    with pytest.raises(NoSnapshot, match="it has no checkpoint or savepoint"):
        latest(Nights(tmp_path))
