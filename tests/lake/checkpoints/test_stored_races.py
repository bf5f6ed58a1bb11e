"""Writers of checkpoints that die, and writers and discarders that are at work at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from tests.lake.checkpoints.samples import (
    LONG_AGO,
    PIPELINE,
    changed,
    checkpoint,
    interrupted,
    record,
    stage,
    stored,
    verdict,
)

from stagehold.errors import CheckpointCorrupt, CheckpointNumberTaken, CheckpointOvertaken
from stagehold.lake.store.files import files_at

pytestmark = pytest.mark.slow

TOMORROW = datetime.now(UTC) + timedelta(days=1)


class Killed(BaseException):
    """A kill, for whatever would handle an error."""


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
