from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.store import CheckpointStore, CompletedCheckpoint, Retention
from stagehold.errors import CheckpointStoreClosed
from stagehold.model.records import RunState

KINDS = {"c": SnapshotKind.CHECKPOINT, "s": SnapshotKind.SAVEPOINT, "x": SnapshotKind.STOP_WITH_SAVEPOINT}


def entries(text):
    """Checkpoints, savepoints and stop-with-savepoints as c1, s2, x3."""
    return tuple(CompletedCheckpoint(int(part[1:]), KINDS[part[0]]) for part in text.split())


def written(found):
    letters = {kind: letter for letter, kind in KINDS.items()}
    return " ".join(f"{letters[entry.kind]}{entry.id}" for entry in found)


def filled(text, retained):
    store, dropped = CheckpointStore(retained), ()
    for entry in entries(text):
        store, dropped = store.add(entry)
    return store, dropped


ADDED = [
    ("the first", 1, "c1", "c1", ""),
    ("the oldest is dropped for the newest", 1, "c1 c2", "c2", "c1"),
    ("as many as are retained", 3, "c1 c2 c3 c4", "c2 c3 c4", "c1"),
    ("less than one is one", 0, "c1 c2", "c2", "c1"),
    ("the newest real checkpoint stays behind savepoints", 1, "c1 s2", "c1 s2", ""),
    ("but the savepoint between them does not", 1, "c1 s2 s3", "c1 s3", "s2"),
    ("nor an older checkpoint", 2, "c1 c2 s3", "c2 s3", "c1"),
    ("after a stop-with-savepoint no checkpoint is needed", 1, "c1 x2", "x2", "c1"),
    ("only savepoints", 1, "s1 s2", "s2", "s1"),
]


@pytest.mark.parametrize(
    ("retained", "added", "kept", "dropped"), [row[1:] for row in ADDED], ids=[row[0] for row in ADDED]
)
def test_what_is_kept_and_what_the_last_one_drops(retained, added, kept, dropped):
    store, last_dropped = filled(added, retained)
    assert (written(store.entries), written(last_dropped)) == (kept, dropped)
    assert store.newest == store.entries[-1]


def test_a_smaller_number_takes_effect_at_the_next_checkpoint():
    store, dropped = CheckpointStore(1, entries("c1 c2 s3 c4")).add(*entries("c5"))
    assert (written(store.entries), written(dropped)) == ("c5", "c1 c2 s3 c4")


def test_an_empty_store_has_no_newest():
    assert CheckpointStore().newest is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("cs"), min_size=1, max_size=15), st.integers(1, 4))
def test_the_newest_and_the_newest_checkpoint_are_never_dropped(kinds, retained):
    text = " ".join(f"{kind}{number}" for number, kind in enumerate(kinds, 1))
    store, _ = filled(text, retained)
    everything = entries(text)
    assert store.newest == everything[-1]
    assert [entry for entry in everything if entry.ours][-1:] == [entry for entry in store.entries if entry.ours][-1:]
    assert len(store.entries) <= retained + 1
    assert list(store.entries) == sorted(store.entries, key=lambda entry: entry.id)


ENDS = [
    # retention, state, are checkpoints kept
    ("never", "finished", False),
    ("never", "canceled", False),
    ("never", "failed", False),
    ("never", "suspended", True),
    ("on_failure", "finished", False),
    ("on_failure", "canceled", False),
    ("on_failure", "failed", True),
    ("on_failure", "suspended", True),
    ("on_cancellation", "finished", False),
    ("on_cancellation", "canceled", True),
    ("on_cancellation", "failed", True),
    ("on_cancellation", "suspended", True),
    ("unless_canceled", "finished", True),
    ("unless_canceled", "canceled", False),
    ("unless_canceled", "failed", True),
    ("unless_canceled", "suspended", True),
    ("always", "finished", True),
    ("always", "canceled", True),
    ("always", "failed", True),
]


@pytest.mark.parametrize(("retention", "state", "kept"), ENDS)
def test_what_outlives_the_run(retention, state, kept):
    store, deleted = CheckpointStore(9, entries("c1 s2 c3 x4")).end(Retention(retention), RunState(state))
    assert written(store.entries) == ("c1 s2 c3 x4" if kept else "s2 x4")
    assert written(deleted) == ("" if kept else "c1 c3")
    with pytest.raises(CheckpointStoreClosed, match="Checkpoint 5 came after its run had ended"):
        store.add(*entries("c5"))
