from __future__ import annotations

import os

import pytest

from stagehold.errors import SourceMissing
from stagehold.model.spec import Source
from stagehold.run.sources import list_splits


def files(folder, count):
    for number in range(count):
        (folder / f"part-{number:02}.parquet").write_text(str(number))


def splits(folder, count):
    return list_splits("orders", Source(kind="parquet", path="${lake}/*.parquet", splits=count), str(folder))


@pytest.mark.parametrize(
    ("file_count", "split_count", "sizes"),
    [(4, 4, [1, 1, 1, 1]), (5, 2, [2, 3]), (2, 4, [0, 1, 0, 1]), (7, 1, [7])],
)
def test_files_are_dealt_evenly_and_each_once(tmp_path, file_count, split_count, sizes):
    files(tmp_path, file_count)
    found = splits(tmp_path, split_count)
    assert [len(split.files) for split in found] == sizes
    dealt = [file.path for split in found for file in split.files]
    assert dealt == sorted(str(path) for path in tmp_path.glob("*.parquet"))


def test_a_changed_file_changes_its_split_only(tmp_path):
    files(tmp_path, 4)
    before = [split.fingerprint for split in splits(tmp_path, 4)]
    path = tmp_path / "part-02.parquet"
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
    after = [split.fingerprint for split in splits(tmp_path, 4)]
    assert [left == right for left, right in zip(before, after, strict=True)] == [True, True, False, True]


def test_a_path_that_matches_nothing_is_an_error_that_names_it(tmp_path):
    with pytest.raises(SourceMissing, match=str(tmp_path)):
        splits(tmp_path, 4)
