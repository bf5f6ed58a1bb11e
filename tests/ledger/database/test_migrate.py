from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text
from tests.ledger.samples import attempt, checkpoint, gate_result, in_processes, record, run

from stagehold.errors import LedgerTooNew
from stagehold.ledger import Ledger
from stagehold.ledger.database import migrate
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import SCHEMA_VERSION, VERSION_TABLE, metadata
from stagehold.model.checkpoint_records import CheckpointFailure
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent, RunEvent

pytestmark = pytest.mark.slow

VERSIONS = Path(migrate.__file__).parent / "migrations" / "versions"


def undo_0020(connection) -> None:
    connection.execute(text("ALTER TABLE partitions DROP COLUMN storing"))


def undo_0019(connection) -> None:
    undo_0020(connection)
    connection.execute(text("ALTER TABLE acceptances DROP COLUMN part"))


def undo_0018(connection) -> None:
    undo_0019(connection)
    connection.execute(text("ALTER TABLE partitions DROP COLUMN counted"))


def undo_0017(connection) -> None:
    undo_0018(connection)
    connection.execute(text("ALTER TABLE checkpoints DROP COLUMN untold"))


def undo_0016(connection) -> None:
    undo_0017(connection)
    for column in ("taken_at", "renewed_at", "pulse"):
        connection.execute(text(f"ALTER TABLE leases DROP COLUMN {column}"))


def undo_0015(connection) -> None:
    undo_0016(connection)
    connection.execute(text("DROP TABLE pins"))


def undo_0014(connection) -> None:
    undo_0015(connection)
    connection.execute(text("DROP TABLE backfills"))
    connection.execute(text("ALTER TABLE restores DROP COLUMN work_order"))


def undo_0013(connection) -> None:
    undo_0014(connection)
    connection.execute(text("DROP TABLE stage_verdicts"))


def undo_0012(connection) -> None:
    undo_0013(connection)
    connection.execute(text("ALTER TABLE runs DROP COLUMN cancel_asked_at"))
    connection.execute(text("ALTER TABLE attempts DROP COLUMN labels"))


def undo_0011(connection) -> None:
    undo_0012(connection)
    connection.execute(text("DROP TABLE waivers"))
    connection.execute(text("ALTER TABLE partitions DROP COLUMN refused"))
    for column in ("severity", "configuration", "result"):
        connection.execute(text(f"ALTER TABLE gate_results DROP COLUMN {column}"))


def undo_0010(connection) -> None:
    undo_0011(connection)
    connection.execute(text("ALTER TABLE partitions DROP COLUMN judged"))


def undo_0009(connection) -> None:
    undo_0010(connection)
    for column in ("code_choices", "claim_mode"):
        connection.execute(text(f"ALTER TABLE restores DROP COLUMN {column}"))


def undo_0008(connection) -> None:
    undo_0009(connection)
    connection.execute(text("DROP TABLE savepoint_requests"))
    connection.execute(text("ALTER TABLE partitions DROP COLUMN kept"))
    connection.execute(text("ALTER TABLE checkpoints DROP COLUMN savepoint"))
    for column in ("snapshot", "allow_non_restored", "as_recorded"):
        connection.execute(text(f"ALTER TABLE restores DROP COLUMN {column}"))


def test_migrations_are_numbered_without_gaps_and_the_last_one_is_the_codes_schema():
    numbers = sorted(file.name[:4] for file in VERSIONS.glob("*.py"))
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]
    assert numbers[-1] == SCHEMA_VERSION


def test_every_table_says_scope_lifetime_and_what_null_means():
    for table in metadata.sorted_tables:
        assert all(word in table.comment for word in ("Scope: ", "Lifetime: ", "NULL")), table.name
        for column in table.columns:
            assert not column.nullable or f"{column.name}, " in table.comment.partition("NULL: ")[2], (
                f"{table.name}.{column.name}"
            )


def test_a_migrated_ledger_has_exactly_the_codes_schema(ledger, ledger_url):
    with Database(ledger_url).reading() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        differences = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        columns = {table.name: [column.name for column in table.columns] for table in metadata.sorted_tables}
        stored = {name: list(connection.execute(text(f"SELECT * FROM {name}")).keys()) for name in columns}
    assert [found for found in differences if "comment" not in str(found[0])] == []
    assert {name: sorted(names) for name, names in stored.items()} == {
        name: sorted(names) for name, names in columns.items()
    }


def test_processes_that_open_a_new_ledger_at_once_all_get_it(empty_ledger_url):
    def open_and_write(number: int) -> str:
        with Ledger.open(empty_ledger_url) as ledger:
            return ledger.runs.start(run(f"run-{number}")).run_id

    assert sorted(map(str, in_processes(8, open_and_write))) == [f"run-{number}" for number in range(8)]
    assert len(Ledger.open(empty_ledger_url).runs.recent(10)) == 8


