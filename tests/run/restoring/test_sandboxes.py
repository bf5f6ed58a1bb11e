"""Runs in a sandbox: what they read where production has it, what they have of their own, and that production stays."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from copy import copy
from pathlib import Path

import pytest
from tests.made_records import acceptance, savepoint_request
from tests.run.clearing.nights import PARTITIONS, PIPELINE, STAGES, Nights, _open

from stagehold.code.stage_code import code_fingerprint
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.lake.checkpoints.stored_checkpoints import manifest_file
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.run.checkpoints.discarding import dispose_of
from stagehold.run.checkpoints.savepoint_copies import export_savepoint
from stagehold.run.checkpoints.savepoint_creation import create_savepoint
from stagehold.run.upkeep.reconcile import reconcile

pytestmark = pytest.mark.slow

DAY, OTHER = "2026-11-20", "2026-11-21"
Listing = dict[str, tuple[int, int, bytes]]


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


def save(nights: Nights, run: str = "r", name: str = "kept") -> str:
    """The address of the manifest."""
    asked = savepoint_request(name, f"{run}.{DAY}")
    return address(nights, create_savepoint(asked, nights.pipeline, nights.workplace))


def address(nights: Nights, made: Savepoint) -> str:
    return f"{Savepoints(nights.settings.lake_uri).stored(made).uri}/{manifest_file(made.number)}"


def in_sandbox(nights: Nights, name: str = "fix") -> Nights:
    """The same project, as a command with `--sandbox` has it."""
    there = copy(nights)
    there.settings = nights.settings.in_sandbox(name)
    there.ledger = _open(there.settings)
    there.attempts, there.said = [], []
    return there


def listing(nights: Nights) -> Listing:
    """Every file of production, with its content."""
    home = nights.settings.home_path
    found = (path for path in home.rglob("*") if path.is_file() and "sandboxes" not in path.relative_to(home).parts)
    return {
        str(path.relative_to(home)): (path.stat().st_mtime_ns, path.stat().st_size, path.read_bytes())
        for path in found
        if path.suffix not in (".db-wal", ".db-shm")
    }


def every(nights: Nights, interval: str = DAY) -> Iterator[PartitionRecord]:
    return (record for stage in STAGES for record in nights.records(interval, stage))


def computed(nights: Nights, run: str, interval: str = DAY) -> dict[str, int]:
    """Partitions by stage that the run made itself."""
    own = {
        stage: sum(
            record.run_id == f"{run}.{interval}" and "from " not in (record.reason or "")
            for record in nights.records(interval, stage)
        )
        for stage in STAGES
    }
    return {stage: count for stage, count in own.items() if count}


def of_production(nights: Nights, record: PartitionRecord) -> bool:
    return record.table.startswith(f"{nights.settings.production.lake_uri}/")


def test_what_is_as_it_was_is_read_where_production_has_it_and_only_the_rest_is_computed(nights):
    nights.run(DAY)
    manifest, before = save(nights), listing(nights)
    there = in_sandbox(nights)
    there.rewrite("edits", "return drafts")
    there.run(DAY, "try", snapshot=manifest)
    assert computed(there, "try") == {"edits": PARTITIONS, "prints": PARTITIONS}
    assert all(of_production(there, record) for record in there.records(DAY, "drafts"))
    assert not any(
        of_production(there, record) for record in (*there.records(DAY, "edits"), *there.records(DAY, "prints"))
    )
    assert there.files(DAY)["drafts"] == [], "nothing was copied"
    assert there.published(DAY) == nights.expected
    assert listing(nights) == before
    there.run(DAY, "again")
    assert computed(there, "again") == {}


def test_all_that_happens_in_a_sandbox_leaves_production_as_it_was(nights):
    nights.run(DAY)
    manifest, before = save(nights), listing(nights)
    there = in_sandbox(nights)
    there.run(DAY, "try", snapshot=manifest)
    save(there, "try", "tried")
    export_savepoint("tried", str(nights.settings.home_path.parent / "exported"), there.settings, print)
    for interval in ("2026-11-22", "2026-11-23", "2026-11-24", "2026-11-25"):
        there.run(interval, "more")
    dispose_of(Savepoints(there.settings.lake_uri).get("tried"), there.workplace)
    there.collect()
    assert there.states(DAY)["drafts"] == {PartitionState.RELEASED}
    there.collect()
    assert listing(nights) == before
    assert nights.states(DAY)["drafts"] == {PartitionState.CONSUMABLE}


def test_what_production_deletes_is_computed_in_the_sandbox(nights):
    nights.run(DAY)
    there = in_sandbox(nights)
    there.run(DAY, "try", snapshot=save(nights))
    shutil.rmtree(nights.records(DAY, "drafts")[0].table)
    shutil.rmtree(nights.records(DAY, "edits")[0].table)
    there.rewrite("prints", "return edits")
    there.run(DAY, "again")
    assert computed(there, "again") == {stage: PARTITIONS for stage in STAGES}
    assert not any(of_production(there, one) for one in every(there))
    assert there.published(DAY) == nights.expected


def test_production_goes_on_beside_it(nights):
    nights.run(DAY)
    there = in_sandbox(nights)
    there.run(DAY, "try", snapshot=save(nights))
    nights.write_source(1, 50)
    nights.run(DAY, "s")
    assert nights.published(DAY) == [4, 200, 12]
    assert there.published(DAY) == [4, 8, 12]
    there.run(DAY, "follow")
    assert there.published(DAY) == [4, 200, 12], "the sandbox reads production's sources"
    assert computed(there, "follow") == {stage: 1 for stage in STAGES}


def test_another_interval_is_read_where_it_lies_as_well(nights):
    nights.run(DAY)
    manifest, before = save(nights), listing(nights)
    there = in_sandbox(nights)
    there.run(OTHER, "try", snapshot=manifest)
    assert computed(there, "try", OTHER) == {}
    assert all(of_production(there, record) for record in there.records(OTHER, "edits"))
    assert there.published(OTHER) == nights.published(DAY)
    assert listing(nights) == before


def test_what_a_sandbox_saves_is_restored_in_it_and_taken_over_by_production(nights):
    nights.run(DAY)
    there = in_sandbox(nights)
    there.rewrite("edits", "return drafts")
    there.run(DAY, "try", snapshot=save(nights))
    tried = save(there, "try", "tried")
    there.run(DAY, "back", snapshot=tried)
    assert computed(there, "back") == {}
    nights.run(DAY, "deliver", snapshot=tried)
    assert computed(nights, "deliver") == {}
    root = there.settings.sandboxes_uri
    assert not [one.table for one in every(nights) if one.table.startswith(root)], "production keeps nothing there"
    shutil.rmtree(root)
    nights.run(DAY, "later")
    assert computed(nights, "later") == {}
    assert nights.published(DAY) == nights.expected


def test_a_lost_ledger_of_a_sandbox_is_rebuilt_and_adopts_nothing_of_production(nights):
    nights.run(DAY)
    there = in_sandbox(nights)
    there.run(DAY, "try", snapshot=save(nights))
    nights.run(DAY, "s")
    known = sorted(map(repr, every(there)))
    assert reconcile([nights.pipeline], there.settings, dry_run=True) == ()
    there.ledger.close()
    for file in Path(there.settings.sandboxes_folder, "fix").glob("ledger.db*"):
        file.unlink()
    reconcile([nights.pipeline], there.settings, dry_run=False)
    there.ledger = _open(there.settings)
    assert sorted(map(repr, every(there))) == known


def test_an_attempt_that_dies_while_it_takes_over_costs_nothing(nights):
    nights.run(DAY)
    manifest, before = save(nights), listing(nights)
    there = in_sandbox(nights)
    for stage in STAGES:
        for steps in range(1, 200, 4):
            attempt = there.begin(DAY, stage, "try", snapshot=manifest)
            for _ in range(steps):
                attempt.step()
            if attempt.ended:
                break
            attempt.kill()
            there.end_leases()
        assert attempt.error is None
    assert computed(there, "try") == {}
    assert there.published(DAY) == nights.expected
    assert listing(nights) == before


def test_files_of_production_that_the_sandbox_has_replaced_for_itself_stay(nights):
    nights.run(DAY)
    manifest, before = save(nights), listing(nights)
    there = in_sandbox(nights)
    there.run(DAY, "try", snapshot=manifest)
    there.rewrite("drafts", "return source")
    there.run(DAY, "again")
    assert not any(of_production(there, one) for one in every(there))
    there.collect()
    assert listing(nights) == before
    there.check()


def test_code_that_was_accepted_in_production_counts_in_a_sandbox(nights):
    nights.run(DAY)
    manifest = save(nights)
    recorded = ComputeKey.parse(nights.records(DAY, "drafts")[0].compute_key).code
    nights.rewrite("drafts", "return source")
    jobs = nights.pipeline.stage("drafts").job
    present = code_fingerprint(jobs, Path(nights.settings.project)).value
    nights.ledger.acceptances.record([acceptance(recorded, present, pipeline=PIPELINE, stage="drafts")])
    there = in_sandbox(nights)
    there.run(DAY, "try", snapshot=manifest)
    assert computed(there, "try") == {}
