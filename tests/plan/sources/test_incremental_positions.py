from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagehold.model.source_position import FilesRead, SourceFile, VersionsRead
from stagehold.plan.sources.incremental_positions import changes_since, new_files, new_versions


def files(text):
    """ "a b2" are the files a and b, the latter with its second content."""
    return tuple(SourceFile(word[0], 10, word[1:] or "1") for word in text.split())


@pytest.mark.parametrize(
    ("listed", "taken", "new"),
    [
        ("a b", [], "a b"),
        ("a b c", ["a b"], "c"),
        ("a b", ["a b"], ""),
        ("", ["a b"], ""),
        ("a b c d", ["b", "", "d"], "a c"),
        ("a0 b", ["b"], "a0"),
        ("a2", ["a"], ""),
    ],
    ids=[
        "all at first",
        "what arrived",
        "nothing new",
        "all cleared away",
        "whoever took it",
        "late but earlier by name",
        "changed in place",
    ],
)
def test_an_interval_takes_the_files_that_nobody_has(listed, taken, new):
    assert new_files(files(listed), [FilesRead(files(text)) for text in taken]) == FilesRead(files(new))


@pytest.mark.parametrize(
    ("newest", "taken", "new"),
    [
        (4, [], (None, 4)),
        (6, [(None, 4)], (4, 6)),
        (4, [(None, 4)], (4, 4)),
        (9, [(4, 6), (None, 4), (6, 6)], (6, 9)),
        (2, [(None, 4)], (4, 4)),
    ],
    ids=["all at first", "what was added", "nothing new", "after the last taken", "a table that went back"],
)
def test_an_interval_takes_the_versions_that_nobody_has(newest, taken, new):
    assert new_versions(newest, [VersionsRead(*one) for one in taken]) == VersionsRead(*new)


@pytest.mark.parametrize(
    ("listed", "taken", "changed"),
    [("a b", ["a b"], ""), ("a2 b", ["a", "b"], "a"), ("b", ["a b"], ""), ("a2", [], ""), ("a2 b2 c", ["a b"], "a b")],
)
def test_files_changed_in_place_are_found(listed, taken, changed):
    found = changes_since(files(listed), [FilesRead(files(text)) for text in taken])
    assert [text.split()[0] for text in found] == changed.split()


def test_a_change_says_what_is_different():
    before = [FilesRead((SourceFile("a", 10, "1"), SourceFile("b", 10, "1")))]
    now = [SourceFile("a", 12, "2"), SourceFile("b", 10, "2")]
    assert changes_since(now, before) == (
        "a was read before: 10 bytes, now 12",
        "b was read before: still 10 bytes, but written again",
    )


@settings(max_examples=200)
@given(st.lists(st.one_of(st.just("arrive"), st.sampled_from("wxyz")), max_size=40))
def test_each_file_is_taken_once_and_none_is_left_in_any_order_of_intervals(events):
    """Intervals come in any order and again and again; files arrive in between."""
    listed, taken = [], {}
    for event in events:
        if event == "arrive":
            listed.append(SourceFile(f"{(len(listed) * 7) % 100:02}", 1, "1"))
        elif event not in taken:
            taken[event] = new_files(sorted(listed), taken.values())
    taken["the last"] = new_files(sorted(listed), taken.values())
    assert sorted(file for position in taken.values() for file in position.files) == sorted(listed)


@settings(max_examples=200)
@given(st.lists(st.one_of(st.just("commit"), st.sampled_from("wxyz")), max_size=40))
def test_each_version_is_taken_once_in_any_order_of_intervals(events):
    newest, taken = 0, {}
    for event in events:
        newest += event == "commit"
        if event != "commit" and event not in taken:
            taken[event] = new_versions(newest, taken.values())
    taken["the last"] = new_versions(newest, taken.values())
    read = [
        version
        for record in taken.values()
        for version in range(0 if record.after is None else record.after + 1, record.version + 1)
    ]
    assert sorted(read) == list(range(newest + 1))
