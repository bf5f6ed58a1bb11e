"""SQL over a checkpoint: it answers, and can neither read nor write anything else."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.viewer.samples import NOW, SEEN, checkpoint, names, orders, sample_lake, write

from stagehold.errors import InvalidArgument, PartitionDataMissing, QueryRefused
from stagehold.lake.checkpoints.references import find_checkpoint
from stagehold.viewer.database import database_over
from stagehold.viewer.read_rows import plain, rows_of_state, rows_of_statement, shown
from stagehold.viewer.views import views_of

pytestmark = pytest.mark.slow


@pytest.fixture
def lake(tmp_path):
    return sample_lake(tmp_path)


def opened(lake: str):
    stored, number = find_checkpoint("sales/run", lake)
    return stored.open(number)


def ask(lake: str, sql: str, limit: int | None = None):
    return rows_of_statement(opened(lake), sql, limit, pytest.fail)


def content(folder: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_a_stage_is_a_view_of_its_consumable_partitions_without_our_columns(lake):
    found = ask(lake, 'SELECT * FROM "orders" ORDER BY id')
    assert found.columns == ("_partition", "id", "price", "at", "tags")
    assert found.rows[3] == (1, 3, Decimal("1.50"), NOW + timedelta(hours=3), [{"name": "a", "weight": 3}])
    assert len(found.rows) == 4


def test_states_and_stages_are_asked_together(lake):
    query = "SELECT o.id, s.times FROM orders o JOIN orders.seen s USING (id) ORDER BY ALL"
    assert ask(lake, query).rows == ((1, 2), (3, 4))


def test_only_so_many_rows_are_fetched(lake):
    found = ask(lake, "FROM orders ORDER BY id", 3)
    assert (len(found.rows), found.more) == (3, True)
    assert not ask(lake, "FROM orders", 4).more


def test_views_can_be_listed(lake):
    assert set(ask(lake, "SHOW TABLES").rows) >= {("names",), ("orders",)}
    assert ask(lake, "DESCRIBE names").rows[0][:2] == ("_partition", "BIGINT")


def test_gone_files_are_told_by_partition_and_only_where_they_are_read(lake):
    shutil.rmtree(Path(lake, "stages/sales/orders/2026-01-01/_data/attempt-1/0/_partition=1"))
    with pytest.raises(PartitionDataMissing, match=r"orders is gone for partition\(s\) 1\."):
        ask(lake, "SELECT count(*) FROM orders")
    assert ask(lake, "SELECT count(*) FROM names").rows == ((2,),)


HOSTILE = """
COPY (SELECT 1) TO '{file}' (FORMAT parquet, USE_TMP_FILE false)
COPY (SELECT 1) TO '{outside}'
WITH x AS (COPY (SELECT 1) TO '{file}' (FORMAT parquet, USE_TMP_FILE false)) SELECT 1
SELECT * FROM query('WITH x AS (COPY (SELECT 1) TO ''{file}'' (FORMAT parquet, USE_TMP_FILE false)) SELECT 1')
EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}' (FORMAT parquet, USE_TMP_FILE false)
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM '/etc/passwd'
SELECT * FROM '{other}'
SELECT * FROM read_text('/etc/passwd')
SELECT * FROM glob('/etc/*')
WITH x AS (SELECT * FROM read_parquet('{other}')) SELECT * FROM x
SELECT (SELECT count(*) FROM read_parquet('{other}'))
SELECT * FROM orders UNION ALL SELECT * FROM parquet_scan('{other}')
SELECT * FROM query_table('{other}')
ATTACH '{outside}' AS other
INSTALL httpfs
LOAD httpfs
PRAGMA database_list
CALL pragma_version()
SET enable_external_access = true
RESET lock_configuration
CREATE TABLE t (a INT)
CREATE OR REPLACE VIEW orders AS SELECT 1
DROP VIEW orders
EXPORT DATABASE '{outside}'
SELECT 1; COPY (SELECT 1) TO '{outside}'
SELECT 1; SELECT 2
WITH x AS (DELETE FROM orders) SELECT 1
PREPARE p AS SELECT 1
SELECT * FROM duckdb_secrets()
SELECT * FROM json_execute_serialized_sql('{{}}')
SELECT getenv('HOME')
SELECT * FROM lake
SELECT * FROM nothing
nonsense
"""


@pytest.mark.parametrize("statement", HOSTILE.strip().splitlines())
def test_a_hostile_statement_reads_and_writes_nothing(lake, tmp_path, statement):
    other = tmp_path / "other.parquet"
    (file,) = Path(lake, "stages/sales/orders").rglob("_data/attempt-1/0/_partition=0/*.parquet")
    shutil.copy(file, other)
    before = content(str(tmp_path))
    text = statement.format(file=file, other=other, outside=tmp_path / "outside")
    with pytest.raises(QueryRefused, match=r"The statement was refused"):
        ask(lake, text)
    with pytest.raises(QueryRefused):
        ask(lake, f"{text} -- orders")
    assert content(str(tmp_path)) == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_parquet('{other}')",
        "COPY (SELECT 1) TO '{outside}'",
        "ATTACH '{outside}'",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET allowed_paths = ['/etc/passwd']",
    ],
)
def test_the_database_itself_is_locked_too(lake, tmp_path, statement):
    import duckdb

    (file,) = Path(lake, "stages/sales/names").rglob("*.parquet")
    other = shutil.copy(file, tmp_path / "other.parquet")
    views = views_of(opened(lake), [("main", "orders")])
    with database_over(views, pytest.fail) as connection, pytest.raises(duckdb.Error):
        connection.execute(statement.format(other=other, outside=tmp_path / "outside"))


def state(lake: str, name: str, limit: int | None = None, **facts):
    checkpoint = opened(lake)
    stage = checkpoint.stage("orders")
    shape = next(state for state in stage.manifest.states if state.name == name)
    return rows_of_state(checkpoint, stage, shape, limit, pytest.fail, **facts)


def test_keyed_state_is_shown_by_key_group_and_a_list_in_its_order(lake):
    keyed = state(lake, "seen")
    assert keyed.columns == ("_partition", "_group", "id", "times")
    assert keyed.rows == ((0, 5, 1, 2), (0, 9, 7, 1), (1, 40, 3, 4))
    assert state(lake, "offsets").rows == ((0, 0, "a"), (0, 1, "b"), (1, 0, "c"))


def test_state_of_some_keys_or_of_one_partition(lake):
    assert state(lake, "seen", keys=("3", "7")).rows == ((0, 9, 7, 1), (1, 40, 3, 4))
    assert state(lake, "seen", partition=1).rows == ((1, 40, 3, 4),)
    with pytest.raises(InvalidArgument, match="offsets is a list"):
        state(lake, "offsets", keys=("3",))


def test_what_is_in_a_bucket_is_fetched_and_said_so(s3_lake):
    write(s3_lake, checkpoint(3, orders(s3_lake), names(s3_lake)))
    told: list[str] = []
    found = rows_of_statement(opened(s3_lake), "SELECT sum(id), max(_partition) FROM orders", None, told.append)
    assert found.rows == ((6, 1),)
    assert [line.split(",")[0] for line in told] == ["Fetching 2 files"]
    assert not Path(told[0].split()[-2]).exists()


@pytest.mark.parametrize(
    ("value", "in_json", "for_people"),
    [
        (None, None, "NULL"),
        (Decimal("1.50"), "1.50", "1.50"),
        (NOW, "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"),
        (b"\x00\xff", "00ff", "00ff"),
        ({"k": [Decimal(1), None]}, {"k": ["1", None]}, '{"k": ["1", null]}'),
        (float("nan"), "nan", "nan"),
        (True, True, "true"),
        ("[red]", "[red]", "[red]"),
    ],
)
def test_values_print_sensibly(value, in_json, for_people):
    assert (plain(value), shown(value)) == (in_json, for_people)


def test_a_state_without_files_has_no_rows(tmp_path):
    lake = str(tmp_path / "lake")
    stage = orders(lake)
    without = replace(stage, partitions=tuple(replace(partition, kept=()) for partition in stage.partitions))
    write(lake, checkpoint(3, without))
    assert state(lake, SEEN.name).rows == ()


def test_a_stage_of_which_nothing_is_consumable_is_told_as_such(tmp_path):
    lake = str(tmp_path / "lake")
    write(lake, checkpoint(3, replace(orders(lake), partitions=())))
    with pytest.raises(QueryRefused, match='nothing of "orders" is there yet'):
        ask(lake, "SELECT * FROM orders")
    assert ask(lake, "WITH orders AS (SELECT 1 AS id) FROM orders").rows == ((1,),)
