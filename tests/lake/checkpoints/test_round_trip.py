"""Whatever a checkpoint consists of is read back as it was written, by us and by DuckDB."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import uuid4

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lake.checkpoints.samples import (
    PIPELINE,
    RUN,
    SHAPES,
    checkpoint,
    record,
    stage,
    stored,
)

from stagehold.checkpoints.checkpoint import Checkpoint, SnapshotKind
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.store.files import FolderFiles
from stagehold.model.records import Cell, DataFile, GateResult, PartitionRecord, StatePart
from stagehold.model.source_position import FilesRead, FolderColumn, SourceFile, VersionsRead
from stagehold.model.stage_state import StateColumn, StateKind, StateShape
from stagehold.model.standing import PartitionState
from stagehold.spec.pipeline import Pipeline

pytestmark = pytest.mark.slow

texts, named, whole = st.text(max_size=8), st.text(min_size=1, max_size=8), st.integers(0, 2**63 - 1)
times = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-3.5))]), min_value=datetime(1970, 1, 2))
cells = st.builds(Cell, texts, texts, texts)
files = st.lists(st.builds(DataFile, texts, whole, whole), max_size=2).map(tuple)
parts = st.builds(StatePart, texts, files, whole, texts, whole, whole, texts, st.none() | texts)
records = st.builds(
    PartitionRecord,
    cell=cells,
    partition=st.integers(0, 1_200),
    state=st.sampled_from(PartitionState),
    run_id=texts,
    attempt_id=texts,
    epoch=whole,
    wave=whole,
    table=texts,
    version=st.none() | whole,
    files=files,
    rows=whole,
    fingerprint=texts,
    compute_key=texts,
    recorded_at=times,
    reason=st.none() | texts,
    seconds=st.none() | st.floats(allow_nan=False),
    unexplained=st.booleans(),
    kept=st.lists(
        st.builds(StatePart, texts, files, whole, texts, whole, whole, texts, st.none() | texts), max_size=2
    ).map(tuple),
    judged=texts,
)
columns = st.lists(st.builds(StateColumn, texts, texts), max_size=2).map(tuple)
states = st.builds(
    StateShape, texts, st.sampled_from(StateKind), columns, st.lists(texts, max_size=2).map(tuple), st.none() | texts
)
source_files = st.builds(SourceFile, texts, whole, texts)  # what folders say of a file is told by its path
positions = st.one_of(
    st.none(),
    st.builds(VersionsRead, st.none() | whole, whole),
    st.builds(
        FilesRead,
        st.lists(source_files, max_size=2).map(tuple),
        st.lists(st.builds(FolderColumn, texts, texts), max_size=2).map(tuple),
    ),
)


@st.composite
def snapshots(draw, shape):
    chosen = draw(st.lists(records, max_size=6, unique_by=lambda record: record.partition))
    ordered = tuple(sorted(chosen, key=lambda one: one.partition))
    verdicts = [
        GateResult(one.cell, one.partition, *draw(st.tuples(texts, texts, texts, st.booleans(), texts, times)))
        for one in ordered
        for _ in range(draw(st.integers(0, 2)))
    ]
    parallelism = draw(st.integers(1, 1_201))
    return replace(
        stage(ordered, parallelism),
        shape=replace(shape, reads=frozenset(draw(st.lists(texts, max_size=2)))),
        verdicts=tuple(verdicts),
        states=tuple(draw(st.lists(states, max_size=2))),
        position=draw(positions),
    )


@st.composite
def checkpoints(draw):
    stages = tuple(draw(snapshots(shape)) for shape in SHAPES[: draw(st.integers(0, 2))])
    kind, name = draw(st.sampled_from(SnapshotKind)), draw(st.none() | texts)
    number, pipeline, interval = draw(st.tuples(st.integers(0, 10**10 - 1), named, named))
    return Checkpoint(number, kind, pipeline, interval, "run", draw(times), stages, name)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given=checkpoints())
def test_a_checkpoint_is_read_back_as_it_was_written(lake, given):
    taken = replace(given, run_id=str(uuid4()))
    run = replace(RUN, pipeline=taken.pipeline, interval=taken.interval, run_id=taken.run_id)
    there = StoredCheckpoints(lake, run)
    there.write(taken, PIPELINE)
    assert there.numbers() == (taken.id,)
    assert there.read_checkpoint(taken.id) == taken


def test_the_pipeline_is_in_the_manifest(lake):
    written = stored(lake).write(checkpoint(1), PIPELINE)
    assert stored(lake).read_manifest(1) == written
    assert Pipeline.model_validate(stored(lake).read_manifest(1).spec) == PIPELINE


def test_a_manifest_is_json_that_names_its_parts(tmp_path):
    there = stored(str(tmp_path))
    there.write(checkpoint(1, stage(map(record, range(600)))), PIPELINE)
    facts = json.loads(FolderFiles(there.uri).read("0000000001.json"))
    assert (facts["format"], facts["version"], facts["kind"]) == ("stagehold-checkpoint", 1, "checkpoint")
    assert facts["spec"]["stages"][0]["job"] == "jobs.x:a"
    named = {part["file"]: part["bytes"] for part in facts["stages"][0]["parts"]}
    assert named == FolderFiles(there.uri).sizes("parts")
    assert [part["partitions"] for part in facts["stages"][0]["parts"]] == [500, 100]


def test_duckdb_counts_partitions_by_state(tmp_path):
    there = stored(str(tmp_path))
    blocked = [record(partition, state=PartitionState.BLOCKED) for partition in range(600, 607)]
    manifest = there.write(checkpoint(1, stage([*map(record, range(600)), *blocked])), PIPELINE)
    files = [f"{there.uri}/{part.file}" for part in manifest.parts]
    query = "select state, count(*), sum(rows), sum(len(files)), bool_and(verdicts[1].passed) from read_parquet($1)"
    rows = duckdb.execute(f"{query} group by state order by state", [files]).fetchall()
    assert rows == [("blocked", 7, 70, 7, True), ("consumable", 600, 6000, 600, True)]