def test_programs_that_open_a_new_ledger_at_once_all_get_it(empty_ledger_url):
    code = "import sys; from stagehold.ledger import Ledger; Ledger.open(sys.argv[1]); print('alembic' in sys.modules)"
    programs = [
        subprocess.Popen([sys.executable, "-c", code, empty_ledger_url], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert {
        program.communicate(timeout=60)[0].strip() in ("True", "False") and program.returncode for program in programs
    } == {0}


def test_a_migration_that_dies_leaves_nothing(empty_ledger_url, monkeypatch):
    def die_half_way(connection) -> None:
        connection.execute(text("CREATE TABLE runs (x INTEGER)"))
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(migrate, "_run_alembic", die_half_way)
        with pytest.raises(RuntimeError):
            Ledger.open(empty_ledger_url)
    assert Ledger.open(empty_ledger_url).runs.start(run()) == run()


def test_a_ledger_of_a_newer_stagehold_is_refused_and_left_alone(empty_ledger_url):
    Ledger.open(empty_ledger_url)
    with Database(empty_ledger_url).writing() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(LedgerTooNew, match="schema 9999; this Stagehold knows schemas up to"):
        Ledger.open(empty_ledger_url)


def seconds_to_open(empty_ledger_url: str) -> float:
    started = time.process_time()
    Ledger.open(empty_ledger_url)
    return time.process_time() - started


def test_a_migrated_ledger_opens_quickly_and_without_alembic(ledger, ledger_url):
    assert min(seconds_to_open(ledger_url) for _ in range(5)) < 0.05
    code = "import sys; from stagehold.ledger import Ledger; Ledger.open(sys.argv[1]); print('alembic' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code, ledger_url], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )


def test_a_sqlite_ledger_is_readable_while_it_is_written(tmp_path):
    Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}")
    with Database(f"sqlite:///{tmp_path / 'ledger.db'}").reading() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"


def test_a_run_that_was_under_way_before_its_history_was_kept_goes_on(empty_ledger_url):
    """Down to how version 0004 left it, and up again."""
    ledger = Ledger.open(empty_ledger_url)
    ledger.runs.start(run())
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    ledger.close()
    with Database(empty_ledger_url).writing() as connection:
        undo_0008(connection)
        connection.execute(text("DROP TABLE acknowledgements"))
        connection.execute(text("DROP TABLE checkpoints"))
        connection.execute(text("DROP TABLE transitions"))
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0004'"))
    migrated = Ledger.open(empty_ledger_url)
    assert migrated.transitions.of_run("run-1") == ()
    assert migrated.runs.start(run()) == run()
    assert migrated.attempts.apply(attempt().attempt_id, AttemptEvent.FAIL) is True
    assert migrated.runs.apply("run-1", RunEvent.RESTART) is True
    told = [
        (transition.attempt_id is None, transition.before, transition.after)
        for transition in migrated.transitions.of_run("run-1")
    ]
    assert told == [(False, "running", "failed"), (True, "running", "restarting")]


def test_what_only_a_reason_told_is_a_field_after_the_migration(empty_ledger_url):
    """Down to how version 0003 left it, and up again."""
    ledger = Ledger.open(empty_ledger_url)
    lease = ledger.leases.acquire("p/i/s", "test", 60)
    told, other = record(1, reason="was healed and came out different (...)"), record(2, reason="adopted")
    ledger.partitions.record([told, other], lease)
    ledger.close()
    with Database(empty_ledger_url).writing() as connection:
        undo_0008(connection)
        connection.execute(text("DROP TABLE acknowledgements"))
        connection.execute(text("DROP TABLE checkpoints"))
        connection.execute(text("DROP TABLE transitions"))
        connection.execute(text("ALTER TABLE partitions DROP COLUMN unexplained"))
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0003'"))
    found = Ledger.open(empty_ledger_url).partitions.newest(told.cell)
    assert [(one.partition, one.unexplained) for one in found] == [(1, True), (2, False)]


def test_checkpoints_of_before_are_still_there_and_cover_nothing_that_is_known(empty_ledger_url):
    """Down to how version 0006 left it, and up again."""
    ledger = Ledger.open(empty_ledger_url)
    lease = ledger.leases.acquire("coordinator", "test", 60)
    done, failed = (ledger.checkpoints.begin(checkpoint(number), lease) for number in (1, 2))
    done = ledger.checkpoints.complete(done, lease, written=1, referenced=2, covers=7)
    failed = ledger.checkpoints.fail(failed, lease, CheckpointFailure.CHECKPOINT_EXPIRED, "too late")
    ledger.close()
    with Database(empty_ledger_url).writing() as connection:
        undo_0008(connection)
        connection.execute(text("DROP TABLE acknowledgements"))
        for column in ("reason", "fails_run", "covers"):
            connection.execute(text(f"ALTER TABLE checkpoints DROP COLUMN {column}"))
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0006'"))
    migrated = Ledger.open(empty_ledger_url)
    assert migrated.checkpoints.of_run("run-1") == (done, replace(failed, reason=None))
    assert migrated.checkpoints.covered(done) is None


def test_what_gates_said_before_severities_were_kept_was_critical(empty_ledger_url):
    """Down to how version 0010 left it, and up again."""
    ledger = Ledger.open(empty_ledger_url)
    lease = ledger.leases.acquire("p/i/s", "test", 60)
    ledger.partitions.record([record(1)], lease)
    ledger.gates.record([gate_result(1, passed=False)])
    ledger.close()
    with Database(empty_ledger_url).writing() as connection:
        undo_0011(connection)
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0010'"))
    migrated = Ledger.open(empty_ledger_url)
    assert migrated.gates.newest(record(1).cell) == (gate_result(1, passed=False),)
    assert migrated.partitions.newest(record(1).cell) == (record(1),)
