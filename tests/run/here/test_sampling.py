"""`stagehold sample`: rows of a stage's inputs that its tests can be called with."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tests.run.small_project import SmallProject
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.run.here.sampling import fitting
from stagehold.settings import load_settings
from stagehold.testing.stage_tests import StageTests

JOBS = """
from stagehold import stage

@stage
def orders(ctx, source):
    return source

@stage
def items(ctx, source):
    return source.withColumn("by_day", __import__("pyspark.sql.functions").sql.functions.create_map("line", "line"))

@stage
def names(ctx, source):
    return source

@stage
def alone(ctx, items):
    return items.groupBy("i_id").count()

@stage
def joined(ctx, orders, items, names):
    return orders.join(items, orders.o_id == items.i_id, "left").join(names, "who", "left").drop("by_day")
"""
STAGES: dict[str, Any] = {
    name: {"job": f"shop:{name}", "source": {"kind": "parquet", "path": f"${{lake}}/{name}/*.parquet", "splits": 1}}
    for name in ("orders", "items", "names")
} | {
    "alone": {
        "job": "shop:alone",
        "inputs": {"items": {"exchange": "keyed", "key": "i_id"}},
        "partitions": 2,
    },
    "joined": {
        "job": "shop:joined",
        "inputs": {
            "orders": {"exchange": "keyed", "key": "o_id"},
            "items": {"exchange": "keyed", "key": "i_id"},
            "names": "broadcast",
        },
        "partitions": 4,
    },
}


def test_keys_are_taken_as_long_as_all_their_rows_fit_into_every_input():
    assert fitting([(1, 3), (2, 2), (1, 9), (1, 1)], 6) == [0, 1, 3]
    assert fitting([(7, 0)], 6) == []
    assert fitting([], 6) == []


@pytest.fixture
def shop(tmp_path: Path, spark_remote: str) -> SmallProject:
    folder = tmp_path / "shop"
    folder.mkdir()
    made = SmallProject.make(folder, spark_remote, JOBS)
    project = replace(made, settings=replace(made.settings, pipelines=str(folder / "include" / "pipelines")))
    lake = Path(project.settings.lake_uri)
    customers = [f"who-{number % 40}" for number in range(400)]
    rows = {
        "orders": {"o_id": pa.array([*range(399), None], pa.int32()), "who": customers},
        "items": {"i_id": [number % 500 for number in range(1500)], "line": list(range(1500))},
        "names": {"who": [f"who-{number}" for number in range(40)], "name": [f"name {n}" for n in range(40)]},
    }
    for name, columns in rows.items():
        (lake / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), lake / name / "part.parquet")
    pipelines = Path(project.settings.pipelines)
    pipelines.mkdir(parents=True, exist_ok=True)
    (pipelines / "shop.yaml").write_text(yaml.safe_dump({"pipeline": "shop", "stages": STAGES}, sort_keys=False))
    return project


def sampled(project: SmallProject, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["sample", *words], env=dict(project.settings.environment))
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.output


def tables(document: str, project: SmallProject) -> dict[str, pa.Table]:
    found = json.loads(document)["inputs"]
    return {each["input"]: pq.read_table(Path(project.settings.project, each["file"])) for each in found}


@pytest.mark.spark
def test_all_rows_of_a_key_are_there_or_none_and_a_test_can_be_called_with_them(shop, spark):
    to = str(Path(shop.settings.project, "data"))
    words = ("shop", "joined", "--interval", "2026-11-20", "--rows", "60", "--to", to, "--json")
    found = tables(sampled(shop, *words), shop)
    items, orders = (
        Counter(found[name].column(key).to_pylist()) for name, key in (("items", "i_id"), ("orders", "o_id"))
    )
    assert 50 < items.total() <= 60
    assert set(items.values()) == {3}
    assert {key for key in items if key < 399} == {key for key in orders if key is not None}
    assert found["names"].num_rows == 40
    again = tables(sampled(shop, *words), shop)
    assert all(sorted(again[name].to_pylist(), key=str) == sorted(found[name].to_pylist(), key=str) for name in found)
    stages = StageTests(spark, load_settings(dict(shop.settings.environment), shop.settings.project))
    given = {name: f"data/joined/{name}.parquet" for name in found}
    assert len(stages.run("joined", given, interval="2026-11-20").rows) == sum(items[key] or 1 for key in orders)


@pytest.mark.spark
def test_masked_columns_still_join_and_nothing_of_them_is_left(shop):
    to = str(Path(shop.settings.project, "data"))
    mask = ("--mask", "who, o_id", "--mask", "i_id")
    told = sampled(shop, "shop", "joined", "--interval", "i", "--rows", "100", "--to", to, *mask, "--json")
    found = tables(told, shop)
    who, names = ({*found[name].column("who").to_pylist()} for name in ("orders", "names"))
    assert who <= names
    assert not any(name.startswith("who-") for name in names)
    ids = {*found["orders"].column("o_id").to_pylist()} & {*found["items"].column("i_id").to_pylist()}
    assert len(ids) > 10
    assert found["orders"].schema.field("o_id").type == pa.int32()
    alone = tables(sampled(shop, "shop", "alone", "--interval", "i", "--rows", "7", "--to", to, "--json"), shop)
    assert [*Counter(alone["items"].column("i_id").to_pylist()).values()] == [3, 3]
    text = sampled(shop, "shop", "joined", "--interval", "i", "--rows", "2", "--to", to, code=1)
    assert "--rows is '2'; allowed: 3 or more: so many rows of one key are together" in text
    text = sampled(shop, "shop", "joined", "--interval", "i", "--to", to, "--mask", "whoo", code=1)
    assert "whoo" in text
    assert "who" in text
