from __future__ import annotations

import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from tests.ledger.samples import event, impatient_ledger, in_forks, run
from tests.postgres import PROGRAMS, own_server

from stagehold.errors import InvalidSetting, LedgerCrowded, LedgerUnavailable, RunIdTaken, StorageProblem
from stagehold.ledger import Ledger
from stagehold.ledger.database.engine import ASLEEP_LOCKS, Database
from stagehold.ledger.database.schema import runs
from stagehold.model.records import Run


@pytest.mark.parametrize(
    "url",
    [
        "",
        "no url",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///file:x.db?uri=true",
        "mysql://u:secret@h/d",
        "postgresql+nothing://u:secret@h/d",
        "postgresql://u:secret@h:port/d",
        "mysql://u:secret/with@all:secret/of?it@h/d",
        "postgresql://u:x/secret@h:port/d",
        "unknown://x",
        "oracle://x",
    ],
)
def test_a_url_that_cannot_be_shared_by_processes_is_refused(url):
    with pytest.raises(InvalidSetting, match="STAGEHOLD_LEDGER") as refused:
        Ledger.open(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["postgresql://me:secret@127.0.0.1:1/ledger", "postgresql+psycopg2://me:secret@127.0.0.1:1/ledger"]
)
def test_an_unreachable_server_is_named_without_its_password(url):
    with pytest.raises(LedgerUnavailable, match=r"me:\*\*\*@127.0.0.1:1/ledger.*refused") as unavailable:
        Ledger.open(url)
    assert "secret" not in str(unavailable.value)
    assert "stagehold status" in str(unavailable.value)


def test_a_file_that_is_no_database_is_an_outage_with_its_reason(tmp_path):
    (tmp_path / "ledger.db").write_text("no database " * 100)
    with pytest.raises(LedgerUnavailable, match="not a database"):
        Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}")


def test_a_folder_that_cannot_be_made_is_an_outage_with_its_reason(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnavailable, match="file"):
        Ledger.open(f"sqlite:///{tmp_path / 'file' / 'ledger.db'}")
    with pytest.raises(LedgerUnavailable, match="unable to open"):
        Ledger.open(f"sqlite:///{tmp_path}")


def test_a_lock_that_lasts_too_long_is_an_outage_and_readers_do_not_wait_for_it(tmp_path):
    ledger = impatient_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", 0.1)
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnavailable, match="locked"):
        ledger.runs.start(run())
    assert ledger.runs.recent(1) == ()
    other.execute("ROLLBACK")
    other.close()
    ledger.runs.start(run())


@contextmanager
def _others_writing(file: Path, seconds: float) -> Iterator[threading.Event]:
    """Somebody else changes the database without a pause, for so long in each transaction, until told to end."""
    begun, ended = threading.Event(), threading.Event()

    def write() -> None:
        other = sqlite3.connect(file, isolation_level=None, timeout=60)
        other.execute("CREATE TABLE others (n)")
        while not ended.is_set():
            other.execute("BEGIN IMMEDIATE")
            other.execute("INSERT INTO others VALUES (1)")
            begun.set()
            ended.wait(seconds)
            other.execute("COMMIT")
        other.close()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait()
    try:
        yield ended
    finally:
        ended.set()
        writer.join()


def test_a_file_that_others_write_in_turns_is_waited_for_while_they_get_on(tmp_path):
    ledger = impatient_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", 0.2)
    with _others_writing(tmp_path / "ledger.db", 0.15) as ended:
        threading.Timer(0.6, ended.set).start()
        ledger.runs.start(run())
    assert ledger.runs.recent(9) == (run(),)


def test_a_file_that_others_never_leave_is_a_crowd_which_is_told_where_to_go(tmp_path):
    ledger = impatient_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", 0.05)
    with _others_writing(tmp_path / "ledger.db", 0.04):
        crowded = next(filter(None, (_crowd(ledger, number) for number in range(200))), None)
    assert crowded is not None
    assert "PostgreSQL" in str(crowded)
    assert "stagehold reconcile" in str(crowded)


