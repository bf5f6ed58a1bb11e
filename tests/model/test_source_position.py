from __future__ import annotations

import json

import pytest

from stagehold.model.source_position import (
    FilesFound,
    FilesRead,
    FolderColumn,
    Position,
    SourceFile,
    VersionsRead,
    read_position,
    write_position,
)

FILES = (SourceFile("/lake/a", 10, "v1"), SourceFile("/lake/b", 20, "v2"))


@pytest.mark.parametrize(
    ("position", "text"),
    [
        (FilesRead(()), "0 files"),
        (FilesRead(FILES, (FolderColumn("day", "date"),)), "2 files"),
        (VersionsRead(None, 3), "the table at version 3"),
        (VersionsRead(3, 5), "what versions 4 to 5 added"),
        (VersionsRead(5, 5), "nothing, as no version is new"),
        (
            VersionsRead(3, 5, FilesFound(7, (SourceFile("day=1/c", 30, "", (("day", "1"), ("to", None))),), "{}")),
            "what versions 4 to 5 added, from 1 files that the table has at version 7",
        ),
    ],
)
def test_a_position_says_what_was_taken_and_reads_back_from_json(position: Position, text: str) -> None:
    assert str(position) == text
    assert read_position(json.loads(json.dumps(write_position(position)))) == position


def test_files_from_before_folders_had_columns_are_read() -> None:
    assert read_position({"files": [["/lake/a", 10, "v1"]]}) == FilesRead(FILES[:1])
