"""What a function writes, and what it reads beside its inputs, through Spark or around it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.run.small_project import FILES, NUMBERS, ROWS, SmallProject, numbers

from stagehold.errors import StageContractBroken, UndeclaredRead

pytestmark = pytest.mark.spark

WRITERS = """
from pathlib import Path

from pyspark.sql import functions as F

from stagehold import stage


@stage
def saves(ctx, source):
    source.write.mode("append").parquet("{folder}/out")
    return source


@stage
def saves_in_spite(ctx, source):
    try:
        source.write.mode("append").parquet("{folder}/out")
    except Exception:
        pass
    return source


@stage
def inserts(ctx, source):
    source.sparkSession.sql("CREATE TABLE mine USING parquet AS SELECT 1 AS one")
    return source


@stage
def computes_for_nothing(ctx, source):
    source.write.format("noop").mode("overwrite").save()
    return source


@stage
def reads_aside(ctx, source):
    path = ctx.params["side"]
    spark = source.sparkSession
    side = spark.read.parquet(path)
    extra = int(Path(path).with_name("more.txt").read_text())
    return source.join(side, "number", "left_semi").select((F.col("number") + extra).alias("number"))


@stage
def asks_in_waves(ctx, source):
    return source.where(F.col("number") < source.count())
"""


@pytest.fixture
def writers(tmp_path, spark_remote):
    folder = tmp_path / f"writers_{tmp_path.name.replace('-', '_')}"
    folder.mkdir()
    return SmallProject.make(folder, spark_remote, WRITERS.replace("{folder}", str(folder)))


@pytest.mark.parametrize(
    ("function", "call"), [("saves", "parquet"), ("saves_in_spite", "parquet"), ("inserts", "sql")]
)
def test_a_function_that_writes_is_refused_with_its_line(writers, function, call):
    with pytest.raises(StageContractBroken) as raised:
        writers.made(function, {function: {"source": NUMBERS}})
    module = Path(writers.settings.project).name
    assert f"(`{call}` at {module}.py:" in str(raised.value)
    assert "`effects: allowed`" in str(raised.value)
    assert not (writers.settings.home_path / "out").exists()


def test_a_function_may_write_where_its_stage_says_so(writers):
    writers.made("saves", {"saves": {"source": NUMBERS, "effects": "allowed"}})
    assert (writers.settings.home_path / "out").exists()


def test_to_compute_for_nothing_is_no_writing(writers):
    found = writers.made("noop", {"computes_for_nothing": {"source": NUMBERS}})
    assert found == {number: numbers(number) for number in range(FILES)}


@pytest.fixture
def aside(writers):
    """Half of the numbers, and one more number, in files that no input names."""
    folder = writers.settings.home_path
    pq.write_table(pa.table({"number": pa.array(range(0, FILES * ROWS, 2), pa.int64())}), folder / "side.parquet")
    (folder / "more.txt").write_text("1")
    return {"params": {"side": str(folder / "side.parquet")}, "source": NUMBERS}


def test_what_a_function_reads_beside_its_inputs_is_told_once(writers, aside, capsys):
    writers.made("reads_aside", {"reads_aside": aside})
    told = [line for line in capsys.readouterr().out.splitlines() if "warning: reads_aside reads" in line]
    module, lines = Path(writers.settings.project).name, WRITERS.splitlines()
    places = [
        next(n for n, line in enumerate(lines, 1) if text in line) for text in ("spark.read.parquet", "with_name")
    ]
    assert {line.split(", which")[0] for line in told} == {
        f"warning: reads_aside reads file side.parquet ({module}.py:{places[0]})",
        f"warning: reads_aside reads file more.txt ({module}.py:{places[1]})",
    }
    assert len(told) == 2


def test_or_is_refused(writers, aside):
    with pytest.raises(UndeclaredRead, match=r"reads: \{files: \[.*\], undeclared: strict\}"):
        writers.made("reads_aside", {"reads_aside": {**aside, "reads": "strict"}})


def test_or_is_declared_and_then_counts(writers, aside):
    stages = {"reads_aside": {**aside, "reads": {"files": ["more.txt", "side.parquet"], "undeclared": "strict"}}}
    evens = [number for number in range(FILES * ROWS) if number % 2 == 0]
    for more in (1, 5):
        (writers.settings.home_path / "more.txt").write_text(str(more))
        found = writers.made("reads_aside", stages)
        assert sorted(row for rows in found.values() for row in rows) == [number + more for number in evens]


def test_a_function_that_is_given_whole_waves_may_not_ask(writers):
    with pytest.raises(StageContractBroken, match="take `per_wave` away"):
        writers.made("asks", {"asks_in_waves": {"source": NUMBERS, "per_wave": True}})