def _crowd(ledger: Ledger, number: int) -> LedgerCrowded | None:
    """By luck it finds the moment between two of theirs."""
    try:
        ledger.runs.start(run(f"run-{number}"))
    except LedgerCrowded as crowded:
        return crowded
    return None


def test_a_row_lock_on_a_server_is_waited_for_only_so_long(ledger, ledger_url):
    lease = ledger.leases.acquire("name", "me", 60)
    with impatient_ledger(ledger_url, 1) as impatient, Database(ledger_url).writing() as connection:
        connection.execute(text("UPDATE leases SET holder = 'you'"))
        with pytest.raises(LedgerUnavailable, match=r"lock"):
            impatient.leases.renew(lease, 60)


def _fall_asleep(database: Database, others: Callable[[], object]) -> None:
    with database.writing() as connection:
        connection.execute(text("UPDATE leases SET holder = 'you'"))
        with pytest.raises(LedgerUnavailable, match="lock"):
            others()
        time.sleep(ASLEEP_LOCKS * 0.2)
        others()
        connection.execute(text("SELECT 1"))


@pytest.mark.skipif(PROGRAMS is None, reason="no PostgreSQL on this machine")
def test_who_falls_asleep_in_a_transaction_on_a_server_does_not_keep_others_from_theirs():
    with own_server() as server, impatient_ledger(server.url, 0.2) as ledger:
        lease = ledger.leases.acquire("name", "me", 60)
        database = Database(server.url, lock_seconds=0.2)
        with pytest.raises(LedgerUnavailable, match="connection"):
            _fall_asleep(database, lambda: ledger.leases.renew(lease, 60))
        assert ledger.leases.get("name").holder == "me"


@pytest.mark.skipif(PROGRAMS is None, reason="no PostgreSQL on this machine")
def test_a_server_that_is_started_anew_is_waited_for_by_who_works_for_long_and_by_nobody_else():
    with own_server() as server, impatient_ledger(server.url, 10) as ledger:
        ledger.runs.start(run())
        with ledger.kept_open():
            ledger.runs.recent(1)
            server.stop()
            again = threading.Timer(1, server.start)
            again.start()
            assert ledger.runs.recent(9) == (run(),)
            again.join()
        server.stop()
        begun = time.monotonic()
        with pytest.raises(LedgerUnavailable, match=r"Is the server running"):
            ledger.runs.recent(9)
        assert time.monotonic() - begun < 5


@pytest.mark.skipif(PROGRAMS is None, reason="no PostgreSQL on this machine")
def test_a_server_that_stays_away_is_an_outage_when_the_time_for_a_lock_is_over():
    with own_server() as server, impatient_ledger(server.url, 1) as ledger, ledger.kept_open():
        ledger.runs.recent(1)
        server.stop(signal.SIGQUIT)
        with pytest.raises(LedgerUnavailable, match=r"Is the server running"):
            ledger.runs.recent(9)


def test_a_mistake_of_ours_is_not_called_an_outage(ledger, ledger_url):
    ledger.runs.start(run())
    with pytest.raises(IntegrityError), Database(ledger_url).writing() as connection:
        connection.execute(text("INSERT INTO runs SELECT * FROM runs"))


def test_an_exception_inside_a_transaction_leaves_nothing(ledger, ledger_url):
    def write_and_fail() -> None:
        with Database(ledger_url).writing() as connection:
            connection.execute(runs.insert().values(vars(run())))
            raise KeyError

    with pytest.raises(KeyError):
        write_and_fail()
    assert ledger.runs.recent(1) == ()


