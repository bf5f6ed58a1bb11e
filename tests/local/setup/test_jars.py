"""Fetching, with a small program in Java's place: what it puts there, checks and says.
The real fetch is what `make setup` did.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from stagehold.errors import JarsUnusable
from stagehold.local.setup import jars
from stagehold.local.setup.jars import check_jars, fetch_jars
from stagehold.settings import Settings
from stagehold.spark.server.java import jar_folder, jar_paths

CONTENTS = {"one-1.0.jar": b"first", "two-2.0.jar": b"second"}
PINNED = {name: hashlib.sha256(data).hexdigest() for name, data in CONTENTS.items()}

Ivy = Callable[[str], None]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for module in ("stagehold.local.setup.jars", "stagehold.spark.server.java"):
        monkeypatch.setattr(f"{module}.pinned_jars", lambda: PINNED)
    return Settings(cache=str(tmp_path / "cache"))


@pytest.fixture
def ivy(monkeypatch: pytest.MonkeyPatch) -> Ivy:
    """Make `fetch_jars` run this shell script, in the folder that it is to fill, in place of Ivy."""

    def use(script: str) -> None:
        monkeypatch.setattr(jars, "_ivy_command", lambda _settings, draft: ["sh", "-c", f"cd '{draft}'; {script}"])

    return use


def put(folder: Path, contents: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)


FETCHES_BOTH = "printf first > one-1.0.jar; printf second > two-2.0.jar"


def test_jars_are_in_the_cache_once_they_are_fetched(settings: Settings, ivy: Ivy) -> None:
    ivy(FETCHES_BOTH)
    fetch_jars(settings, step=lambda: None)
    assert [path.read_bytes() for path in jar_paths(settings)] == [b"first", b"second"]
    assert [path.name for path in Path(settings.cache).iterdir()] == ["jars"], "nothing is left beside them"


def test_every_step_of_ivy_is_reported(settings: Settings, ivy: Ivy) -> None:
    steps: list[None] = []
    told = "echo '	found org#one;1.0 in public'; echo 'downloading http://x/one-1.0.jar ...'; echo '....'"
    ivy(f"{told}; {FETCHES_BOTH}")
    fetch_jars(settings, step=lambda: steps.append(None))
    assert len(steps) == 2


def test_a_jar_with_other_contents_is_named_and_nothing_is_replaced(settings: Settings, ivy: Ivy) -> None:
    put(jar_folder(settings), {"one-1.0.jar": b"before"})
    ivy("printf first > one-1.0.jar; printf changed > two-2.0.jar")
    with pytest.raises(JarsUnusable) as caught:
        fetch_jars(settings, step=lambda: None)
    assert (caught.value.missing, caught.value.differing) == ((), ("two-2.0.jar",))
    assert (jar_folder(settings) / "one-1.0.jar").read_bytes() == b"before"
    assert not (jar_folder(settings) / "two-2.0.jar").exists()


def test_a_jar_that_could_not_be_had_is_named_with_the_first_cause(settings: Settings, ivy: Ivy) -> None:
    ivy(
        "printf first > one-1.0.jar; echo 'Host repository not found. url=x'; echo 'Host repository not found. "
        "url=y'; exit 1"
    )
    with pytest.raises(JarsUnusable) as caught:
        fetch_jars(settings, step=lambda: None)
    assert caught.value.missing == ("two-2.0.jar",)
    assert "What went wrong: Host repository not found. url=x." in str(caught.value)
    assert "STAGEHOLD_IVY_SETTINGS" in str(caught.value)


def test_a_truncated_jar_in_the_cache_is_found_and_fetched_again(settings: Settings, ivy: Ivy) -> None:
    put(jar_folder(settings), CONTENTS | {"one-1.0.jar": b"fir"})
    assert check_jars(jar_folder(settings)).differing == ("one-1.0.jar",)
    ivy(FETCHES_BOTH)
    fetch_jars(settings, step=lambda: None)
    assert check_jars(jar_folder(settings)).passed


def test_jars_of_another_version_stay_and_are_not_used(settings: Settings) -> None:
    put(jar_folder(settings), CONTENTS | {"one-0.9.jar": b"of another checkout"})
    assert [path.name for path in jar_paths(settings)] == ["one-1.0.jar", "two-2.0.jar"]


def test_spark_is_not_started_without_a_pinned_jar(settings: Settings) -> None:
    put(jar_folder(settings), {"one-1.0.jar": b"first"})
    with pytest.raises(JarsUnusable, match=r"two-2\.0\.jar.*`python -m stagehold\.local\.setup`"):
        jar_paths(settings)
