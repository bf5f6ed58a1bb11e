from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from stagehold.errors import InvalidSetting
from stagehold.settings import PROJECT, Settings, load_settings


def test_defaults_follow_from_the_home():
    settings = load_settings({"STAGEHOLD_HOME": "/somewhere"})
    assert settings.lake_uri == "/somewhere/lake"
    assert settings.ledger_url == "sqlite:////somewhere/ledger.db"


def test_settings_survive_the_way_through_an_environment():
    settings = Settings(home="/somewhere", spark_cores=7, lake="s3://bucket/lake", only_spark_writer=True)
    assert load_settings(settings.environment) == settings


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("STAGEHOLD_SPARK_PORT", "many", "a whole number"),
        ("STAGEHOLD_ONLY_SPARK_WRITER", "perhaps", "true or false"),
    ],
)
def test_a_bad_setting_is_named_with_what_is_allowed(name, given, allowed):
    with pytest.raises(InvalidSetting, match=f"{name}.*{given}.*{allowed}"):
        load_settings({name: given})


def test_an_unknown_variable_is_told_once_with_the_nearest_name(caplog):
    environment = {"STAGEHOLD_LAEK": "s3://secret", "STAGEHOLD_SPARK_CORES": "3"}
    assert [load_settings(environment) for _ in range(3)] == [Settings(spark_cores=3)] * 3
    (warning,) = caplog.messages
    assert "STAGEHOLD_LAEK" in warning
    assert "nearest name is STAGEHOLD_LAKE;" in warning
    assert "secret" not in warning


def test_variables_of_others_and_of_the_tests_do_not_matter():
    assert load_settings({"PATH": "/bin", "STAGEHOLD_TEST_POSTGRES_URL": "x"}) == Settings()


def test_the_readme_lists_every_setting():
    listed = re.findall(r"^\| `STAGEHOLD_(\w+)` \|", (Path(PROJECT) / "README.md").read_text(), flags=re.MULTILINE)
    assert listed == [field.name.upper() for field in fields(Settings)]
