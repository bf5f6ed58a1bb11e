"""A migrated Airflow home for the session; everything is set before Airflow is imported, which reads it once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _environment(home).items():
            patch.setenv(name, value)
        yield home


def _environment(home: Path) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of this test run, long enough for HS512 signatures to be accepted",
        "STAGEHOLD_HOME": str(home / "stagehold"),
    }
