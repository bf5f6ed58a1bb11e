"""Fetching, with a small program in Java's place: what it puts there, checks and says.
The real fetch is what `make setup` did.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from stagehold.errors import JarsUnusable
from stagehold.local.setup.jars import check_jars, fetch_jars
from stagehold.settings import Settings
from stagehold.spark.server.java import jar_folder, jar_paths

CONTENTS = {"one-1.0.jar": b"first", "two-2.0.jar": b"second"}
PINNED = {name: hashlib.sha256(data).hexdigest() for name, data in CONTENTS.items()}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache=str(tmp_path / "cache"))


def fetch(settings: Settings, script: str, step: Callable[[], None] = lambda: None) -> None:
    """Fetch the JARs by this shell script, in the folder that it is to fill, in place of Ivy."""
    fetch_jars(settings, step, PINNED, lambda _settings, draft: ["sh", "-c", f"cd '{draft}'; {script}"])


def put(folder: Path, contents: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)


FETCHES_BOTH = "printf first > one-1.0.jar; printf second > two-2.0.jar"


def test_jars_are_in_the_cache_once_they_are_fetched(settings: Settings) -> None:
    fetch(settings, FETCHES_BOTH)
    assert [path.read_bytes() for path in jar_paths(settings, PINNED)] == [b"first", b"second"]
    assert [path.name for path in Path(settings.cache).iterdir()] == ["jars"], "nothing is left beside them"


def test_every_step_of_ivy_is_reported(settings: Settings) -> None:
    steps: list[None] = []
    told = "echo '	found org#one;1.0 in public'; echo 'downloading http://x/one-1.0.jar ...'; echo '....'"
    fetch(settings, f"{told}; {FETCHES_BOTH}", lambda: steps.append(None))
    assert len(steps) == 2


def test_a_jar_with_other_contents_is_named_and_nothing_is_replaced(settings: Settings) -> None:
    put(jar_folder(settings), {"one-1.0.jar": b"before"})
    with pytest.raises(JarsUnusable) as caught:
        fetch(settings, "printf first > one-1.0.jar; printf changed > two-2.0.jar")
    assert (caught.value.missing, caught.value.differing) == ((), ("two-2.0.jar",))
    assert (jar_folder(settings) / "one-1.0.jar").read_bytes() == b"before"
    assert not (jar_folder(settings) / "two-2.0.jar").exists()


def test_a_jar_that_could_not_be_had_is_named_with_the_first_cause(settings: Settings) -> None:
    trouble = "echo 'Host repository not found. url=x'; echo 'Host repository not found. url=y'"
    with pytest.raises(JarsUnusable) as caught:
        fetch(settings, f"printf first > one-1.0.jar; {trouble}; exit 1")
    assert caught.value.missing == ("two-2.0.jar",)
    assert "What went wrong: Host repository not found. url=x." in str(caught.value)
    assert "STAGEHOLD_IVY_SETTINGS" in str(caught.value)


def test_a_truncated_jar_in_the_cache_is_found_and_fetched_again(settings: Settings) -> None:
    put(jar_folder(settings), CONTENTS | {"one-1.0.jar": b"fir"})
    assert check_jars(jar_folder(settings), PINNED) == ((), ("one-1.0.jar",))
    fetch(settings, FETCHES_BOTH)
    assert check_jars(jar_folder(settings), PINNED) == ((), ())


def test_jars_of_another_version_stay_and_are_not_used(settings: Settings) -> None:
    put(jar_folder(settings), CONTENTS | {"one-0.9.jar": b"of another checkout"})
    assert [path.name for path in jar_paths(settings, PINNED)] == ["one-1.0.jar", "two-2.0.jar"]


def test_spark_is_not_started_without_a_pinned_jar(settings: Settings) -> None:
    put(jar_folder(settings), {"one-1.0.jar": b"first"})
    with pytest.raises(JarsUnusable, match=r"two-2\.0\.jar.*`python -m stagehold\.local\.setup`"):
        jar_paths(settings, PINNED)
