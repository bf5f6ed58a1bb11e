"""Who asks pyspark for a session gets the one that pyspark was told, and in a worker none."""

from __future__ import annotations

import importlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession as AnySession
from pyspark.sql.connect.session import SparkSession

from stagehold.spark import connect
from stagehold.spark.session import worker


@pytest.fixture
def builders(monkeypatch):
    """What a test changes of who gets which session is as before when it ends."""
    for kind, name in (
        (SparkSession, "_active_session"),
        (AnySession.Builder, "getOrCreate"),
        (AnySession, "active"),
        (AnySession, "getActiveSession"),
    ):
        monkeypatch.setattr(kind, name, vars(kind)[name])


@pytest.mark.usefixtures("builders")
def test_every_thread_gets_the_active_session_that_pyspark_is_told(unconnected):
    given = [unconnected]
    SparkSession._active_session = threading.local()
    AnySession.Builder.getOrCreate = create = lambda builder: "its own"
    connect.take_active_session_from(lambda: given[-1])
    connect.take_active_session_from(lambda: None)  # once is enough
    ways = (
        AnySession.getActiveSession,
        AnySession.active,
        SparkSession.getActiveSession,
        AnySession.builder.master("local").enableHiveSupport().appName("mine").getOrCreate,
        SparkSession.builder.getOrCreate,
    )
    with ThreadPoolExecutor() as pool:
        assert {way() for way in ways} == {pool.submit(way).result() for way in ways} == {unconnected}
    assert AnySession.builder.remote("sc://elsewhere").getOrCreate() == "its own"
    given.append(None)
    assert AnySession.builder.getOrCreate() == create(None)
    assert SparkSession.getActiveSession() is None
    SparkSession._active_session.session = unconnected
    assert SparkSession.getActiveSession() is unconnected


@pytest.mark.usefixtures("builders")
def test_what_a_thread_has_active_before_pyspark_is_told_it_keeps(unconnected):
    SparkSession._active_session = threading.local()
    SparkSession._active_session.session = unconnected
    connect.take_active_session_from(lambda: None)
    with ThreadPoolExecutor() as pool:
        assert pool.submit(SparkSession.getActiveSession).result() is None
    assert SparkSession.getActiveSession() is unconnected


@pytest.fixture
def prepared(builders, monkeypatch):
    from pyspark.sql import types

    monkeypatch.setattr(types, "_parse_datatype_string", types._parse_datatype_string)
    worker.prepare()


@pytest.mark.usefixtures("prepared")
def test_a_worker_takes_any_type_for_a_text_without_a_session():
    from pyspark.sql import types

    assert types._parse_datatype_string("a: int") == types.NullType()


TOP = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("mine").getOrCreate()
active = SparkSession.getActiveSession()
spark.conf.set("a", "b")
rows = active.table("numbers")
some = rows.where("number > 0").select(rows["number"])
"""


@pytest.mark.usefixtures("prepared")
def test_a_worker_imports_a_module_that_takes_a_session_and_says_why_it_cannot_be_used(tmp_path, monkeypatch):
    (tmp_path / "takes_a_session.py").write_text(TOP)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("takes_a_session")
    uses = (
        lambda: module.spark.range(3),
        lambda: module.some.collect(),
        lambda: list(module.rows),
        lambda: bool(module.rows),
        lambda: module.rows["number"],
        lambda: AnySession.builder.getOrCreate().version,
    )
    for use in uses:
        with pytest.raises(RuntimeError, match="no Spark in a worker"):
            use()
    assert AnySession.getActiveSession() is None
    assert not hasattr(module.spark, "__len__")
