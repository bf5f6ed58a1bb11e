from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from stagehold.errors import ToolMissing
from stagehold.lake.store.files import files_at
from stagehold.local.demo.demo_run import expected_top_orders
from stagehold.local.demo.sample import PARTS, TABLES, lay_day, lay_sample, make_sample


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("lake")
    make_sample(lake, 0.01)
    return lake


def written(lake: Path) -> dict[str, int]:
    """Time of the last change of every file, by name."""
    return {str(path.relative_to(lake)): path.stat().st_mtime_ns for path in lake.rglob("*.parquet")}


def test_every_table_has_one_file_per_split(lake: Path) -> None:
    assert {table: len(list((lake / "raw" / table).glob("*.parquet"))) for table in TABLES} == dict.fromkeys(
        TABLES, PARTS
    )


def test_duckdb_answers_from_the_files(lake: Path) -> None:
    answer = expected_top_orders(lake)
    assert len(answer) == 10
    assert answer[0] == (47714, Decimal("267010.5894"), date(1995, 3, 11), 0)
    assert answer == sorted(answer, key=lambda row: (-row[1], row[2], row[0]))


def test_the_same_scale_again_writes_nothing(lake: Path) -> None:
    before = written(lake)
    make_sample(lake, 0.01)
    assert written(lake) == before


@pytest.mark.slow
def test_a_bucket_gets_what_a_folder_gets_and_no_local_folder_is_made(
    tmp_path: Path, s3_lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and files are equal, byte by byte; and a second call brings nothing and takes nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("stagehold.local.demo.sample.SCALE", 0.001)
    day, here, there = date(2026, 11, 1), tmp_path / "lake", files_at(s3_lake)
    for _ in range(2):
        lay_sample(str(here))
        lay_sample(s3_lake)
        assert lay_day(str(here), day) == f"{here}/raw/daily_orders/2026-11-01.parquet"
        assert lay_day(s3_lake, day) == f"{s3_lake}/raw/daily_orders/2026-11-01.parquet"
        in_folder = {str(path.relative_to(here)): path.read_bytes() for path in here.rglob("*") if path.is_file()}
        assert {name: there.read(name) for name in there.sizes("raw")} == in_folder
    assert len(in_folder) == len(TABLES) * PARTS + 2
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


@pytest.mark.slow
def test_another_scale_or_an_interrupted_call_replaces_all_files(lake: Path, tmp_path: Path) -> None:
    make_sample(tmp_path, 0.001)
    small = written(tmp_path)
    assert len(small) == len(TABLES) * PARTS
    (tmp_path / "raw" / "orders" / "left-over.parquet").touch()
    (tmp_path / "raw" / "_sample").unlink()
    make_sample(tmp_path, 0.001)
    assert written(tmp_path).keys() == small.keys()
    assert not written(tmp_path).items() & small.items()


def test_a_missing_tool_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match=r"no-tool is needed to make the sample data .* `make demo` installs it"):
        make_sample(tmp_path, 0.01, tool="no-tool")
