"""Spark sessions of attempts. Their ids follow from the attempts, so that the next one can release them."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, cast
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from stagehold.errors import SessionClosed, SparkMisconfigured, SparkUnavailable, StageholdError
from stagehold.settings import Settings
from stagehold.spark.connect import end_calls, intercept_calls, limit_retries, note_lines, spark_version
from stagehold.spark.server.server import running_server
from stagehold.spark.session.remote_server import (
    USER,
    note_session,
    refusal,
    remote_server,
    require_answer,
    server_named,
)
from stagehold.spark.session.result_settings import require_versions, set_for_results, set_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import SparkConnectClient

    from stagehold.spark.session.watchdog import CallClock

ANSWER_SECONDS = 60.0  # for calls that only make, greet and release sessions
LISTEN_SECONDS = 20.0  # for a server whose calls are broken off
WAIT_SECONDS = 60.0  # a supervisor that restarts a killed server needs about 10
POLL_SECONDS = 0.5
# What Spark Connect isolates sessions by, from their first call on, is only told by a session that they are cloned
# from. The first makes the server compile each query anew for every session, for the classes a client may have added.
# The second keeps a session's Python workers, and so the modules that they have imported, from the next one. Without it
# a query asks for the files of all sessions, and fails if one of them ends.
ALWAYS_OWN_CLASSES = "spark.sql.artifact.isolation.alwaysApplyClassloader"
OWN_FILES_AND_WORKERS = "spark.sql.artifact.isolation.enabled"
# Spark 4.2.0 tells a Python worker of an Arrow UDF above a columnar scan its input in a form that the worker misreads
# (SPARK-58241): both then wait for each other for ever. Python UDFs use Arrow by default, and scans of Parquet are
# columnar.
COLUMNAR_UDF_INPUT = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
# Plans are read (`run/functions/isolation.py`), and by default Spark leaves columns out of what it prints.
WHOLE_PLANS = "spark.sql.debug.maxToStringFields"
# What measuring brings together is a few rows for each file: planning it anew in the middle, and more than one task,
# only cost time.
MEASURING = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
# What both have beside the settings that change results, wherever the server is.
OF_EACH = {
    ALWAYS_OWN_CLASSES: "false",
    OWN_FILES_AND_WORKERS: "true",
    COLUMNAR_UDF_INPUT: "false",
    WHOLE_PLANS: str(2**31 - 1),
}

CLOSED_CONDITIONS = (
    "INVALID_HANDLE.SESSION_CLOSED",
    "INVALID_HANDLE.SESSION_CHANGED",
    "INVALID_HANDLE.SESSION_NOT_FOUND",
    "INVALID_HANDLE.OPERATION_ABANDONED",
    "RESPONSE_ALREADY_RECEIVED",  # the session was lost between two parts of an answer
    "OPERATION_CANCELED",
    "NO_ACTIVE_SESSION",  # this process closed the client
    "Stream '/artifacts/",  # which was not found: what the session was sent has gone with it
)
LOST_REASONS = {
    "UNAVAILABLE": "the server stopped answering.",
    "DEADLINE_EXCEEDED": "the server did not answer in time.",
    "UNAUTHENTICATED": "the server does not know the token; it was started anew.",
}
# What a server that is ending says of a query while it still answers.
ENDING = ("Cannot call methods on a stopped SparkContext", "cancelled because SparkContext was shut down")

log = logging.getLogger(__name__)

# Sessions this process holds open: releasing one has to close its client too, or the interpreter waits for it at exit.
_open_sessions: dict[str, SparkSession] = {}


def session_id(settings: Settings, attempt_id: str) -> str:
    """Follows from lake and attempt: the next attempt can release it, and two lakes on one server never meet."""
    return str(uuid5(NAMESPACE_URL, f"stagehold/{settings.lake_uri}/{attempt_id}"))


def open_session(
    settings: Settings, session_id: str, *, wait_seconds: float = WAIT_SECONDS, clock: CallClock | None = None
) -> SparkSession:
    """A session under this id on the remote or the running server; it has answered once.

    Waits up to ``wait_seconds`` for a server, because the supervisor may be starting it anew. Calls through the session
    fail within seconds once the server is gone, not minutes. End it with `release_session`.

    :param clock: is told of every call through the session.
    :raises SparkUnavailable: no server answered in time.
    :raises SparkMisconfigured: at once; the server elsewhere cannot be used as it is set.
    :raises SessionClosed: the id was released before.
    """
    deadline = time.monotonic() + wait_seconds
    announced = False
    while True:
        try:
            return _open(settings, session_id, clock)
        except SparkUnavailable as error:
            if time.monotonic() > deadline:
                raise
            if not announced:
                log.info("waiting up to %.0f s for a Spark server: %s", wait_seconds, error.reason)
                announced = True
        time.sleep(POLL_SECONDS)


def remote_version(settings: Settings) -> str:
    """The version of Spark that a server elsewhere has, which it tells in a session of its own; nothing is waited for.

    :raises SparkUnavailable, SparkMisconfigured: as they say.
    """
    try:
        with closing(_client(settings, str(uuid4()))) as client:
            version = spark_version(client)
            client.release_session()
            return version
    except Exception as error:
        raise _refused(error, settings) or translate(error) or error from error


def measuring_session(spark: SparkSession) -> SparkSession:
    """The session beside ``spark`` for our own queries, whose compiled code serves all attempts.

    It has the settings that ``spark`` had when it was opened, and is released with it.
    """
    return _open_sessions[_measuring_id(spark.session_id)]  # type: ignore[attr-defined]


def release_session(settings: Settings, session_id: str) -> bool:
    """Cancel what runs in the session and have the server refuse the id from now on, whether it was ever used or not.

    False when no server answers: the session ended with its server, and the next server has another token. A Delta
    commit that is under way at this moment may still land. Never raises for a server that is gone.
    """
    return all([_release_one(settings, name) for name in (session_id, _measuring_id(session_id))])


def break_off(settings: Settings, session_id: str) -> None:
    """Have every call through a session that this process holds end now, each with some error.

    The server is asked to stop their work; one that does not listen is left alone.
    """
    names = (session_id, _measuring_id(session_id))
    clients = [_open_sessions[name].client for name in names if name in _open_sessions]
    asking = threading.Thread(target=release_session, args=(settings, session_id), daemon=True)
    asking.start()
    asking.join(LISTEN_SECONDS)
    for client in clients:
        end_calls(client)


def _release_one(settings: Settings, session_id: str) -> bool:
    """Release a session by a client of its own with a deadline: calls of the session itself may take as long as they
    like.
    """
    try:
        with closing(_client(settings, session_id)) as client:
            _release(client)
            return True
    except (SparkUnavailable, SparkMisconfigured) as error:
        log.info("session=%s not released: %s", session_id, error.reason)
        return False
    finally:
        if held := _open_sessions.pop(session_id, None):
            end_calls(held.client)
            held.client.close()
            _forget(held)


def translate(error: BaseException) -> StageholdError | None:
    """What an error of the Spark client says about the server or the session; None when it is about the query."""
    from pyspark.errors import PySparkException
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    if isinstance(error, StageholdError):
        return error
    if not isinstance(error, PySparkException):
        return None
    closed = next(
        (condition for condition in CLOSED_CONDITIONS if condition in (error.getCondition() or str(error))), None
    )
    if closed:
        return SessionClosed(closed)
    if any(text in str(error) for text in ENDING):
        return SparkUnavailable("the server is ending.")
    reason = LOST_REASONS.get(error.getGrpcStatusCode().name) if isinstance(error, SparkConnectGrpcException) else None
    return SparkUnavailable(reason) if reason else None


def _open(settings: Settings, session_id: str, clock: CallClock | None) -> SparkSession:
    try:
        _make_sessions(settings, session_id)
    except Exception as error:
        raise _refused(error, settings) or translate(error) or error from error
    from stagehold.spark.session.stage_session import StageSession

    note_lines()
    for name in (session_id, _measuring_id(session_id)):  # pyspark takes the first one for the active one
        _open_sessions[name] = _connect(settings, name)
        if clock:
            from stagehold.spark.session.watched_calls import CallWatcher

            watcher = CallWatcher(clock, own_queries=name != session_id)
            intercept_calls(_open_sessions[name].client, watcher)
    return cast("SparkSession", StageSession.of(_open_sessions[session_id]))


def _measuring_id(session_id: str) -> str:
    return str(uuid5(UUID(session_id), "measuring"))


def _make_sessions(settings: Settings, session_id: str) -> None:
    """Have the server make the session and the session for measuring beside it, as clones, unless they are there.

    :raises VersionsDiffer: the server has other versions than this process.
    """
    with closing(_client(settings, str(uuid4()))) as model:
        require_versions(model, settings.spark_remote)
        set_for_results(model, OF_EACH)
        _clone(model, session_id)
        set_settings(model, MEASURING)
        _clone(model, _measuring_id(session_id))
        model.release_session()
    if settings.spark_remote:
        note_session(server_named(settings.spark_remote), settings)


def _refused(error: Exception, settings: Settings) -> StageholdError | None:
    """What the first calls say of how a server elsewhere is set. The local one is spoken to as it was started."""
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    if not settings.spark_remote or not isinstance(error, SparkConnectGrpcException):
        return None
    return refusal(server_named(settings.spark_remote), error.getGrpcStatusCode().name, settings)


def _clone(model: SparkConnectClient, session_id: str) -> None:
    """pyspark hands errors of this call on as gRPC has them; their text begins with Spark's condition."""
    from grpc import RpcError  # type: ignore[import-untyped]

    try:
        model.clone(session_id).close()
    except RpcError as error:
        if "TARGET_SESSION_ID_ALREADY_EXISTS" in str(error):
            return
        if "TARGET_SESSION_ID_ALREADY_CLOSED" in str(error):
            raise SessionClosed("TARGET_SESSION_ID_ALREADY_CLOSED") from error
        reason = LOST_REASONS.get(error.code().name)
        raise (SparkUnavailable(reason) if reason else error) from error


