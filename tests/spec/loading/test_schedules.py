"""What may start the runs of a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.loading.schedule_checks import AssetName, AssetsJoined, asset_condition
from stagehold.spec.pipeline import Pipeline


def build(folder: Path, schedule: Any) -> Pipeline:
    (folder / "work.py").write_text("from stagehold import stage\n\n\n@stage\ndef numbers(ctx, source): ...\n")
    (folder / "times.py").write_text("class Nights:\n    pass\n")
    stage = {"job": "work:numbers", "source": {"kind": "parquet", "path": "x", "splits": 2}}
    declared = {"pipeline": "small", "schedule": schedule, "stages": {"numbers": stage}}
    return build_pipeline(declared, project=folder, suites=folder)


def test_a_bare_word_is_cron_which_intervals_go_by(tmp_path):
    assert [build(tmp_path, given).schedule for given in ("0 2 * * *", {"cron": "@daily"}, None)] == [
        "0 2 * * *",
        "@daily",
        None,
    ]
    shown = [{"cron": "@daily"}, {"cron": "@daily", "assets": "a & b"}, {"timetable": "times:Nights"}, None]
    assert [str(build(tmp_path, given).starts) for given in shown] == ["@daily", "@daily | a & b", "times:Nights", ""]
    followed = build(tmp_path, {"assets": "marts.orders"})
    assert (followed.schedule, followed.starts.assets) == (None, "marts.orders")


a, b, c = map(AssetName, "abc")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("marts.orders", AssetName("marts.orders")),
        ("a & b", AssetsJoined(True, (a, b))),
        ("a|b&c", AssetsJoined(False, (a, AssetsJoined(True, (b, c))))),
        ("(a | b) & c", AssetsJoined(True, (AssetsJoined(False, (a, b)), c))),
        ("a & (b & c)", AssetsJoined(True, (a, AssetsJoined(True, (b, c))))),
        ("((a))", a),
        ("s3://shop/raw/orders | a", AssetsJoined(False, (AssetName("s3://shop/raw/orders"), a))),
    ],
)
def test_assets_are_joined_as_in_python(text, condition):
    assert asset_condition(text) == condition


def test_an_asset_with_an_address_is_known_by_that():
    assert [AssetName(name).is_uri for name in ("s3://shop/raw/orders", "marts.orders")] == [True, False]


@pytest.mark.parametrize(
    ("schedule", "field", "given", "allowed"),
    [
        ("nightly", "schedule", "'nightly'", "a cron expression or @once"),
        ({"cron": "0 2 * *"}, "schedule", "'0 2 * *'", "a cron expression"),
        ({"assets": "a &"}, "schedule.assets", "an asset is missing at the end", "marts.orders & (a.rates | b.rates)"),
        ({"assets": "& a"}, "schedule.assets", "an asset is missing before &", "names or URIs"),
        ({"assets": "(a | b"}, "schedule.assets", "a ) is missing", "with ( and )"),
        ({"assets": "a b"}, "schedule.assets", "b is one too many", "joined by & and |"),
        ({"assets": "a, b"}, "schedule.assets", ", b is no asset", "joined by & and |"),
        ({"assets": ""}, "schedule.assets", "an asset is missing at the end", "names or URIs"),
        ({"assets": "a", "cron": "@once"}, "schedule.cron", "'@once'", "times that come again"),
        ({"asset": "a"}, "schedule.asset", "'a'", "did you mean assets?"),
        ({"timetable": "nights"}, "schedule.timetable", "'nights'", "module:Class"),
        ({"timetable": "times:Days"}, "schedule.timetable", "'times:Days'", "a class of times: Nights"),
        ({"timetable": "times:Nights", "cron": "@daily"}, "schedule.cron", "'@daily'", "nothing beside a timetable"),
        ({"arguments": {"a": 1}}, "schedule.arguments", "a mapping", "only with a `timetable`"),
        (7, "schedule", "7", "text"),
    ],
)
def test_what_cannot_start_a_run_is_told_with_what_can(tmp_path, schedule, field, given, allowed):
    with pytest.raises(InvalidSpec) as caught:
        build(tmp_path, schedule)
    (problem,) = caught.value.problems
    assert (problem.field, given in problem.given, allowed in problem.allowed) == (field, True, True), str(problem)
