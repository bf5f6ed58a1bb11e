"""Which Airflow commands speak to, and as whom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stagehold.errors import AirflowMisconfigured, InvalidSetting
from stagehold.local import airflow_access as access
from stagehold.local.airflow_access import AirflowAccess, airflow_access, url_elsewhere
from stagehold.local.airflow_configuration import admin_password
from stagehold.settings import Settings

URL = "https://airflow.example:8443/base"
NETRC = """\
machine other.example login bob password other
machine airflow.example login ann password "se/cr@t"
machine tokens.example login __token__ password abc.def
"""


@pytest.fixture(autouse=True)
def outside_of_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_configured_url", lambda: None)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"))


def credentials(folder: Path, text: str = NETRC, mode: int = 0o600) -> str:
    file = folder / "credentials"
    file.write_text(text)
    file.chmod(mode)
    return str(file)


def test_without_settings_it_is_that_of_this_home(settings: Settings) -> None:
    assert url_elsewhere(settings) is None
    own = AirflowAccess("http://127.0.0.1:8080", elsewhere=False, user="admin", password=admin_password(settings))
    assert airflow_access(settings) == own


def test_a_token_counts_before_a_user_and_that_before_the_file(settings: Settings, tmp_path: Path) -> None:
    all_three = replace(
        settings,
        airflow_url=f"{URL}/",
        airflow_token="t",
        airflow_user="eve",
        airflow_password="p",
        airflow_credentials=credentials(tmp_path),
    )
    assert airflow_access(all_three) == AirflowAccess(URL, elsewhere=True, token="t")
    two = replace(all_three, airflow_token="")
    assert airflow_access(two) == AirflowAccess(URL, elsewhere=True, user="eve", password="p")
    one = replace(two, airflow_user="", airflow_password="")
    assert airflow_access(one) == AirflowAccess(URL, elsewhere=True, user="ann", password="se/cr@t")


def test_the_file_has_tokens_too_and_is_asked_for_the_user_that_is_set(settings: Settings, tmp_path: Path) -> None:
    by_file = replace(settings, airflow_url="http://tokens.example", airflow_credentials=credentials(tmp_path))
    assert airflow_access(by_file) == AirflowAccess("http://tokens.example", elsewhere=True, token="abc.def")
    with pytest.raises(AirflowMisconfigured, match="no credentials"):
        airflow_access(replace(by_file, airflow_url=URL, airflow_user="eve"))


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_file_that_others_may_read_is_refused_with_the_command_that_mends_it(
    settings: Settings, tmp_path: Path, mode: int
) -> None:
    file = credentials(tmp_path, mode=mode)
    with pytest.raises(InvalidSetting, match=f"mode is {mode:04o}: `chmod 600 {file}`") as refused:
        airflow_access(replace(settings, airflow_url=URL, airflow_credentials=file))
    assert "se/cr@t" not in str(refused.value)


@pytest.mark.parametrize("text", ["password airflow.example", "login ann\n"])
def test_a_file_that_is_none_is_told_without_what_is_in_it(settings: Settings, tmp_path: Path, text: str) -> None:
    file = credentials(tmp_path, f"{text} s3cret")
    with pytest.raises(InvalidSetting, match="STAGEHOLD_AIRFLOW_CREDENTIALS"):
        airflow_access(replace(settings, airflow_url=URL, airflow_credentials=file))
    with pytest.raises(InvalidSetting, match="No such file"):
        airflow_access(replace(settings, airflow_url=URL, airflow_credentials=str(tmp_path / "nothing")))


def test_who_set_no_credentials_is_told_all_three_ways(settings: Settings, tmp_path: Path) -> None:
    for unset in (
        settings,
        replace(settings, airflow_credentials=credentials(tmp_path, "machine x login a password b")),
    ):
        with pytest.raises(AirflowMisconfigured) as told:
            airflow_access(replace(unset, airflow_url=URL))
        for name in ("TOKEN", "USER", "PASSWORD", "CREDENTIALS"):
            assert f"STAGEHOLD_AIRFLOW_{name}" in str(told.value)


@pytest.mark.parametrize(
    "url",
    [
        "airflow.example",
        "ftp://a",
        "http://",
        "https://a?x=1",
        "https://ann:s3cret@a",
        "https://a#b",
        "://",
        "http://[",
        "http://a:x",
        "http://a:99999",
    ],
)
def test_an_address_that_is_none_is_refused_without_a_password(settings: Settings, url: str) -> None:
    with pytest.raises(InvalidSetting, match="STAGEHOLD_AIRFLOW_URL") as refused:
        airflow_access(replace(settings, airflow_url=url, airflow_token="t"))
    assert "s3cret" not in str(refused.value)