def _connect(settings: Settings, session_id: str) -> SparkSession:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(_url(settings, session_id)).create()
    limit_retries(spark.client)
    try:
        _make_known(spark.client)
    except StageholdError:
        spark.client.close()
        spark.stop()
        raise
    return spark


def _forget(spark: SparkSession) -> None:
    """Take a session whose client is closed out of pyspark's list of active ones."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    ConnectSession.stop(cast("ConnectSession", spark))


def _client(settings: Settings, session_id: str) -> SparkConnectClient:
    from pyspark.sql.connect.client import SparkConnectClient

    from stagehold.spark.session.watched_calls import Deadline

    client = SparkConnectClient(_url(settings, session_id))
    limit_retries(client)
    intercept_calls(client, Deadline(ANSWER_SECONDS))
    return client


def _release(client: SparkConnectClient) -> None:
    try:
        _make_known(client)  # the server cannot close an id that it has never seen, so make it known first
        client.release_session()
    except SessionClosed:
        return
    except Exception as error:
        raise translate(error) or error from error


def _make_known(client: SparkConnectClient) -> None:
    """The cheapest call that makes the server create the session."""
    try:
        client.get_configs("spark.app.name")
    except Exception as error:
        raise translate(error) or error from error


def _url(settings: Settings, session_id: str) -> str:
    """Where to connect.

    :raises SparkUnavailable: at once when nothing listens there, which takes the client seconds to see.
    :raises SparkMisconfigured: what listens there is no server that can be spoken to as it is set.
    """
    if settings.spark_remote:
        remote = remote_server(settings)
        require_answer(remote, settings)
        return remote.url(session_id)
    server = running_server(settings)
    if server is None:
        raise SparkUnavailable(f"no server runs for {settings.home_path}.")
    # pyspark sends a token without TLS only to this host name.
    return f"sc://localhost:{server.port}/;token={server.token};user_id={USER};session_id={session_id}"
