"""`stagehold verify` where there is no content to read, so that it needs no Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.lake.paper_table import PaperTable, records
from tests.run.workbench import INTERVAL, NOWHERE, Workbench
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.store.location import table_location
from stagehold.ledger import Ledger
from stagehold.model.records import Cell, PartitionRecord
from stagehold.settings import Settings
from stagehold.spec.loading.loader import find_pipeline

pytestmark = pytest.mark.slow

EARLIER = "2026-11-19"


@dataclass(frozen=True)
class Scene:
    settings: Settings

    def publish(self, stage: str, interval: str, *partitions: int, rows: int = 1) -> list[PartitionRecord]:
        location = table_location(
            self.settings.lake_uri, "toy", find_pipeline("toy", self.settings).stage(stage), interval
        )
        table = PaperTable(location)
        if not Path(location.uri).exists():
            table.create()
        landed = StagedCommitter().publish(
            location, table.wave({partition: [("a", partition)] * rows for partition in partitions})
        )
        recorded = [replace(record, cell=Cell("toy", stage, interval)) for record in records(location, landed)]
        with Ledger.open(self.settings.ledger_url) as ledger:
            ledger.partitions.record(recorded, ledger.leases.acquire(f"toy/{interval}/{stage}", "me", 0))
        return recorded

    def lose(self, record: PartitionRecord) -> None:
        for file in record.files:
            Path(record.table, file.path).unlink()

    def verify(self, code: int, *words: str) -> str:
        result = CliRunner().invoke(app, ["verify", *words], env=dict(self.settings.environment))
        assert result.exit_code == code, result.output
        return result.output

    def document(self, code: int, *words: str) -> dict[str, Any]:
        result = CliRunner().invoke(app, ["verify", "--json", *words], env=dict(self.settings.environment))
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)


@pytest.fixture
def scene(tmp_path):
    return Scene(Workbench.make(tmp_path, NOWHERE).settings)


@pytest.fixture
def lost(scene):
    """Of two intervals, each with an empty partition, one that lost its file."""
    for interval in (INTERVAL, EARLIER):
        scene.publish("by_colour", interval, 0, rows=0)
        scene.lose(scene.publish("summary", interval, 0)[0])
    return scene


def test_people_are_told_where_what_is_missing_and_what_to_do(lost):
    shown = lost.verify(1, "toy", "--interval", INTERVAL)
    assert f"toy {INTERVAL} summary: 1 checked, 1 missing" in shown  # progress
    assert f"toy {INTERVAL} summary[0] missing: _data/" in shown
    assert f"/part-0.parquet is gone; table {lost.settings.lake_uri}/marts/summary" in shown
    assert shown.splitlines()[-1].startswith("2 partitions checked; 1 damaged or missing. ")
    assert shown.splitlines()[-1].endswith(f": stagehold verify toy --interval {INTERVAL} --heal")


def test_all_pipelines_and_intervals_are_looked_at_published_tables_first(lost):
    document = lost.document(1)
    order = [(stage["stage"], stage["interval"], stage["checked"], stage["missing"]) for stage in document["stages"]]
    assert order == [
        ("summary", INTERVAL, 1, 1),
        ("summary", EARLIER, 1, 1),
        ("by_colour", INTERVAL, 1, 0),
        ("by_colour", EARLIER, 1, 0),
    ]
    assert document["next"] == "stagehold verify toy --heal"
    ((file,),) = (partition["files"] for partition in document["partitions"] if partition["interval"] == EARLIER)
    assert file == f"_data/run.region.1.{EARLIER}/1/_partition=0/part-0.parquet"


def test_what_cannot_be_healed_is_told_and_ends_with_1(lost):
    raw = Path(lost.settings.lake_uri) / "raw"
    for file in raw.rglob("*.parquet"):
        file.unlink()
    document = lost.document(1, "toy", "--interval", INTERVAL, "--heal")
    assert [partition["healed"] for partition in document["partitions"]] == [False]
    (why,) = document["not_healed"]
    assert why.startswith(f"toy for {INTERVAL} was not healed: ")


def test_an_interval_that_somebody_works_on_is_not_healed(lost):
    with Ledger.open(lost.settings.ledger_url) as ledger:
        ledger.leases.take(f"toy/{INTERVAL}/by_colour", None, "somebody", 60, lambda _: False)
    document = lost.document(1, "toy", "--interval", INTERVAL, "--heal")
    assert [(partition["stage"], partition["state"]) for partition in document["partitions"]] == [
        ("summary", "missing"),
        ("by_colour", "skipped"),
    ]
    (why,) = document["not_healed"]
    assert why.startswith(f"toy for {INTERVAL} was not healed: somebody works on by_colour.")


def test_all_is_well(scene):
    scene.publish("by_colour", INTERVAL, 0, 1, 2, rows=0)
    assert scene.verify(0, "toy").splitlines()[-1] == "3 partitions checked; nothing is damaged or missing."
    assert scene.document(0, "--sample", "2")["stages"][0]["checked"] == 2
    assert scene.document(0, "--sample", "5%")["stages"][0]["checked"] == 1


def test_of_what_never_ran_nothing_is_verified(scene):
    assert "Nothing is on record" in scene.verify(0, "toy")


def test_what_does_not_exist_is_refused_with_what_does(lost):
    assert "There is no pipeline 'toi'. Known: toy." in lost.verify(1, "toi")
    known = f"There is no interval on record '2026-01-01'. Known: {EARLIER}, {INTERVAL}."
    assert known in lost.verify(1, "toy", "--interval", "2026-01-01")
    assert known in lost.verify(1, "--interval", "2026-01-01")
    assert "Interval '2026-13-01' " in lost.verify(1, "toy", "--interval", "2026-13-01")
    assert "--sample is '0%'; allowed: a share" in lost.verify(1, "toy", "--sample", "0%")


def test_a_bad_pipeline_file_hides_no_other_pipeline(scene):
    scene.publish("by_colour", INTERVAL, 0, rows=0)
    Path(scene.settings.pipelines, "bad.yaml").write_text("pipeline: [")
    shown = scene.verify(1)
    assert "1 partitions checked" in shown
    assert "not verified: " in shown
    assert "bad.yaml has 1 problem" in shown
