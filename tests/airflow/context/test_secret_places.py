"""Secrets of a task are found wherever Airflow keeps connections and variables."""

from __future__ import annotations

import pytest

from stagehold.errors import SecretsUnusable
from stagehold.secrets import found_secrets
from stagehold.settings import Settings

pytestmark = pytest.mark.airflow


@pytest.fixture
def places(airflow_home, tmp_path):
    from stagehold.airflow.context.secret_places import airflow_places

    return airflow_places(Settings(secrets=str(tmp_path)))


def test_a_password_of_a_connection_and_a_variable_are_secrets(places, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", "postgres://me:pass%2Fword@db/shop")
    monkeypatch.setenv("AIRFLOW_VAR_API", "variable-of-airflow")
    assert found_secrets(["shop", "api"], places) == {"shop": "pass/word", "api": "variable-of-airflow"}


def test_the_usual_places_count_more_and_airflow_masks_what_they_have(places, monkeypatch):
    from stagehold.airflow.dag.region_operator import redacted

    monkeypatch.setenv("AIRFLOW_VAR_API", "variable-of-airflow")
    monkeypatch.setenv("STAGEHOLD_SECRET_API", "of-the-environment")
    assert found_secrets(["api"], places) == {"api": "of-the-environment"}
    assert redacted("401 for of-the-environment") == "401 for ***"


def test_what_is_nowhere_is_told_with_airflows_places(places, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", "postgres://me@db/shop")
    with pytest.raises(SecretsUnusable, match="the password of Airflow's connection shop or Airflow's variable shop"):
        found_secrets(["shop"], places)
