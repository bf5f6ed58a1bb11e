"""Spark, delta-rs and boto3 on one S3 prefix."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lake.stagehand import Stagehand

from stagehold.lake.available import missing_data
from stagehold.lake.object_store import s3a_options

pytestmark = pytest.mark.spark

A, B, C = ("a", 1), ("b", 2), ("c", 3)


@pytest.fixture
def in_s3(hand: Stagehand, s3_lake: str) -> Stagehand:
    keys = {"access.key": "tester", "secret.key": "tester"}  # the shared server's own environment has none
    provider = {"aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"}
    options = {f"fs.s3a.{name}": text for name, text in {**keys, **provider}.items()}
    for name, text in {**s3a_options(os.environ), **options}.items():
        hand.spark.conf.set(name, text)
    return hand.at(location=replace(hand.location, uri=f"{s3_lake}/joined"))


def test_a_wave_goes_its_whole_way_through_an_object_store(in_s3):
    first = in_s3.prepare().publish({0: [A], 1: [B]})
    second = in_s3.at(epoch=2).prepare().publish({1: [C], 2: []})
    assert missing_data([*first, *second]) == frozenset()
    assert in_s3.read(first) == [(0, *A), (1, *B)]
    assert in_s3.read([first[0], *second]) == [(0, *A), (1, *C)]
    assert not Path("s3:").exists()
