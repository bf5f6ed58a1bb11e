"""What we use of pyspark's private parts is there and behaves so. A failure names the function that has to change."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from grpc import UnaryUnaryClientInterceptor
from pyspark.errors import utils as errors
from pyspark.sql import SparkSession as AnySession
from pyspark.sql import functions as F
from pyspark.sql.connect import plan
from pyspark.sql.connect.client import SparkConnectClient, retries
from pyspark.sql.connect.client import core as client_core
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.proto import Plan, Relation, SparkConnectServiceStub
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import DoubleType, StructField, StructType
from tests.test_layers import PACKAGE, found_in_files, nodes_of

from stagehold.run.functions.isolation import ROW_OR_GROUP
from stagehold.spark import connect
from stagehold.spark.session import worker


@pytest.fixture
def client():
    made = SparkConnectClient("sc://127.0.0.1:9/;token=none")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def uncompressed(monkeypatch):
    """No server is there to say how it wants large plans."""
    monkeypatch.setattr(SparkConnectClient, "_get_plan_compression_threshold_and_algorithm", lambda _: (-1, "NONE"))


class Refuse(UnaryUnaryClientInterceptor):
    """Answers every call itself."""

    def intercept_unary_unary(self, continuation, details, request):
        raise InterruptedError(details.method)


# By the function that has to change: where it looks, and for what.
PARTS = {
    connect.plan_message: [("frame", "_plan"), ("frame", "_session"), ("frame._plan", "plan"), ("session", "client")],
    connect.plan_ids: [("frame._plan", "_plan_id")],
    connect.parts_of: [("message", "ListFields"), ("message", "DESCRIPTOR")],
    connect.explained: [("frame", "_explain_string")],
    connect.expression_type: [("client", "schema")],
    connect.kept_by_spark: [("frame", "localCheckpoint"), ("plan", "CachedRemoteRelation")],
    connect.plan_id: [("frame._plan", "_plan_id")],
    connect.frame_of: [("plan", "CachedRelation")],
    connect.watch_client: [
        ("client", "_session_hooks"),
        ("client", "_plan_compression_threshold"),
        ("client", "_plan_compression_algorithm"),
    ],
    connect.execute: [("client", "execute_command")],
    connect.all_settings: [("client", "config")],
    connect.remove_kept: [("client", "execute_command")],
    connect.spark_version: [("client", "_analyze")],
    connect.intercept_calls: [("client", "_channel"), ("client", "_stub"), ("client._artifact_manager", "_stub")],
    connect.end_calls: [("client._channel", "close")],
    connect.note_lines: [("errors", "_enable_debugging_cache"), ("errors", "_capture_call_site")],
    connect.limit_retries: [("client", "set_retry_policies"), ("retries", "DefaultPolicy")],
    connect.take_active_session_from: [
        ("session", "_active_session"),
        ("builder", "_options"),
        ("builder", "getOrCreate"),
    ],
    worker.prepare: [
        ("types", "_parse_datatype_string"),
        ("builder", "getOrCreate"),
        ("builders", "active"),
        ("builders", "getActiveSession"),
    ],
}


@pytest.mark.parametrize(
    ("function", "where", "part"),
    [(function, *part) for function, parts in PARTS.items() for part in parts],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_the_part_is_there(unconnected, client, function, where, part):
    from pyspark.sql import types

    frame = unconnected.range(3)
    places = {
        "frame": frame,
        "session": frame._session,
        "client": client,
        "message": Relation(),
        "plan": plan,
        "retries": retries,
        "types": types,
        "errors": errors,
        "builder": AnySession.builder,
        "builders": AnySession,
    }
    first, _, rest = where.partition(".")
    place = getattr(places[first], rest) if rest else places[first]
    assert hasattr(place, part), (
        f"pyspark {version('pyspark')} has no {part} in {where}: change {function.__module__}.{function.__name__}"
    )


@pytest.fixture
def lines_noted(monkeypatch):
    for part in ("_enable_debugging_cache", "_capture_call_site"):
        monkeypatch.setattr(errors, part, getattr(errors, part))
    own = errors._capture_call_site
    connect.note_lines()
    return own


def test_a_column_knows_the_line_that_made_it_as_pyspark_would_tell_it(lines_noted):
    for depth in (1, 2, 3):
        theirs, ours = lines_noted(depth), errors._capture_call_site(depth)
        assert ours == theirs
    assert F.col("a")._expr.origin.python_origin.call_site.startswith(__file__)


def test_nobody_looks_for_a_module_at_each_column(unconnected, lines_noted, monkeypatch):
    F.upper(F.col("a"))
    asked = []
    finder = SimpleNamespace(find_spec=lambda name, *_: asked.append(name))
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    F.upper(F.col("a"))
    assert asked == []


def test_plan_message_has_the_ids_of_the_frames_that_it_is_made_of(unconnected):
    below = unconnected.range(3)
    message = connect.plan_message(below.where("id > 1").select("id"))
    assert message.WhichOneof("rel_type") == "project"
    assert message.project.input.WhichOneof("rel_type") == "filter"
    assert {message.project.input.filter.input.common.plan_id} == connect.plan_ids([below])
    assert message.common.plan_id not in connect.plan_ids([below])


def test_plan_message_has_the_id_of_a_frame_that_refers_to_others(unconnected):
    below = unconnected.range(3)
    made = below.where(below.id.isin(unconnected.range(2)))
    assert {connect.plan_message(made.select("id")).project.input.common.plan_id} == connect.plan_ids([made])


ROW_BY_ROW = {
    "project": lambda rows: rows.select("id"),
    "filter": lambda rows: rows.where("id > 1"),
    "with_columns": lambda rows: rows.withColumn("a", F.lit(1)),
    "with_columns_renamed": lambda rows: rows.withColumnRenamed("id", "a"),
    "drop": lambda rows: rows.drop("id"),
    "subquery_alias": lambda rows: rows.alias("rows"),
    "to_df": lambda rows: rows.toDF("a"),
    "to_schema": lambda rows: rows.to(StructType([StructField("id", DoubleType())])),
    "hint": lambda rows: rows.hint("broadcast"),
}


@pytest.mark.parametrize("kind", connect.ROW_BY_ROW)
def test_row_by_row_are_the_kinds_of_relations_with_one_input(unconnected, kind):
    message = connect.plan_message(ROW_BY_ROW[kind](unconnected.range(3)))
    assert message.WhichOneof("rel_type") == kind
    assert getattr(message, kind).input.WhichOneof("rel_type") == "range"


def test_parts_of_gives_messages_of_single_repeated_and_mapped_fields(unconnected):
    rows = unconnected.range(3)
    assert [one.DESCRIPTOR.name for one in connect.parts_of(connect.plan_message(rows.select("id", F.lit(1))))] == [
        "RelationCommon",
        "Project",
    ]
    project = connect.plan_message(rows.select("id", F.lit(1))).project
    assert [connect.is_expression(one) for one in connect.parts_of(project)] == [False, True, True]
    renamed = Relation(with_columns_renamed={"rename_columns_map": {"a": "b"}}).with_columns_renamed
    assert list(connect.parts_of(renamed)) == []
    arguments = Relation(sql={"named_arguments": {"a": {"literal": {"integer": 1}}}}).sql
    assert [connect.is_expression(one) for one in connect.parts_of(arguments)] == [True]


def test_explained_asks_for_all_the_plans(unconnected, monkeypatch):
    asked = []

    def explain(self, plan, mode):
        asked.append((plan.root.WhichOneof("rel_type"), mode))
        return "plans"

    monkeypatch.setattr(SparkConnectClient, "explain_string", explain)
    assert (connect.explained(unconnected.range(3)), asked) == ("plans", [("range", "extended")])


def test_expression_type_asks_for_the_schema_of_the_expression_over_the_relation(unconnected, monkeypatch):
    asked = []

    def schema(self, plan):
        asked.append(plan)
        return StructType([StructField("sum", DoubleType())])

    monkeypatch.setattr(SparkConnectClient, "schema", schema)
    project = connect.plan_message(unconnected.range(3).select(F.lit(1.5))).project
    assert connect.expression_type(unconnected, project.input, project.expressions[0]) == DoubleType()
    (plan,) = asked
    assert isinstance(plan, Plan)
    assert (plan.root.project.input, list(plan.root.project.expressions)) == (project.input, list(project.expressions))


def test_kept_by_spark_takes_what_is_kept_from_the_session_that_pyspark_gave_it_to(unconnected, monkeypatch):
    other = SparkSession(connection="sc://127.0.0.1:9/;token=none")
    held = DataFrame(plan.CachedRemoteRelation("7", other), other)
    monkeypatch.setattr(DataFrame, "localCheckpoint", lambda self, eager: held)
    kept = connect.kept_by_spark(unconnected.range(3))
    assert connect.plan_message(kept).cached_remote_relation.relation_id == "7"
    assert kept.sparkSession is unconnected
    assert held._plan._relation_id is None, "Spark drops what has an id when Python drops the plan"
    kept._plan._relation_id = None  # no server is there to drop it
    other.client.close()


def test_watch_client_shows_executions_to_a_hook_and_large_plans_as_they_are(unconnected):
    seen = []

    class Hook:
        def on_execute_plan(self, request):
            seen.append(request.plan.WhichOneof("op_type"))
            raise InterruptedError  # before it is sent

    connect.watch_client(unconnected, hook := Hook(), Refuse())
    with pytest.raises(InterruptedError):
        unconnected.range(3).collect()
    with pytest.raises(InterruptedError, match="AnalyzePlan"):
        assert unconnected.range(3).schema
    assert seen == ["root"]
    assert unconnected.client._get_plan_compression_threshold_and_algorithm() == (-1, "NONE")
    unconnected.client._session_hooks.remove(hook)


def test_frame_of_has_the_plan_under_an_id_of_its_own(unconnected):
    frame = unconnected.range(3)
    again = connect.frame_of(connect.plan_message(frame), unconnected)
    assert connect.plan_message(again).range == connect.plan_message(frame).range
    assert connect.plan_id(again) != connect.plan_id(frame)


def test_intercept_calls_reaches_queries_and_artifacts(client):
    connect.intercept_calls(client, Refuse())
    with pytest.raises(InterruptedError, match="AnalyzePlan"):
        client.schema(Plan(root=Relation()))
    assert isinstance(client._stub, SparkConnectServiceStub)
    assert client._artifact_manager._stub is client._stub


def test_end_calls_makes_every_later_call_fail(client):
    connect.limit_retries(client)
    connect.end_calls(client)
    with pytest.raises(ValueError, match="closed channel"):
        client.get_configs("spark.app.name")


def test_limit_retries_gives_up_after_seconds(client):
    connect.limit_retries(client)
    (policy,) = client.get_retry_policies()
    assert (policy.max_retries, policy.max_backoff) == (4, 2000)
    assert "RETRIES_EXCEEDED" in Path(client_core.__file__).with_name("retries.py").read_text()


def test_the_numbers_of_functions_that_see_one_row_or_group_are_pysparks():
    from pyspark.util import PythonEvalType

    names = {number: name for name, number in vars(PythonEvalType).items() if isinstance(number, int)}
    kinds = {names[number].removeprefix("SQL_").removesuffix("_UDF") for number in ROW_OR_GROUP}
    assert kinds == {"BATCHED", "ARROW_BATCHED", "COGROUPED_MAP_PANDAS", "COGROUPED_MAP_ARROW"} | {
        f"{seen}_{engine}{batches}"
        for engine in ("PANDAS", "ARROW")
        for seen, batches in (
            ("GROUPED_MAP", ""),
            ("GROUPED_MAP", "_ITER"),
            ("GROUPED_AGG", ""),
            ("GROUPED_AGG", "_ITER"),
            ("WINDOW_AGG", ""),
        )
    }


HOME = {
    PACKAGE / "spark" / "connect.py",
    PACKAGE / "spark" / "session" / "worker.py",
    PACKAGE / "gates" / "engine" / "internals.py",
}
PUBLIC = {"_replace", "_current_frames"}  # of named tuples, and of sys: their documentation has them


def private_parts(path):
    used = {
        node.attr
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    }
    own = {node.name for node in nodes_of(path) if isinstance(node, ast.FunctionDef)}
    return sorted(used - own - PUBLIC) if path not in HOME else []


def test_no_other_module_uses_private_parts_of_a_library():
    assert found_in_files(private_parts) == []
