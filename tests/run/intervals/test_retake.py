"""An interval takes mended files of an incremental source anew, by command, as long as nothing of it is published."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ledger.samples import record
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.ledger import Ledger
from stagehold.ledger.leases import region_lease
from stagehold.model.records import Cell
from stagehold.model.standing import PartitionState
from stagehold.plan.split.regions import stage_regions
from stagehold.settings import load_settings
from stagehold.sources.attempt_sources import Listing, Sources
from stagehold.spec.loading.loader import find_pipeline

SPEC = """\
pipeline: sales
stages:
  orders:
    job: shop:orders
    source: {kind: json, path: "${lake}/raw", splits: 1, schema: "id int", incremental: true}
  whole: {job: shop:whole, source: {kind: json, path: "${lake}/raw", splits: 1, schema: "id int"}}
  kept: {job: shop:kept, inputs: {orders: forward}, output: {type: blocking}}
  other: {job: shop:other, inputs: {whole: forward}, output: {type: blocking}}
"""
CODE = "from stagehold import stage\n" + "".join(
    f"@stage\ndef {name}(ctx, {given}): return {given}\n"
    for name, given in {"orders": "source", "whole": "source", "kept": "orders", "other": "whole"}.items()
)
RAW = "home/lake/raw"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    for name, value in {"HOME": "home", "PIPELINES": "pipelines", "PROJECT": "project"}.items():
        monkeypatch.setenv(f"STAGEHOLD_{name}", str(tmp_path / value))
    for name, text in {
        "pipelines/sales.yaml": SPEC,
        "project/shop.py": CODE,
        f"{RAW}/a.json": "{",
        f"{RAW}/b.json": '{"id": 2}',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def ledger():
    with Ledger.open(load_settings().ledger_url) as opened:
        yield opened


def take(ledger: Ledger, interval: str) -> list[str]:
    settings = load_settings()
    orders = find_pipeline("sales", settings).stage("orders")
    sources = Sources("sales", interval, f"run of {interval}", settings.lake_uri, ledger)
    sources.settle(orders, Listing.OF_RUN)
    reading = sources.of(orders)
    return sorted(Path(path).name for path in reading.spoiled) or [
        Path(file.path).name for file in reading.splits[0].files
    ]


def call(*arguments: str, code: int = 0):
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result


def retake(*options: str, stage: str = "orders", interval: str = "2024-01-01", code: int = 0):
    return call("source", "retake", stage, "--pipeline", "sales", "--interval", interval, *options, code=code)


def test_mended_files_of_a_failed_run_are_read_after_the_command_that_the_plan_names(ledger, folder):
    assert take(ledger, "2024-01-01") == ["a.json", "b.json"]
    (folder / RAW / "a.json").write_text('{"id": 1}')
    (folder / RAW / "c.json").write_text('{"id": 3}')
    said = call("plan", "sales", "--interval", "2024-01-01", code=1).stderr
    assert "a.json was read before: 1 bytes, now 9; interval 2024-01-01 took it" in said
    assert "`stagehold source retake orders --pipeline sales --interval '2024-01-01'` takes it as it is now" in said
    assert "interval 2024-01-01 took it" in call("plan", "sales", "--interval", "2024-01-02", code=1).stderr
    shown = json.loads(retake("--dry-run", "--json").stdout)
    assert [(Path(change["path"]).name, change["change"]) for change in shown["changes"]] == [
        ("a.json", "1 bytes, now 9"),
        ("c.json", "new"),
    ]
    assert take(ledger, "2024-01-01") == ["a.json"]  # still spoiled
    assert "2024-01-01 takes 2 files otherwise than before" in retake().stdout
    assert take(ledger, "2024-01-01") == ["a.json", "b.json", "c.json"]
    assert take(ledger, "2024-01-02") == []
    call("plan", "sales", "--interval", "2024-01-01")
    assert "takes 0 files otherwise" in retake().stdout


def test_files_of_other_intervals_are_never_taken_over(ledger, folder):
    take(ledger, "2024-01-01")
    (folder / RAW / "c.json").write_text('{"id": 3}')
    assert take(ledger, "2024-01-02") == ["c.json"]
    (folder / RAW / "a.json").unlink()
    assert "no longer there" in retake().stdout
    assert take(ledger, "2024-01-01") == ["b.json"]
    (folder / RAW / "c.json").write_text('{"id": 30}')
    assert "c.json was read before" in retake(code=1).stderr


@pytest.mark.parametrize("hidden", [False, True], ids=["published", "published, and blocked since"])
def test_what_was_published_is_refused_with_the_way_out_for_each_file(ledger, folder, hidden):
    take(ledger, "2024-01-01")
    kept = find_pipeline("sales", load_settings()).stage("kept")
    made = replace(record(partition=0), cell=Cell("sales", kept.id, "2024-01-01"), version=7)
    lease = ledger.leases.acquire("x", "me", 60)
    later = [replace(made, state=PartitionState.BLOCKED, version=None, files=())] if hidden else []
    ledger.partitions.record([made, *later], lease)
    (folder / RAW / "a.json").write_text('{"id": 1}')
    said = retake(code=1).stderr
    assert "Published: kept[0] (version 7)" in said
    assert "a.json: put it back as it was" in said
    assert take(ledger, "2024-01-01") == ["a.json"]


@pytest.mark.parametrize(
    ("stage", "interval", "said"),
    [
        ("whole", "2024-01-01", "no incremental source"),
        ("kept", "2024-01-01", "no incremental source"),
        ("orders", "2024-01-09", "has taken no files"),
        ("ordrs", "2024-01-01", "There is no stage of sales 'ordrs'"),
        ("orders", "2024-13-45", "is no date"),
    ],
)
def test_what_cannot_be_taken_anew_is_refused(stage, interval, said):
    assert said in retake(stage=stage, interval=interval, code=1).stderr


def test_nothing_is_taken_anew_while_an_attempt_works_on_it(ledger):
    take(ledger, "2024-01-01")
    region = next(
        region.name for region in stage_regions(find_pipeline("sales", load_settings())) if "orders" in region.stages
    )
    ledger.leases.take(
        region_lease("sales", "2024-01-01", region), None, "somebody|elsewhere|1|now", 60, lambda _: False
    )
    assert "is being worked on by" in retake(code=1).stderr
