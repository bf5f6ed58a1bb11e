"""All uses of pyspark's private parts. No other module has any, so whatever a new pyspark changes is mended here.

tests/spark/test_connect.py checks each part against the installed pyspark, and says which function has to change.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from types import FrameType

    from google.protobuf.message import Message  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.connect.client import SparkConnectClient
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.types import DataType

    AskSession = Callable[[], SparkSession | None]

# Kinds of relations that make their rows out of one input's, one by one and in their order.
ROW_BY_ROW = (
    "project",
    "filter",
    "with_columns",
    "with_columns_renamed",
    "drop",
    "subquery_alias",
    "to_df",
    "to_schema",
    "hint",
)
# Settings of a server's processes, which builders are told and no session can have.
OF_PROCESSES = (
    "spark.app.",
    "spark.driver.",
    "spark.executor.",
    "spark.jars",
    "spark.master",
    "spark.sql.catalogImplementation",
    "spark.sql.extensions",
    "spark.sql.warehouse.dir",
    "spark.submit.",
    "spark.ui.",
)
SET_BY_DELTA = "spark.sql.parquet.fieldId."  # in each session, when that plans its first query
# They log the error that is raised, with the same text. The last one is off unless SPARK_CONNECT_LOG_LEVEL says
# otherwise, and Airflow's configuration of logs switches on what was off before.
CHATTY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
CALLS_LOGGER, CALLS_LEVEL = "pyspark.sql.connect.logging", "SPARK_CONNECT_LOG_LEVEL"


def plan_message(frame: DataFrame) -> Any:
    """The relation that would be sent for a frame. Relations in it have the ids of their frames' plans."""
    built = cast("ConnectFrame", frame)
    return built._plan.plan(built._session.client)


def plan_ids(frames: Collection[DataFrame]) -> frozenset[int]:
    """The ids by which the plans of ``frames`` are known in the message of a frame that is made of them."""
    return frozenset(cast("ConnectFrame", frame)._plan._plan_id for frame in frames)


def parts_of(message: Any) -> Iterator[Any]:
    """The messages directly inside another one, in the order of its fields."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if not descriptor.is_repeated:
            yield value
        elif descriptor.message_type.GetOptions().map_entry:
            yield from (part for part in value.values() if hasattr(part, "DESCRIPTOR"))
        else:
            yield from value


def copy_of(message: Any) -> Any:
    """A copy of a message that can be changed without changing the original."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def is_expression(message: Any) -> bool:
    return bool(message.DESCRIPTOR.full_name == "spark.connect.Expression")


def explained(frame: DataFrame) -> str:
    """The parsed, analysed, optimised and physical plans of a frame, as Spark prints them."""
    return cast("ConnectFrame", frame)._explain_string(mode="extended")


def expression_type(spark: SparkSession, relation: Message, expression: Message) -> DataType:
    """The type that Spark gives an expression over the columns of a relation; a call to the server."""
    from pyspark.sql.connect.proto import Plan, Project, Relation

    plan = Plan(root=Relation(project=Project(input=relation, expressions=[expression])))
    (column,) = _client(spark).schema(plan).fields
    return column.dataType


def plan_id(frame: DataFrame) -> int:
    """The id by which the plan of a frame is known in the messages of frames that are made of it."""
    return cast("ConnectFrame", frame)._plan._plan_id


