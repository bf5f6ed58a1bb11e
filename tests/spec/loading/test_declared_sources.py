"""Sources that a project declares once, used by their names."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from stagehold.errors import InvalidSpec
from stagehold.settings import Settings
from stagehold.spec.loading.loader import find_pipeline
from stagehold.spec.pipeline import Pipeline

ORDERS = """\
kind: parquet
path: "${lake}/${vars.folder}/*.parquet"
splits: 4
owner: shop-team
description: Orders of the shop
columns: {id: bigint, at: {type: timestamp, description: When}}
freshness: {warn_after: 26h, error_after: 50h}
"""
PIPELINE = """\
pipeline: {name}
vars: {{folder: raw}}
stages:
  orders:
    job: work:orders
    source: {source}
"""


def load(folder: Path, source: str, orders: str = ORDERS, name: str = "sales") -> Pipeline:
    for place in ("include/sources", "include/pipelines"):
        (folder / place).mkdir(parents=True, exist_ok=True)
    (folder / "work.py").write_text("from stagehold import stage\n\n\n@stage\ndef orders(ctx, source): ...\n")
    (folder / "include/sources/orders.yaml").write_text(orders)
    (folder / f"include/pipelines/{name}.yaml").write_text(PIPELINE.format(name=name, source=source))
    pipelines = str(folder / "include" / "pipelines")
    return find_pipeline(name, Settings(home=str(folder), project=str(folder), suites=str(folder), pipelines=pipelines))


def test_a_source_is_used_by_its_name_in_each_pipeline_with_the_pipelines_own_variables(tmp_path):
    found = [load(tmp_path, "orders", name=name).stage("orders") for name in ("sales", "returns")]
    for stage in found:
        assert stage.source is not None
        assert (stage.source.path, stage.partitions, stage.source.owner) == ("${lake}/raw/*.parquet", 4, "shop-team")
        assert stage.source.freshness.error_after == timedelta(hours=50)
        assert [(name, form.type) for name, form in stage.source.columns.items()] == [
            ("id", "bigint"),
            ("at", "timestamp"),
        ]


def test_fields_beside_the_name_stand_over_those_of_the_file(tmp_path):
    stage = load(tmp_path, "{use: orders, splits: 2, incremental: true}").stage("orders")
    assert stage.source is not None
    assert (stage.partitions, stage.source.incremental, stage.source.kind.value) == (2, True, "parquet")


def test_a_source_that_is_changed_is_read_again(tmp_path):
    load(tmp_path, "orders")
    old = time.time() - 10
    for file in tmp_path.rglob("*.*"):
        os.utime(file, (old, old))
    settings = Settings(
        home=str(tmp_path), project=str(tmp_path), suites=str(tmp_path), pipelines=str(tmp_path / "include/pipelines")
    )
    assert find_pipeline("sales", settings).stage("orders").partitions == 4
    (tmp_path / "include/sources/orders.yaml").write_text(ORDERS.replace("splits: 4", "splits: 3"))
    assert find_pipeline("sales", settings).stage("orders").partitions == 3


@pytest.mark.parametrize(
    ("source", "orders", "file", "line", "field", "told"),
    [
        ("order", ORDERS, "pipelines/sales.yaml", 6, "stages.orders.source", "did you mean orders?"),
        ("{use: order}", ORDERS, "pipelines/sales.yaml", 6, "stages.orders.source", "a source of include/sources"),
        ("{use: [orders]}", ORDERS, "pipelines/sales.yaml", 6, "stages.orders.source", "a source of include/sources"),
        ("{use: orders, splits: 0}", ORDERS, "pipelines/sales.yaml", 6, "stages.orders.source.splits", "1 or more"),
        ("orders", ORDERS.replace("splits: 4", "splits: 0"), "sources/orders.yaml", 3, "splits", "1 or more"),
        ("orders", ORDERS.replace("owner", "ower"), "sources/orders.yaml", 4, "ower", "did you mean owner?"),
        ("orders", ORDERS.replace("bigint", "long"), "sources/orders.yaml", 6, "columns.id.type", "bigint"),
        ("orders", ORDERS.replace("26h", "soon"), "sources/orders.yaml", 7, "freshness.warn_after", "10min"),
        ("orders", ORDERS.replace("{type: ", "{null: false, type: "), "sources/orders.yaml", 6, "columns.at", "a gate"),
        ("orders", "- kind\n", "sources/orders.yaml", 1, "file", "a mapping"),
        ("orders", f"{ORDERS}kind: csv\n", "sources/orders.yaml", 1, "kind", "once"),
        (
            "orders",
            ORDERS.replace("vars.folder", "vars.foldr"),
            "sources/orders.yaml",
            2,
            "path",
            "did you mean folder?",
        ),
    ],
)
def test_what_is_wrong_is_told_with_the_file_and_line_that_say_it(tmp_path, source, orders, file, line, field, told):
    with pytest.raises(InvalidSpec) as caught:
        load(tmp_path, source, orders)
    problem = caught.value.problems[0]
    assert (str(caught.value.file).endswith(file), problem.line, problem.field) == (True, line, field), str(
        caught.value
    )
    assert told in problem.allowed
