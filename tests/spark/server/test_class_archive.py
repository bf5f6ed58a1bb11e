"""The archive of classes: who makes it, who may use it, and what is done about a bad one."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from stagehold.errors import StageholdError
from stagehold.local.setup.training import lacking_archive
from stagehold.settings import Settings
from stagehold.spark.server.class_archive import ArchiveMaking, ArchivePlace, begin_making, whole_archive

CLASSES = "org.apache.spark.sql.connect.planner.SparkConnectPlanner"


@pytest.fixture
def place(tmp_path: Path) -> ArchivePlace:
    return ArchivePlace(tmp_path / "classes", "key", Path("/java/bin/java"), has_base=True)


def make(place: ArchivePlace, content: bytes = b"classes") -> Path:
    making = begin_making(place)
    assert making
    making.draft.write_bytes(content)
    making.complete()
    archive = whole_archive(place)
    assert archive
    return archive


def test_it_appears_when_its_java_has_ended(place: ArchivePlace) -> None:
    making = begin_making(place)
    assert making
    making.draft.write_bytes(b"half")
    assert whole_archive(place) is None
    making.complete()
    assert whole_archive(place)
    assert not making.draft.exists()


def test_of_two_makers_at_once_one_makes_it(place: ArchivePlace) -> None:
    makings: list[ArchiveMaking | None] = []
    barrier = threading.Barrier(8)

    def begin() -> None:
        barrier.wait()
        makings.append(begin_making(place))

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(making is not None for making in makings) == 1


def test_what_a_killed_maker_left_is_no_archive_and_the_next_makes_one(place: ArchivePlace) -> None:
    killed = begin_making(place)
    assert killed
    killed.draft.write_bytes(b"half")
    killed.lock.close()
    assert whole_archive(place) is None
    make(place)


@pytest.mark.parametrize("damage", [b"", b"class", b"clAsses", b"classes and more"])
def test_a_damaged_one_is_put_aside_with_a_line_and_made_again(
    place: ArchivePlace, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    archive = make(place)
    archive.write_bytes(damage)
    assert whole_archive(place) is None
    assert [record.message for record in caplog.records] == [f"{archive} is damaged, and is not used"]
    assert make(place) == archive


def test_an_archive_of_another_java_or_class_path_is_not_used(place: ArchivePlace) -> None:
    make(place)
    assert whole_archive(replace(place, key="other")) is None


def test_old_ones_go_when_one_is_made_and_use_keeps_one_young(place: ArchivePlace) -> None:
    other, used = (replace(place, key=key) for key in ("other", "used"))
    old, kept = make(other), make(used)
    for archive in (old, kept):
        os.utime(archive, (time.time() - 30 * 24 * 3600,) * 2)
    assert whole_archive(used)
    make(place)
    assert whole_archive(used)
    assert not old.exists()


def test_a_java_without_an_archive_of_its_own_classes_that_cannot_make_one_makes_none(
    place: ArchivePlace, caplog: pytest.LogCaptureFixture
) -> None:
    assert begin_making(replace(place, has_base=False)) is None
    assert "no archive of classes is made" in caplog.text


@pytest.mark.spark
def test_a_server_takes_its_classes_from_the_archive(own_settings: Settings, tmp_path: Path) -> None:
    """As Java's own log tells."""
    from stagehold.spark.server.server import spark_server

    if place := lacking_archive(own_settings):
        raise StageholdError(f"`make setup` makes the archive {place.key} in {place.folder}")
    log = tmp_path / "classes.log"
    with spark_server(replace(own_settings, spark_java_options=f"-Xlog:class+load:file={log}")):
        pass
    loaded = [line for line in log.read_text().splitlines() if " source: " in line]
    (planner,) = (line for line in loaded if f" {CLASSES} " in line)
    assert "shared objects file (top)" in planner
    shared = sum("shared objects file" in line for line in loaded)
    assert shared > 2 / 3 * len(loaded)  # the others are made while Java runs, or are of JARs that are signed


@pytest.mark.spark
def test_a_damaged_archive_costs_a_server_nothing_but_time(own_settings: Settings, tmp_path: Path) -> None:
    """Java alone would die of it."""
    from stagehold.spark.server.class_archive import archive_place
    from stagehold.spark.server.configuration import class_path
    from stagehold.spark.server.java import java_home
    from stagehold.spark.server.server import running_server, spark_server

    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "jars").symlink_to(Path(own_settings.cache) / "jars")
    settings = replace(own_settings, cache=str(cache))
    place = archive_place(settings, java_home(settings), class_path(settings))
    whole = archive_place(own_settings, java_home(own_settings), class_path(own_settings))
    assert place
    assert whole
    (archive,) = whole.archives()
    place.folder.mkdir()
    torn = place.folder / archive.name.replace(whole.key, place.key)
    torn.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with spark_server(settings):
        assert running_server(settings)
    log = (settings.home_path / "logs" / "spark-keeper.log").read_text()
    assert f"{torn} is damaged" in log
