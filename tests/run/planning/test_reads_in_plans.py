"""Plans follow what stages declare to read beside their inputs, and strict ones refuse what is not declared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from stagehold.errors import ReadMissing, UndeclaredRead
from stagehold.ledger import Ledger
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.planning.refusal import refuse_broken_code
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

JOBS = """\
import os
from pyspark.sql.functions import udf
from stagehold import stage


@udf("double")
def taxed(amount):
    return amount * float(os.environ["RATE"])


@stage
def orders(ctx, source):
    return source.withColumn("taxed", taxed("amount"))


@stage
def totals(ctx, orders):
    return orders.join(orders.sparkSession.table("marts.land"), "land")
"""


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    (tmp_path / "work.py").write_text(JOBS)
    return settings


def pipeline(settings: Settings, orders: Mapping[str, Any], totals: Mapping[str, Any], **facts: Any) -> Pipeline:
    source = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": 1}
    stages = {
        "orders": {"job": "work:orders", "source": source, **orders},
        "totals": {"job": "work:totals", "inputs": {"orders": "gather"}, **totals},
    }
    project = Path(settings.project)
    return build_pipeline({"pipeline": "p", "stages": stages, **facts}, project=project, suites=project)


def plan(declared: Pipeline, settings: Settings, ledger: Ledger) -> ResumePlan:
    return IntervalView.of_run(RunRequest(declared, "run", "i", {}), ledger, settings).plan


def key(declared: Pipeline, settings: Settings, ledger: Ledger) -> str:
    return str(plan(declared, settings, ledger).of("orders")[0].key)


def test_keys_of_stages_that_declare_nothing_are_not_touched(settings: Settings, ledger: Ledger) -> None:
    plain, worded = pipeline(settings, {}, {}), pipeline(settings, {"reads": "strict"}, {}, reads="strict")
    assert key(plain, settings, ledger) == key(worded, settings, ledger)
    assert key(plain, settings, ledger).count(".") == 4


def test_a_key_follows_a_variable_a_file_and_a_table(
    settings: Settings, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    side, land = Path(settings.project, "side.csv"), Path(settings.lake_uri, "marts", "land")
    side.write_text("a")
    write_deltalake(str(land), pa.table({"a": [1]}))
    monkeypatch.delenv("RATE", raising=False)
    declared = pipeline(settings, {"reads": {"env": "RATE", "files": "side.csv", "tables": "marts.land"}}, {})
    keys = [key(declared, settings, ledger)]
    assert key(declared, settings, ledger) == keys[0]
    monkeypatch.setenv("RATE", "0.19")
    keys.append(key(declared, settings, ledger))
    side.write_text("ab")
    keys.append(key(declared, settings, ledger))
    write_deltalake(str(land), pa.table({"a": [2]}), mode="append")
    keys.append(key(declared, settings, ledger))
    assert len(set(keys)) == 4
    assert len({one.rpartition(".")[0] for one in keys}) == 1


def test_what_is_declared_and_not_there_is_an_error_of_the_plan(settings: Settings, ledger: Ledger) -> None:
    with pytest.raises(ReadMissing, match=r"stages.orders.reads.files: got 'side/\*.csv'"):
        plan(pipeline(settings, {"reads": {"files": "side/*.csv"}}, {}), settings, ledger)


def refuse(declared: Pipeline, settings: Settings, ledger: Ledger) -> None:
    refuse_broken_code(declared, plan(declared, settings, ledger), settings)


def test_strict_stages_are_refused_before_anything_runs_with_all_that_they_read(
    settings: Settings, ledger: Ledger
) -> None:
    with pytest.raises(UndeclaredRead) as raised:
        refuse(pipeline(settings, {}, {}, reads="strict"), settings, ledger)
    assert raised.value.reads == {
        "orders": ("orders reads env RATE (work.py:8)",),
        "totals": ("totals reads table marts.land (work.py:18)",),
    }
    assert str(raised.value).endswith(
        "stages:\n  orders:\n    reads: {env: [RATE]}\n  totals:\n    reads: {tables: [marts.land]}"
    )


def test_only_strict_stages_are_refused_and_only_for_what_they_do_not_declare(
    settings: Settings, ledger: Ledger
) -> None:
    refuse(pipeline(settings, {}, {}), settings, ledger)
    refuse(pipeline(settings, {"reads": "warn"}, {"reads": "warn"}, reads="strict"), settings, ledger)
    refuse(pipeline(settings, {"reads": {"env": "RATE", "undeclared": "strict"}}, {}), settings, ledger)
    with pytest.raises(UndeclaredRead, match=r"reads: \{tables: \[marts.land\], undeclared: strict\}$"):
        refuse(pipeline(settings, {}, {"reads": "strict"}), settings, ledger)
