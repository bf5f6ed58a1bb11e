"""Places and tokens of tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagehold.lake.store.location import LONGEST, checkpoints_of, path_safe, script_uri, spark_uri, table_location
from stagehold.spec.pipeline import Output, OutputType, Stage

OWN = Stage(name="joined", job="jobs:joined", partitions=1, max_parallelism=128)
PUBLISHED = OWN.model_copy(update={"output": Output(type=OutputType.BLOCKING_PERSISTENT, table="marts.top_orders")})


def test_a_stage_has_a_table_per_interval():
    location = table_location("/lake", "p", OWN, "2026-11-20")
    assert (location.uri, location.interval, location.stage) == ("/lake/stages/p/joined/2026-11-20", None, "joined")
    assert location.token == "stagehold/p/joined/2026-11-20"


def test_a_published_table_is_where_its_name_says_with_a_token_per_interval():
    first, second = (table_location("/lake/", "p", PUBLISHED, interval) for interval in ("a", "b"))
    assert first.uri == second.uri == "/lake/marts/top_orders"
    assert (first.interval, first.token) == ("a", "stagehold/p/joined/a")
    assert first.token != second.token


def test_a_table_keeps_its_place_when_its_stage_is_renamed_under_the_same_uid():
    renamed = OWN.model_copy(update={"name": "other", "uid": "joined"})
    assert table_location("/lake", "p", renamed, "i").uri == table_location("/lake", "p", OWN, "i").uri


def test_a_relative_lake_is_made_absolute_and_a_bucket_is_left_alone():
    assert table_location("lake", "p", OWN, "i").uri == str(Path("lake/stages/p/joined/i").absolute())
    assert table_location("s3://bucket/lake/", "p", OWN, "i").uri == "s3://bucket/lake/stages/p/joined/i"


def test_each_run_has_its_own_folder_of_checkpoints():
    assert checkpoints_of("/lake/", "p", "2026-11-20", "run.1") == "/lake/checkpoints/p/2026-11-20/run.1"
    manual = [checkpoints_of("s3://bucket/lake", "p", "i", f"manual__2026-11-20T{hour}+00:00") for hour in ("01", "02")]
    assert len(set(manual)) == 2
    assert all(place.rpartition("/")[0] == "s3://bucket/lake/checkpoints/p/i" for place in manual)


def test_spark_has_another_name_for_s3():
    assert spark_uri("s3://bucket/x") == "s3a://bucket/x"
    assert spark_uri("/lake/s3://x") == "file:///lake/s3://x"
    assert script_uri("/lake/s3://x") == "/lake/s3://x"
    assert script_uri("s3://bucket/x") == "s3a://bucket/x"


@pytest.mark.parametrize("text", ["2026-11-20", "joined__top.3", "manual-1_a"])
def test_plain_texts_are_their_own_path(text):
    assert path_safe(text) == text


@pytest.mark.parametrize(
    "text", ["2026-11-20T00:00:00+00:00", "_hidden", ".hidden", "..", "", "a/b", "ä", "a b", "%2F", "x" * 300]
)
def test_other_texts_become_one_visible_segment(text):
    safe = path_safe(text)
    assert len(safe) <= LONGEST + 9
    assert not safe.startswith(("_", "."))
    assert not set(safe) & set("/ %:+\\ä")
    assert path_safe(text) == safe


def test_different_texts_have_different_paths():
    texts = ["a:b", "a/b", "a-b", "a b", "_a-b", "..a-b", "A:b", "x" * 300, "x" * 301, "", "_", "."]
    assert len({path_safe(text) for text in texts}) == len(texts)
