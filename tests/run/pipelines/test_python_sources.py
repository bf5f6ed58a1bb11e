"""Sources that the project's own code reads: what a resume, a new stamp and an edit of the code read again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.run.small_project import SmallProject, values_of

from stagehold.errors import FunctionFailed, SourceUnusable

pytestmark = pytest.mark.spark
JOBS = """
import os
from pathlib import Path
from stagehold import SourceSplit, stage

@stage
def orders(ctx, source):
    return source.where("number >= 0")

@stage
def totals(ctx, orders):
    return orders.groupBy().sum("number").selectExpr("CAST(`sum(number)` AS BIGINT) AS number")
"""
READER = '''
"""Each shop's orders, from its folder; who was asked is written down."""

from pathlib import Path
from stagehold import SourceSplit

class Shops:
    def splits(self, ctx):
        shops = sorted(Path(ctx.params["place"], "shops").iterdir())
        return [SourceSplit(shop.name, stamp=(shop / ctx.interval).read_text()) for shop in shops]

    def read(self, ctx, split):
        with open(Path(ctx.params["place"], "asked"), "a") as asked:
            asked.write(f"{split.name} ")
        lines = Path(ctx.params["place"], "shops", split.name, ctx.interval).read_text().split()
        return [(int(line),) for line in lines]
'''
SOURCE = {"kind": "python", "schema": "number bigint", "splits": 3}
STAGES = {"orders": {}, "totals": {"inputs": {"orders": "gather"}}}


@pytest.fixture
def project(tmp_path: Path, spark_remote: str) -> SmallProject:
    folder = tmp_path / "shopping"
    folder.mkdir()
    made = SmallProject.make(folder, spark_remote, JOBS)
    (folder / "shop_reader.py").write_text(READER)
    for number, shop in enumerate(("de", "fr", "it")):
        write(made, shop, 10 * number, 10 * number + 1)
    return made


def write(project: SmallProject, shop: str, *lines: object) -> None:
    place = Path(project.settings.project, "shops", shop, "2026-11-20")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(" ".join(map(str, lines)))


def run(project: SmallProject, run_id: str, **fields: object) -> tuple[list[int], list[str]]:
    """The total and the shops that were asked for it."""
    source = {**SOURCE, "reader": "shop_reader:Shops", **fields}
    place = {"params": {"place": project.settings.project}}
    pipeline = project.pipeline("shops", {**STAGES, "orders": {"source": source}}, **place)
    asked = Path(project.settings.project, "asked")
    asked.write_text("")
    (record,) = project.run(pipeline, run_id, "2026-11-20")["totals"]
    return values_of(record, "number"), sorted({*asked.read_text().split()})


def test_only_what_has_another_stamp_is_read_again_and_all_of_it_by_other_code(project):
    assert run(project, "first") == ([63], ["de", "fr", "it"])
    assert run(project, "again") == ([63], [])
    write(project, "fr", 10, 11, 100)
    assert run(project, "new") == ([163], ["fr"])
    code = Path(project.settings.project, "shop_reader.py")
    code.write_text(code.read_text().replace("(int(line),)", "(2 * int(line),)"))
    assert run(project, "mended") == ([326], ["de", "fr", "it"])


def test_a_resume_reads_what_is_missing_as_the_run_has_seen_it(project):
    write(project, "it", 20, "no number")
    with pytest.raises(FunctionFailed, match=r"ValueError: invalid literal for int.*\n  at shop_reader\.py:16"):
        run(project, "night")
    write(project, "it", 20, 22)
    write(project, "de", 1000)
    assert run(project, "night") == ([64], ["it"])
    assert run(project, "day") == ([1063], ["de", "it"])


def test_rows_of_other_columns_than_the_declared_ones_are_refused_before_anything_is_computed(project):
    code = Path(project.settings.project, "shop_reader.py")
    frame = "SparkSession.builder.getOrCreate().range(3)"
    text = code.read_text().replace("return [(int", f"return {frame}\n        return [(int")
    code.write_text(text.replace("from pathlib", "from pyspark.sql import SparkSession\nfrom pathlib"))
    with pytest.raises(SourceUnusable, match=r"Shops\.read gives id bigint for de; declared are number bigint"):
        run(project, "wrong")
    code.write_text(code.read_text().replace("range(3)", "range(3).selectExpr('id AS number')"))
    assert run(project, "right") == ([9], ["de", "fr", "it"])
