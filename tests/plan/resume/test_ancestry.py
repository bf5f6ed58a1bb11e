"""What a partition was made from, whatever was recorded since: of that it is known whose word lets it."""

from __future__ import annotations

from dataclasses import replace

from tests.plan.resume.situations import CHAIN, DONE, FUSED, finished, records_of

from stagehold.model.standing import PartitionState
from stagehold.plan.resume.waiving import Ancestry

RAW, CLEAN, TOTAL = (records_of(DONE, name) for name in ("raw", "clean", "total"))
CHAINED = (*RAW, *CLEAN, *TOTAL)


def told(ancestry, record):
    return sorted(f"{stage}[{number}] {fingerprint}" for (stage, number), fingerprint in ancestry.made_from(record))


def newer(record, **values):
    return replace(record, compute_key="newer", fingerprint="newer", **values)


def test_it_follows_all_inputs_to_the_sources():
    ancestry = Ancestry(CHAIN, CHAINED)
    assert told(ancestry, CLEAN[1]) == ["raw[1] data raw 1"]
    assert told(ancestry, TOTAL[0]) == [f"{name}[{n}] data {name} {n}" for name in ("clean", "raw") for n in range(2)]


def test_what_was_recorded_later_was_not_read():
    history = (*RAW, *CLEAN, *TOTAL, newer(RAW[0]), newer(CLEAN[0]))
    assert Ancestry(CHAIN, history).made_from(TOTAL[0]) == Ancestry(CHAIN, CHAINED).made_from(TOTAL[0])
    assert told(Ancestry(CHAIN, history), newer(CLEAN[0])) == ["raw[0] newer"]


def test_what_nobody_could_read_was_not_read():
    history = (*RAW, *CLEAN, newer(CLEAN[0], state=PartitionState.BLOCKED), *TOTAL)
    assert "clean[0] data clean 0" in told(Ancestry(CHAIN, history), TOTAL[0])


def test_what_becomes_of_data_later_is_no_new_data():
    out = replace(TOTAL[0], state=PartitionState.HELD, version=None)
    history = (*CHAINED, newer(CLEAN[0]), out)
    assert Ancestry(CHAIN, history).made_from(out) == Ancestry(CHAIN, CHAINED).made_from(TOTAL[0])


def test_what_is_computed_along_is_looked_through():
    done = finished(FUSED)
    raw, kept = records_of(done, "raw"), records_of(done, "kept")
    assert told(Ancestry(FUSED, (*raw, *kept)), kept[1]) == ["raw[1] data raw 1"]


def test_nothing_is_known_of_what_is_on_record_no_more():
    assert told(Ancestry(CHAIN, ()), TOTAL[0]) == []
