"""`catalog:` of an output: readers find the published table by its name in the catalog of Spark's server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from deltalake import DeltaTable
from tests.conftest import QUICK_JAVA, free_port
from tests.run.workbench import INTERVAL, TOY, Workbench, ended

from stagehold.spark.server.server import spark_server
from stagehold.spark.session.sessions import open_session, release_session

pytestmark = pytest.mark.spark

TABLE = "table: marts.summary"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """A server with a metastore of Hive in a Derby database, which outlives it."""
    folder = tmp_path_factory.mktemp("catalog")
    made = Workbench.make(folder, "")
    conf = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    settings = replace(
        made.settings,
        spark_port=free_port(),
        spark_java_options=QUICK_JAVA,
        spark_memory="1g",
        spark_conf=json.dumps(conf),
    )
    with spark_server(settings):
        yield Workbench(settings)


def declare(bench: Workbench, catalog: str) -> None:
    text = (TOY / "toy.yaml").read_text().replace(TABLE, f"{TABLE}, catalog: {catalog}")
    (Path(bench.settings.pipelines) / "toy.yaml").write_text(text)


def asked(bench: Workbench, *queries: str) -> list[tuple[object, ...]]:
    """What somebody else's session on the server answers to the last of them."""
    name = str(uuid4())
    spark = open_session(bench.settings, name)
    try:
        answers = [spark.sql(query).collect() for query in queries]
    finally:
        release_session(bench.settings, name)
    return [tuple(row) for row in answers[-1]]


def test_a_published_table_is_found_by_its_name_and_has_the_rows_that_its_files_have(bench: Workbench) -> None:
    assert bench.run("--run-id", "before").counts == (0, 13)
    declare(bench, "sales.totals")
    run = bench.run("--run-id", "r1")  # nothing is to be computed, and it is registered all the same
    assert run.counts == (13, 0), run.err
    assert "opened Spark session" in run.err
    query = "SELECT colour, total, numbers FROM sales.totals ORDER BY colour"
    assert asked(bench, query) == bench.published() == bench.expected()
    assert "opened Spark session" not in bench.run("--run-id", "r2").err
    # Another day and a new version of the table, which nobody has to tell the catalog.
    assert ended(bench.command("run", "toy", "--interval", "2026-11-21", "--run-id", "r3", "--json")).code == 0
    assert asked(bench, "SELECT DISTINCT _interval FROM sales.totals ORDER BY 1") == [(INTERVAL,), ("2026-11-21",)]
    (log,) = Path(bench.settings.lake_uri).glob("**/summary/_delta_log")
    assert len(DeltaTable(str(log.parent)).to_pyarrow_table()) == 2 * len(bench.expected())


def test_a_name_of_another_table_is_refused_and_left_alone(bench: Workbench) -> None:
    asked(bench, "CREATE SCHEMA IF NOT EXISTS sales", "CREATE TABLE sales.taken USING delta AS SELECT 1 AS x")
    declare(bench, "sales.taken")
    run = bench.run("--run-id", "r4")
    assert run.code == 1
    assert "knows sales.taken as the table at" in run.err
    assert asked(bench, "SELECT x FROM sales.taken") == [(1,)]
    declare(bench, "sales.other")
    assert bench.run("--run-id", "r4").counts == (13, 0)