def frame_of(relation: Message, spark: SparkSession) -> DataFrame:
    """A frame whose plan is ``relation``, under an id of its own."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.plan import CachedRelation

    return ConnectFrame(CachedRelation(copy_of(relation)), cast("Any", spark))


# Spark (4.2) gives kept rows what it knows of their columns, by other ids than theirs where a view was put into their
# plan, and then fails at a union of them: "key not found". So it is to know nothing of what is kept.
WITHOUT_CONSTRAINTS = {"spark.sql.constraintPropagation.enabled": "false"}


def kept_by_spark(frame: DataFrame, *, now: bool = False) -> DataFrame:
    """The frame's rows in Spark's own storage, for as long as the session lives; computed when they are first read, or
    ``now``.

    pyspark (4.2) takes what it keeps for the active session's, which is another one's when a process has several. Its
    holder has Spark drop it when Python does; so it is taken from the wrong holder and given to the right one.
    """
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.plan import CachedRemoteRelation

    session: Any = frame.sparkSession
    held: Any = frame.localCheckpoint(eager=now)
    relation, held._plan._relation_id = held._plan._relation_id, None
    return ConnectFrame(CachedRemoteRelation(relation, session), session)


def watch_client(spark: SparkSession, hook: Any, interceptor: Any) -> None:
    """Show a hook of pyspark's each execution, and a gRPC interceptor all calls. Large plans are sent as they are:
    nobody could read them otherwise.
    """
    client = cast("Any", _client(spark))
    client._plan_compression_threshold, client._plan_compression_algorithm = -1, "NONE"
    client._session_hooks.append(hook)
    intercept_calls(client, interceptor)


def execute(spark: SparkSession, command: Message) -> None:
    """Run a command again, as it was once sent."""
    _client(spark).execute_command(command)


def all_settings(spark: SparkSession) -> dict[str, str]:
    """Every setting that has a value in the session, but for what Delta sets there."""
    from pyspark.sql.connect.proto import ConfigRequest

    operation = ConfigRequest.Operation(get_all=ConfigRequest.GetAll())
    pairs = _client(spark).config(operation).pairs
    return {name: value for name, value in pairs if value is not None and not name.startswith(SET_BY_DELTA)}


def put_settings(spark: SparkSession, wanted: Mapping[str, str]) -> None:
    """Give the session exactly these settings."""
    now = all_settings(spark)
    for name in now.keys() - wanted.keys():
        spark.conf.unset(name)
    for name, value in wanted.items():
        if now.get(name) != value:
            spark.conf.set(name, value)


def remove_kept(spark: SparkSession, relation_id: str) -> None:
    """Make Spark drop the rows that it keeps under an id."""
    from pyspark.sql.connect.proto import CachedRemoteRelation, Command, RemoveCachedRemoteRelationCommand

    relation = CachedRemoteRelation(relation_id=relation_id)
    removal = RemoveCachedRemoteRelationCommand(relation=relation)
    execute(spark, Command(remove_cached_remote_relation_command=removal))


def spark_version(client: SparkConnectClient) -> str:
    """The version of the Spark that answers."""
    return str(client._analyze(method="spark_version").spark_version)


def intercept_calls(client: SparkConnectClient, interceptor: Any) -> None:
    """Let a gRPC interceptor see every call of the client.

    pyspark takes interceptors only for sessions made without its ordinary builder, which does more than connect.
    """
    from grpc import intercept_channel  # type: ignore[import-untyped]
    from pyspark.sql.connect.proto import SparkConnectServiceStub

    client._channel = intercept_channel(client._channel, interceptor)
    client._stub = SparkConnectServiceStub(client._channel)  # type: ignore[no-untyped-call]
    client._artifact_manager._stub = client._stub


def end_calls(client: SparkConnectClient) -> None:
    """End what still waits for an answer, with an error; `close` waits for it."""
    client._channel.close()


def note_lines() -> None:
    """Have each column and frame know the line of code that made it, which Spark names when it fails.

    pyspark (4.2) looks once in a process whether it is to, at the first column, and takes no session yet for a no. At
    each column it looks on the disk for a notebook's packages, which takes longer than to make the column.
    """
    import pyspark
    from pyspark.errors import utils

    cast("Any", utils)._enable_debugging_cache = True
    if "IPython" not in sys.modules:
        utils._capture_call_site = partial(_calling_lines, str(Path(pyspark.__file__).parent))


def _calling_lines(library: str, depth: int) -> str:
    """The innermost lines outside of the library, as pyspark's own function writes them."""
    lines: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame and len(lines) < depth:
        if library not in frame.f_code.co_filename:
            lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    return "\n".join(lines)


def limit_retries(client: SparkConnectClient) -> None:
    """Make the client give up on a lost server soon: by default it tries for ten minutes and more, and says so in
    several voices.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    client.set_retry_policies([DefaultPolicy(max_retries=4, max_backoff=2000)])
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    for name in (*CHATTY_LOGGERS, *([] if CALLS_LEVEL in os.environ else [CALLS_LOGGER])):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def take_active_session_from(ask: AskSession) -> None:
    """Make pyspark give anybody who wants a session, in any thread, the one that ``ask`` gives; where that is None, the
    one it would have given before.

    pyspark keeps an active session for each thread, and its builder wants the address of a server.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    if not isinstance(ConnectSession._active_session, _ActiveSession):
        ConnectSession._active_session = _ActiveSession(ask, ConnectSession._active_session)
        cast("Any", SparkSession.Builder).getOrCreate = _get_or_create(SparkSession.Builder.getOrCreate, ask)


class _ActiveSession(threading.local):
    """What pyspark reads and writes as the active session of a thread; in each it begins with what was there before."""

    def __init__(self, ask: AskSession, before: threading.local) -> None:
        self._ask, self._own = ask, getattr(before, "session", None)

    @property
    def session(self) -> SparkSession | None:
        return self._ask() or self._own

    @session.setter
    def session(self, session: Any) -> None:
        self._own = session


def _get_or_create(own: Callable[[Any], SparkSession], ask: AskSession) -> Callable[[Any], SparkSession]:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    @wraps(own)
    def getting(builder: Any) -> SparkSession:
        options = dict(builder._options)
        if "spark.remote" in options or ask() is None:
            return own(builder)
        wanted = {name: value for name, value in options.items() if not name.startswith(OF_PROCESSES)}
        return cast("SparkSession", ConnectSession.builder.config(map=wanted).getOrCreate())

    return getting


def _client(spark: SparkSession) -> SparkConnectClient:
    return cast("SparkConnectClient", cast("Any", spark).client)


@contextmanager
def files_found_in(folder: str) -> Iterator[None]:
    """Within the block, `SparkFiles` finds what is in the folder, in this process."""
    from pyspark import SparkFiles

    before = SparkFiles._root_directory, SparkFiles._is_running_on_worker
    SparkFiles._root_directory, SparkFiles._is_running_on_worker = folder, True
    try:
        yield
    finally:
        SparkFiles._root_directory, SparkFiles._is_running_on_worker = before
