from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagehold.checkpoints.run_log import StageInitialised, VertexFinished, VerticesReset, replay
from stagehold.errors import RunLogCorrupt


def events(text):
    """ "a=2" initialises stage a with two partitions, "a0" finishes one, "a0?" does so without a snapshot,
    "-a0,a1" resets.
    """
    for word in text.split():
        if "=" in word:
            yield StageInitialised(word[0], int(word[2:]))
        elif word.startswith("-"):
            yield VerticesReset(tuple(word[1:].split(",")))
        else:
            name = word.rstrip("?")
            yield VertexFinished(name, name[0], "attempt", snapshot=not word.endswith("?"))


TABLE = [
    ("nothing was logged", "", ""),
    ("what finished", "a=2 a0 a1", "a0 a1"),
    ("a reset takes it back", "a=2 a0 a1 -a0", "a1"),
    ("a reset of what never finished does nothing", "a=2 -a0 a1", "a1"),
    ("finished again after a reset", "a=2 a0 -a0 a1 a0", "a1 a0"),
    ("the last ones without a snapshot do not count", "a=3 a0 a1? a2?", "a0"),
    ("earlier ones do", "a=3 a0? a1", "a0 a1"),
    ("none with a snapshot", "a=2 a0? a1?", ""),
    ("the same said twice", "a=2 a=2 a0 a0", "a0"),
    ("a snapshot counts for all that came before it", "a=2 a0 a1? a0", "a1 a0"),
]


@pytest.mark.parametrize(("log", "finished"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_replay(log, finished):
    assert list(replay(events(log)).finished) == finished.split()


CORRUPT = [
    ("a=2 a=3", "stage a has 2 partitions and then 3"),
    ("a=2 b0", "b0 finished before its stage b was initialised"),
]


@pytest.mark.parametrize(("log", "reason"), CORRUPT)
def test_a_log_that_contradicts_itself(log, reason):
    with pytest.raises(RunLogCorrupt, match=reason):
        replay(events(log))


WORDS = st.lists(st.sampled_from(["a0", "a1", "b0", "-a0", "-a0,b0", "a1?", "b1?"]), max_size=12)


@settings(max_examples=100, deadline=None)
@given(WORDS)
def test_replaying_the_whole_log_twice_changes_nothing_that_has_a_snapshot(words):
    log = [*events("a=2 b=2"), *events(" ".join(words)), *events("b0")]
    assert set(replay([*log, *log]).finished) == set(replay(log).finished)
