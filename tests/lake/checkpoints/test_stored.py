"""What is written is read back, costs what changed, and is there for one writer only."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from threading import Barrier
from uuid import uuid4

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lake.checkpoints.samples import (
    LONG_AGO,
    PIPELINE,
    RUN,
    SHAPES,
    checkpoint,
    interrupted,
    record,
    stage,
    stored,
    verdict,
)

from stagehold.checkpoints.checkpoint import Checkpoint, SnapshotKind
from stagehold.checkpoints.store import CheckpointStore, CompletedCheckpoint
from stagehold.errors import CheckpointCorrupt, CheckpointNumberTaken, CheckpointOvertaken
from stagehold.lake.checkpoints.stored import StoredCheckpoints
from stagehold.lake.store.files import FolderFiles, files_at
from stagehold.model.records import Cell, DataFile, GateResult, PartitionRecord, StatePart
from stagehold.model.source_position import FilesRead, FolderColumn, SourceFile, VersionsRead
from stagehold.model.stage_state import StateColumn, StateKind, StateShape
from stagehold.model.standing import PartitionState
from stagehold.spec.pipeline import Pipeline

pytestmark = pytest.mark.slow

TOMORROW = datetime.now(UTC) + timedelta(days=1)

# Round trip

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
    chosen = draw(st.lists(records, max_size=6, unique_by=lambda one: one.partition))
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


# What is unchanged is not written again


def changed(partitions, wave):
    return stage(record(partition, wave) for partition in partitions)


def test_only_parts_with_changes_are_written(lake):
    there = stored(lake)
    there.write(checkpoint(1, stage(map(record, range(2_000)))), PIPELINE)
    before = files_at(there.uri).facts("")
    there.write(checkpoint(2, changed(range(490, 510), 1)), PIPELINE, builds_on=1)
    after = files_at(there.uri).facts("")
    new = {path: file for path, file in after.items() if path not in before}
    assert {path: after[path] for path in before} == before
    assert sorted(path.split("-")[0] for path in new) == ["0000000002.json", "parts/0000000002", "parts/0000000002"]
    one_part = max(file.bytes for path, file in before.items() if path.startswith("parts/"))
    assert sum(file.bytes for path, file in new.items() if path.startswith("parts/")) < 2.5 * one_part


def test_a_checkpoint_built_on_another_is_as_one_that_was_written_whole(lake):
    there = stored(lake)
    old = {partition: record(partition) for partition in range(0, 1_400, 2)}
    there.write(checkpoint(1, stage(old.values())), PIPELINE)
    new = {partition: record(partition, 1) for partition in (0, 3, 998, 1_399, 1_999)}
    there.write(checkpoint(2, stage(new.values())), PIPELINE, builds_on=1)
    whole = stage(each for _, each in sorted((old | new).items()))
    assert there.read_checkpoint(2) == checkpoint(2, whole)
    assert there.read_checkpoint(1) == checkpoint(1, stage(old.values()))


def test_a_partition_that_is_recorded_again_as_it_was_costs_nothing(lake):
    there = stored(lake)
    there.write(checkpoint(1, stage(map(record, range(10)))), PIPELINE)
    there.write(checkpoint(2, stage([record(3)])), PIPELINE, builds_on=1)
    assert len(files_at(there.uri).sizes("parts")) == 1
    assert there.read_checkpoint(2) == checkpoint(2, stage(map(record, range(10))))


@pytest.mark.parametrize("change", [{"parallelism": 3}, {"max_parallelism": 4}, {"shape": SHAPES[1]}])
def test_partitions_of_a_stage_that_is_cut_differently_are_others(tmp_path, change):
    there = stored(str(tmp_path))
    there.write(checkpoint(1, stage(map(record, range(10)))), PIPELINE)
    now = replace(stage(map(record, range(3))), **change)
    there.write(checkpoint(2, now), PIPELINE, builds_on=1)
    assert there.read_checkpoint(2) == checkpoint(2, now)


def test_one_that_builds_on_nothing_shares_nothing(lake):
    there = stored(lake)
    same = stage(map(record, range(600)))
    parts = [{part.file for part in there.write(checkpoint(number, same), PIPELINE).parts} for number in (1, 2)]
    assert parts[0].isdisjoint(parts[1])
    there.discard(1, LONG_AGO)
    assert there.read_checkpoint(2) == checkpoint(2, same)


def test_a_wave_costs_the_same_however_many_partitions_there_are(tmp_path):
    costs = {}
    for partitions in (1_000, 20_000):
        lake, calls = str(tmp_path / str(partitions)), []
        stored(lake).write(checkpoint(1, stage(map(record, range(partitions)), 20_000)), PIPELINE)

        class Counted(FolderFiles):
            def read(self, path, calls=calls):
                calls.append(path)
                return super().read(path)

            def create(self, path, content, calls=calls):
                calls.append(path)
                return super().create(path, content)

        now = stage((record(partition, 1) for partition in range(500, 520)), 20_000)
        stored(lake, Counted).write(checkpoint(2, now), PIPELINE, builds_on=1)
        costs[partitions] = len(calls)
    assert costs == {1_000: 4, 20_000: 4}  # manifest and part, read and made


# Deleting


def test_of_many_checkpoints_three_are_kept_and_nothing_else(lake):
    there, store = stored(lake), CheckpointStore(retained=3)
    recorded, last = {}, 30 if lake.startswith("s3://") else 200
    for number in range(1, last + 1):
        wave = [record(number % 7 * 400 + partition, number) for partition in range(5)]
        recorded.update((one.partition, one) for one in wave)
        newest = store.newest.id if store.newest else None
        there.write(checkpoint(number, stage(wave)), PIPELINE, builds_on=newest)
        store, dropped = store.add(CompletedCheckpoint(number, SnapshotKind.CHECKPOINT))
        for entry in dropped:
            there.discard(entry.id, LONG_AGO)
    assert there.numbers() == (last - 2, last - 1, last)
    needed = {part.file for number in there.numbers() for part in there.read_manifest(number).parts}
    assert set(files_at(there.uri).sizes("parts")) == needed
    assert there.read_checkpoint(last) == checkpoint(last, stage(each for _, each in sorted(recorded.items())))


def test_discarding_may_be_done_twice_and_of_what_was_never_there(lake):
    there = stored(lake)
    there.write(checkpoint(1, stage([record(0)])), PIPELINE)
    for number in (1, 1, 9):
        there.discard(number, LONG_AGO)
    assert files_at(there.uri).facts("") == {}


def test_a_checkpoint_that_cannot_be_read_can_be_discarded(lake):
    there = stored(lake)
    files_at(there.uri).create("0000000001.json", b"{")
    there.write(checkpoint(2, stage([record(0)])), PIPELINE)
    there.discard(1, LONG_AGO)
    assert there.numbers() == (2,)


def test_beside_one_that_cannot_be_read_no_part_is_deleted(lake):
    there = stored(lake)
    there.write(checkpoint(1, stage([record(0)])), PIPELINE)
    files_at(there.uri).create("0000000002.json", b"{")
    with pytest.raises(CheckpointCorrupt, match=r"0000000002\.json"):
        there.discard(1, TOMORROW)
    assert len(files_at(there.uri).sizes("parts")) == 1


def test_what_is_not_ours_is_not_deleted(tmp_path):
    there = stored(str(tmp_path))
    for path in ("notes.txt", "parts/notes.parquet", "parts/deep/0000000001-" + "0" * 64 + ".parquet"):
        files_at(there.uri).create(path, b"x")
    there.discard(1, TOMORROW)
    assert len(files_at(there.uri).facts("")) == 3


# Writers that die, and writers at once


class Killed(BaseException):
    pass


def killed():
    raise Killed


@pytest.mark.parametrize("number", [1, 2], ids=["the same number", "the next number"])
@pytest.mark.parametrize("wave", [0, 1], ids=["the same content", "other content"])
def test_a_writer_that_dies_before_its_manifest_leaves_nothing_readable(lake, number, wave):
    there, taken = stored(lake), checkpoint(1, stage(map(record, range(600))))
    with pytest.raises(Killed):
        stored(lake, interrupted(2, killed)).write(taken, PIPELINE)
    assert len(files_at(there.uri).sizes("parts")) == 2
    assert there.numbers() == ()
    with pytest.raises(CheckpointCorrupt, match="is missing"):
        there.read_checkpoint(1)
    successor = checkpoint(number, stage(record(partition, wave) for partition in range(600)))
    needed = {part.file for part in there.write(successor, PIPELINE).parts}
    there.discard(99, TOMORROW)
    assert set(files_at(there.uri).sizes("parts")) == needed
    assert there.read_checkpoint(number) == successor


def test_parts_that_a_writer_may_still_need_are_kept(lake):
    there = stored(lake)
    with pytest.raises(Killed):
        stored(lake, interrupted(1, killed)).write(checkpoint(1, stage([record(0)])), PIPELINE)
    there.discard(99, LONG_AGO)
    assert len(files_at(there.uri).sizes("parts")) == 1


def test_drafts_of_a_killed_writer_go_when_they_are_old(tmp_path):
    there = stored(str(tmp_path))
    for draft in (".0000000001.json.ab12", "parts/.0000000001-" + "0" * 64 + ".parquet.ab12"):
        files_at(there.uri).create(draft, b"x")
    there.discard(99, LONG_AGO)
    assert len(files_at(there.uri).facts("")) == 2
    there.discard(99, TOMORROW)
    assert files_at(there.uri).facts("") == {}


@pytest.mark.parametrize("alike", [True, False])
def test_of_two_who_write_one_number_at_once_the_first_counts(lake, alike):
    gate = Barrier(2)
    taken = [checkpoint(1, stage(record(i, 0 if alike else wave) for i in range(600))) for wave in range(2)]

    def write(one):
        gate.wait()
        try:
            stored(lake).write(one, PIPELINE)
        except CheckpointNumberTaken as error:
            return str(error)
        return None

    with ThreadPoolExecutor(2) as pool:
        errors = list(pool.map(write, taken))
    assert sum(error is None for error in errors) == (2 if alike else 1)
    assert all("0000000001.json is there already" in error for error in errors if error)
    assert stored(lake).read_checkpoint(1) == taken[errors.index(None)]


def test_a_part_that_is_there_already_and_rotten_is_not_taken(lake):
    there, taken = stored(lake), checkpoint(1, stage([record(0)]))
    file = there.write(taken, PIPELINE).parts[0].file
    files_at(there.uri).remove([file, "0000000001.json"])
    files_at(there.uri).create(file, b"rotten")
    with pytest.raises(CheckpointCorrupt, match="has other content"):
        there.write(taken, PIPELINE)
    assert there.numbers() == ()


BEFORE = [checkpoint(1, stage(map(record, range(600)))), checkpoint(2, changed([1], 1)), checkpoint(3, changed([2], 2))]


def three(lake):
    there = stored(lake)
    for number, taken in enumerate(BEFORE, 1):
        there.write(taken, PIPELINE, builds_on=number - 1 or None)
    return there


@pytest.mark.parametrize("discarded", [1, 2, 3])
@pytest.mark.parametrize("moment", range(8))
def test_whatever_is_discarded_while_one_is_written_all_that_is_there_can_be_read(tmp_path, moment, discarded):
    there = three(str(tmp_path))
    writer = stored(str(tmp_path), interrupted(moment, lambda: there.discard(discarded, LONG_AGO)))
    try:
        writer.write(checkpoint(4, changed([501], 3)), PIPELINE, builds_on=3)
    except (CheckpointOvertaken, CheckpointCorrupt):
        assert 4 not in there.numbers()
        assert discarded == 3
    for number in there.numbers():
        there.read_checkpoint(number)


@pytest.mark.parametrize("discarded", [1, 2, 3])
@pytest.mark.parametrize("moment", range(7))
def test_whatever_is_written_while_one_is_discarded_all_that_is_there_can_be_read(tmp_path, moment, discarded):
    there = three(str(tmp_path))

    def write():
        for number, below in ((4, 1), (5, 2), (6, 3)):
            with suppress(CheckpointCorrupt):  # what it should build on is gone
                there.write(checkpoint(number, changed([501], 3)), PIPELINE, builds_on=below)

    stored(str(tmp_path), interrupted(moment, write)).discard(discarded, LONG_AGO)
    assert discarded not in there.numbers()
    for number in there.numbers():
        there.read_checkpoint(number)


@pytest.mark.parametrize("moment", range(9))
def test_two_may_discard_at_once(tmp_path, moment):
    there = three(str(tmp_path))
    stored(str(tmp_path), interrupted(moment, lambda: there.discard(1, LONG_AGO))).discard(2, LONG_AGO)
    there.discard(1, LONG_AGO)
    whole = {partition: record(partition) for partition in range(600)} | {1: record(1, 1), 2: record(2, 2)}
    assert there.read_checkpoint(3) == checkpoint(3, stage(whole.values()))
    assert set(files_at(there.uri).sizes("parts")) == {part.file for part in there.read_manifest(3).parts}
    assert verdict(record(1, 1)) in there.read_checkpoint(3).stages[0].verdicts


# A lake that was moved


def moved(tmp_path, *stages):
    """A checkpoint of a lake that lies somewhere else now."""
    old, new = tmp_path / "old", tmp_path / "new"
    stored(str(old)).write(checkpoint(1, *stages), PIPELINE)
    shutil.move(old, new)
    return stored(str(new)).read_checkpoint(1)


def test_what_is_below_a_lake_moves_with_it(tmp_path):
    inside = replace(record(0), table=str(tmp_path / "old" / "stages" / "a"))
    source = FilesRead((SourceFile(str(tmp_path / "old" / "raw.parquet"), 1, "1"),))
    (found,) = moved(tmp_path, replace(stage([inside]), position=source)).stages
    assert found.partitions[0].table == str(tmp_path / "new" / "stages" / "a")
    assert found.position.files[0].path == str(tmp_path / "new" / "raw.parquet")


def test_what_is_beside_a_lake_stays_where_it_is(tmp_path):
    outside = replace(record(0), table=str(tmp_path / "older" / "a"))
    (found,) = moved(tmp_path, replace(stage([outside]), position=VersionsRead(None, 3))).stages
    assert found.partitions == (outside,)


def test_a_checkpoint_is_found_by_the_address_of_its_manifest(tmp_path):
    there = stored(str(tmp_path))
    there.write(checkpoint(3, stage([record(0)])), PIPELINE)
    found, number = StoredCheckpoints.holding(f"{there.uri}/0000000003.json")
    assert (found.uri, number) == (there.uri, 3)
    assert found.read_checkpoint(number) == there.read_checkpoint(3)


def test_an_address_that_is_none_says_what_is_wrong(tmp_path):
    there = stored(str(tmp_path))
    there.write(checkpoint(3, stage([record(0)])), PIPELINE)
    elsewhere = tmp_path / "0000000003.json"
    shutil.copy(f"{there.uri}/0000000003.json", elsewhere)
    for address, problem in (
        (f"{there.uri}/0000000004.json", "0000000004.json is missing"),
        (str(elsewhere), "has to lie in a lake, as LAKE/checkpoints/sample/2026-01-01/run/0000000003.json"),
    ):
        with pytest.raises(CheckpointCorrupt, match=problem):
            StoredCheckpoints.holding(address)
