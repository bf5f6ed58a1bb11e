"""Sessions on the local Spark Connect server: what they see of each other, and how they end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from stagehold.errors import SessionClosed, SparkUnavailable
from stagehold.settings import Settings
from stagehold.spark.processes import python_environment
from stagehold.spark.session.sessions import measuring_session, open_session, release_session, translate

pytestmark = pytest.mark.spark

ENDLESS = "sum(id % 7)"  # over a range too long to finish


def test_sessions_do_not_see_each_others_views_and_settings(spark_settings: Settings) -> None:
    names = [str(uuid4()), str(uuid4())]
    one, other = (open_session(spark_settings, name) for name in names)
    one.range(3).createOrReplaceTempView("mine")
    one.conf.set("spark.sql.shuffle.partitions", "77")
    assert not other.catalog.tableExists("mine")
    assert other.conf.get("spark.sql.shuffle.partitions") != "77"
    for name in names:
        release_session(spark_settings, name)


def test_the_session_for_measuring_knows_nothing_of_the_users_and_ends_with_it(spark_settings: Settings) -> None:
    name = str(uuid4())
    spark = open_session(spark_settings, name)
    spark.range(3).createOrReplaceTempView("mine")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    beside = measuring_session(spark)
    assert (beside.range(3).count(), beside.catalog.tableExists("mine")) == (3, False)
    assert beside.conf.get("spark.sql.session.timeZone") == "UTC"
    assert type(spark).getActiveSession() is not beside
    release_session(spark_settings, name)
    with pytest.raises(Exception, match="SESSION") as raised:
        beside.range(3).count()
    assert isinstance(translate(raised.value), SessionClosed)


def test_what_ends_beside_it_takes_no_file_from_a_session_for_measuring(
    spark_settings: Settings, tmp_path: Path
) -> None:
    """A query that is asked while another session lives, and begins when that one has ended."""
    (tmp_path / "sent.py").write_text("")
    busy, measuring, ended = (open_session(spark_settings, name) for name in (str(uuid4()) for _ in range(3)))
    ended.addArtifacts(str(tmp_path / "sent.py"), pyfile=True)
    twenty_each = 20 * (os.cpu_count() or 1)
    naps = busy.range(0, twenty_each, 1, twenty_each).selectExpr("java_method('java.lang.Thread', 'sleep', 150L)")
    with ThreadPoolExecutor() as threads:
        all_slots = threads.submit(naps.collect)
        time.sleep(0.5)
        count = threads.submit(measuring_session(measuring).range(3).count)
        time.sleep(0.5)
        release_session(spark_settings, ended.session_id)  # type: ignore[attr-defined]
        assert not all_slots.done()
        assert count.result() == 3
        all_slots.result()
    for session in (busy, measuring):
        release_session(spark_settings, session.session_id)  # type: ignore[attr-defined]


def test_a_server_that_goes_while_a_session_is_made_is_unavailable(
    spark_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    import grpc
    from pyspark.sql.connect.client import SparkConnectClient

    class Unavailable(grpc.RpcError):
        def code(self) -> grpc.StatusCode:
            return grpc.StatusCode.UNAVAILABLE

    def gone(client: SparkConnectClient, session_id: str) -> None:
        raise Unavailable

    monkeypatch.setattr(SparkConnectClient, "clone", gone)
    with pytest.raises(SparkUnavailable):
        open_session(spark_settings, str(uuid4()), wait_seconds=0)


def test_python_workers_of_a_session_serve_no_other(spark_settings: Settings) -> None:
    """They keep what they have imported: the next session would run the code of the one before."""
    from pyspark.sql.functions import udf

    served = []
    for name in (str(uuid4()), str(uuid4())):
        spark = open_session(spark_settings, name)
        served.append(
            {row[0] for row in spark.range(0, 8, 1, 2).select(udf(lambda _: os.getpid(), "int")("id")).collect()}
        )
        release_session(spark_settings, name)
    assert served[0].isdisjoint(served[1])


def test_a_session_that_is_released_while_it_is_sent_modules_is_closed() -> None:
    from pyspark.errors.exceptions.connect import UnknownException

    gone = "(java.lang.RuntimeException) Stream '/artifacts/26c7d66c/pyfiles/project-2e.zip' was not found."
    assert isinstance(translate(UnknownException(gone)), SessionClosed)


@pytest.mark.parametrize(
    "said",
    [
        "(java.lang.IllegalStateException) Cannot call methods on a stopped SparkContext.\nThis stopped",
        "(org.apache.spark.SparkException) Job 7 cancelled because SparkContext was shut down",
    ],
)
def test_a_query_of_a_server_that_is_ending_says_nothing_of_what_it_reads(said: str) -> None:
    from pyspark.errors.exceptions.connect import UnknownException

    assert isinstance(translate(UnknownException(said)), SparkUnavailable)


def test_releasing_cancels_a_running_write_and_the_old_id_is_refused(spark_settings: Settings, tmp_path: Path) -> None:
    name, failures = str(uuid4()), []
    zombie = open_session(spark_settings, name)

    def write() -> None:
        try:
            zombie.range(0, 10**12, 1, 4).write.parquet(str(tmp_path / "output"))
        except Exception as error:  # noqa: BLE001 - which one it is, is what is tested
            failures.append(error)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    while not any(tmp_path.rglob("part-*")):
        time.sleep(0.1)
    assert released_elsewhere(spark_settings, name) == "True"
    writer.join(timeout=10)
    assert not writer.is_alive()
    assert [type(translate(failure)) for failure in failures] == [SessionClosed]
    assert not (tmp_path / "output" / "_SUCCESS").exists()
    with pytest.raises(SessionClosed):
        open_session(spark_settings, name)
    release_session(spark_settings, name)


def released_elsewhere(settings: Settings, name: str) -> str:
    """Release a session from another process, as the next attempt does,
    and say whether that process then ended by itself.
    """
    code = (
        "import sys; from stagehold.spark.session.sessions import release_session; from stagehold.settings import "
        "load_settings; print(release_session(load_settings(), sys.argv[1]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, name],
        env=python_environment(settings),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert run.stderr == ""
    return run.stdout.strip()


def test_an_id_that_was_released_before_it_was_used_is_refused(spark_settings: Settings) -> None:
    name = str(uuid4())
    assert release_session(spark_settings, name)
    assert release_session(spark_settings, name)
    with pytest.raises(SessionClosed):
        open_session(spark_settings, name)


def test_an_error_in_a_query_says_nothing_about_the_server(spark_settings: Settings) -> None:
    from pyspark.errors import AnalysisException

    name = str(uuid4())
    with pytest.raises(AnalysisException) as raised:
        open_session(spark_settings, name).sql("select nothing_like_it").collect()
    assert translate(raised.value) is None
    release_session(spark_settings, name)