def test_calls_put_together_are_seen_at_once_or_never(ledger, ledger_url):
    with Ledger.open(ledger_url) as other:
        with ledger.together():
            ledger.runs.start(run())
            ledger.events.append(event("begun"))
            assert [found.run_id for found in ledger.runs.recent(9)] == ["run-1"]
            assert other.runs.recent(9) == ()
            assert other.events.of_run("run-1") == ()
        assert [event.text for event in other.events.of_run("run-1")] == ["begun"]

        def tell_and_fail() -> None:
            with ledger.together():
                ledger.events.append(event("never was"))
                ledger.runs.start(run(interval="2024-01-02"))

        with pytest.raises(RunIdTaken):
            tell_and_fail()
        ledger.events.append(event("by itself"))
        assert [event.text for event in other.events.of_run("run-1")] == ["begun", "by itself"]


def test_other_threads_do_not_join_calls_that_one_puts_together(ledger):
    seen: list[Sequence[Run]] = []
    with ledger.together():
        ledger.runs.start(run())
        reader = threading.Thread(target=lambda: seen.append(ledger.runs.recent(9)))
        reader.start()
        reader.join()
    assert seen == [()]


def test_forked_children_and_their_parent_share_a_ledger_but_no_connection(ledger):
    ledger.runs.start(run("parent"))

    def write_and_read(number: int) -> list[str]:
        for turn in range(5):
            ledger.runs.start(run(f"child-{number}-{turn}"))
        ledger.close()
        return [found.run_id for found in ledger.runs.recent(100) if found.run_id.startswith(f"child-{number}")]

    assert [len(result) for result in in_forks(4, write_and_read)] == [5] * 4
    assert len(ledger.runs.recent(100)) == 21


def test_threads_share_a_ledger(ledger):
    def write(number: int) -> None:
        for turn in range(5):
            ledger.runs.start(run(f"thread-{number}-{turn}"))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.runs.recent(100)) == 20


def test_a_closed_ledger_connects_anew(ledger):
    ledger.runs.start(run())
    ledger.close()
    assert ledger.runs.get("run-1") == run()


def test_a_database_that_is_kept_open_keeps_its_log_and_lets_others_write(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'ledger.db'}")
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}"):
        log = tmp_path / "ledger.db-wal"
        with database.kept_open():
            for number in range(3):
                with database.writing() as connection:
                    connection.execute(text(f"CREATE TABLE t{number} (n)"))
                assert log.stat().st_size > 0  # the last connection that closes would have taken it away
        assert not log.exists()


def test_after_an_outage_a_database_that_is_kept_open_connects_anew(tmp_path):
    (tmp_path / "ledger.db").write_text("no database " * 100)
    database = Database(f"sqlite:///{tmp_path / 'ledger.db'}")

    def write() -> None:
        with database.writing() as connection:
            connection.execute(text("CREATE TABLE t (n)"))

    with database.kept_open():
        with pytest.raises(LedgerUnavailable, match="not a database"):
            write()
        (tmp_path / "ledger.db").unlink()
        write()


def test_a_ledger_that_takes_no_writing_says_so_with_what_to_do(ledger, ledger_url):
    takes_none = "PRAGMA query_only = ON" if ledger_url.startswith("sqlite") else "SET TRANSACTION READ ONLY"
    ledger.runs.start(run())
    with pytest.raises(LedgerUnavailable, match="mount it for writing") as denied:
        change(ledger_url, takes_none)
    assert denied.value.problem is StorageProblem.DENIED
    assert [run.run_id for run in ledger.runs.recent(2)] == [run().run_id]


@pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
def test_a_ledger_whose_disk_is_full_says_so_with_what_to_do(ledger, ledger_url):
    ledger.runs.start(run())
    with pytest.raises(LedgerUnavailable, match=r"full.*Make room on its disk") as full:
        change(ledger_url, "PRAGMA max_page_count = 1", text=str(list(range(10_000))))
    assert full.value.problem is StorageProblem.FULL


def change(ledger_url: str, before: str, text: str = "") -> None:
    with Database(ledger_url).writing() as connection:
        connection.exec_driver_sql(before)
        connection.execute(runs.insert().values({**vars(run()), "run_id": "other", "params": {"text": text}}))
