"""Where secrets are looked for, what is refused, and what is taken out of texts."""

from __future__ import annotations

import io
import json
import logging
import pickle
from urllib.parse import quote

import pytest

from stagehold.errors import SecretsUnusable, UnknownName
from stagehold.model.context import StageContext, StageSecrets
from stagehold.secrets import MASK, found_secrets, masked, usual_places
from stagehold.settings import Settings

HARD = "p/ä ss\"w'\\o&rd"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "secrets"
    made.mkdir()
    return made


def put(folder, name, value, mode=0o600):
    (folder / name).write_text(value)
    (folder / name).chmod(mode)


@pytest.fixture
def places(folder):
    return usual_places(Settings(secrets=str(folder)))


def test_the_environment_counts_more_than_a_file_and_that_more_than_another_place(folder, places, monkeypatch):
    put(folder, "first_key", "of the file\n")
    put(folder, "second_key", "of the file\n\n")
    monkeypatch.setenv("STAGEHOLD_SECRET_FIRST_KEY", "of the environment")
    other = (lambda name: f"the vault's {name}", lambda name: f"{name} of the vault")
    assert found_secrets(["first_key", "second_key", "third_key"], [*places, other]) == {
        "first_key": "of the environment",
        "second_key": "of the file\n",
        "third_key": "third_key of the vault",
    }


def test_all_that_is_wrong_is_told_at_once_with_where_it_was_looked_for_and_without_a_value(folder, places):
    put(folder, "shown", "open to all", 0o640)
    put(folder, "short", "abc")
    put(folder, "fine", "long enough")
    with pytest.raises(SecretsUnusable) as caught:
        found_secrets(["missing", "shown", "short", "fine"], places)
    assert list(caught.value.problems) == ["missing", "shown", "short"]
    text = str(caught.value)
    assert f"the environment variable STAGEHOLD_SECRET_MISSING or the file {folder}/missing" in text
    assert f"(mode 0640): `chmod 600 {folder}/shown`" in text
    assert "shorter than 4 characters" in text
    assert not [value for value in ("open to all", "abc", "long enough") if value in text]


@pytest.mark.parametrize(
    "quoted",
    [str, repr, json.dumps, lambda value: quote(value, safe=""), quote],
    ids=["plain", "repr", "json", "wholly in a URL", "in a path"],
)
def test_a_value_is_taken_out_however_it_is_quoted(folder, places, quoted):
    put(folder, "hard", HARD)
    found_secrets(["hard"], places)
    text = masked(f"GET /?key={quoted(HARD)}&a=1")
    assert MASK in text
    assert text.startswith("GET /?key=")
    assert text.endswith("&a=1")
    assert "rd" not in text


def test_each_line_of_a_key_is_taken_out_of_a_text_that_has_but_that(folder, places):
    put(folder, "private", "-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n")
    found_secrets(["private"], places)
    assert masked("bad key near MIIEvQIBADANBg, line 2") == f"bad key near {MASK}, line 2"


def test_log_records_are_without_it_also_in_arguments_and_traces(folder, places):
    put(folder, "logged", "a-value-in-logs")
    found_secrets(["logged"], places)
    written = io.StringIO()
    handler, log = logging.StreamHandler(written), logging.getLogger("stagehold.test_secrets")
    log.addHandler(handler)
    try:
        log.warning("asks with %s", "a-value-in-logs")
        try:
            raise RuntimeError("401 for a-value-in-logs")
        except RuntimeError:
            log.exception("failed for %d %%", 3)
        log.warning("100 % plain")
    finally:
        log.removeHandler(handler)
    assert "a-value-in-logs" not in written.getvalue()
    assert f"asks with {MASK}\nfailed for 3 %\nTraceback" in written.getvalue()
    assert f"RuntimeError: 401 for {MASK}\n100 % plain\n" in written.getvalue()


def context(**secrets):
    return StageContext("p", "s", "i", None, (0,), 1, secrets=StageSecrets(secrets))


def test_a_function_finds_what_is_declared_and_nothing_else():
    assert context(api="a-value").secret("api") == "a-value"
    with pytest.raises(UnknownName, match="no secret 'other'"):
        context(api="a-value").secret("other")


def test_a_context_shows_no_value_and_takes_none_to_a_worker():
    made = context(api="a-value-of-its-own")
    assert "a-value-of-its-own" not in repr(made)
    sent = pickle.dumps(made)
    assert b"a-value-of-its-own" not in sent
    with pytest.raises(RuntimeError, match="not sent to Spark's workers: take the value before"):
        pickle.loads(sent).secret("api")
