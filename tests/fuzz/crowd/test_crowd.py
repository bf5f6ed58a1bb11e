"""What `make crowd` counts and compares with, without an Airflow."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.crowd.amounts import FILES, KEYS, PARTITIONS, ROWS, STAGES, interval_of, lay_amounts, pipelines, right
from fuzz.crowd.connections import Connections
from sqlalchemy import create_engine, text
from tests.e2e.deployed import CELERY, Kind, Shape
from tests.e2e.stack import until
from tests.postgres import BACK_ENDS, own_server

from stagehold.settings import Settings
from stagehold.spec.loading.loader import find_pipeline


def test_each_of_its_pipelines_has_these_stages_and_so_many_partitions(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path), pipelines=str(tmp_path), suites=str(tmp_path))
    for name, declared in pipelines(3).items():
        (tmp_path / f"{name}.yaml").write_text(declared)
    found = [find_pipeline(name, settings) for name in pipelines(3)]
    assert {tuple(stage.name for stage in pipeline.stages) for pipeline in found} == {STAGES}
    assert FILES + found[0].stages[1].partitions == PARTITIONS


def test_what_is_right_differs_by_pipeline_and_by_interval(tmp_path: Path) -> None:
    lay_amounts(tmp_path)
    answers = [right(tmp_path, name, interval_of(number)) for name in ("crowd_0", "crowd_1") for number in (0, 1)]
    assert [sum(counted for _, _, counted in answer) for answer in answers] == [FILES * ROWS] * 4
    assert [len(answer) for answer in answers] == [KEYS] * 4
    first, one_more, other, _ = (sum(total for _, total, _ in answer) for answer in answers)
    assert (one_more - first, other * 2) == (FILES * ROWS, first * 3)


@pytest.mark.parametrize(("executor", "workers"), [("LocalExecutor", 0), (CELERY, 2)])
def test_a_shape_has_so_many_processes_of_each_kind(executor: str, workers: int) -> None:
    parts = Shape(pipelines(1), executor, workers=workers).parts
    assert [number for kind, number in parts if kind is Kind.SCHEDULER] == [0, 1]
    assert [number for kind, number in parts if kind is Kind.WORKER] == [*range(workers)]
    assert len(parts) == 4 + workers


@pytest.mark.slow
@pytest.mark.skipif("postgresql" not in BACK_ENDS, reason="this machine has no PostgreSQL")
def test_connections_are_counted_and_those_in_a_transaction_apart() -> None:
    with own_server() as server:
        engine, found = create_engine(server.url), Connections()

        def counted() -> tuple[int, int]:
            found.count(counting)
            return found.open, found.in_transaction

        with create_engine(server.url, isolation_level="AUTOCOMMIT").connect() as counting:
            with engine.connect(), engine.connect() as busy:
                busy.execute(text("SELECT 1"))
                assert counted() == (2, 1)
            engine.dispose()
            until(lambda: counted() == (0, 0), "the server has noticed that they are gone", 30)
        assert found.most == 2
