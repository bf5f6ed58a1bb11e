"""Files of pipelines: which of them is found by a name, and when one is read again."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spec.samples import VALID, Project, edited

from stagehold.errors import InvalidSpec, UnknownName
from stagehold.settings import Settings
from stagehold.spec.loading import loader
from stagehold.spec.loading.loader import find_pipeline, load_each_pipeline
from stagehold.spec.pipeline import Pipeline


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def write(project: Project) -> Callable[[str, str], Settings]:
    folder = project.root / "pipelines"
    folder.mkdir()

    def write(file: str, text: str) -> Settings:
        (folder / file).write_text(text)
        return Settings(pipelines=str(folder), project=str(project.root), suites=str(project.suites))

    return write


def test_pipelines_are_loaded_by_file_name_and_found_by_their_own(write: Callable[[str, str], Settings]) -> None:
    write("b.yaml", edited("pipeline: revenue => pipeline: costs"))
    settings = write("a.yaml", VALID)
    assert [result.name for result in load_each_pipeline(settings) if isinstance(result, Pipeline)] == [
        "revenue",
        "costs",
    ]
    assert find_pipeline("costs", settings).name == "costs"
    with pytest.raises(UnknownName, match=r"no pipeline 'revenues'. Known: costs, revenue"):
        find_pipeline("revenues", settings)


def test_a_broken_file_does_not_hide_the_others(write: Callable[[str, str], Settings]) -> None:
    write("a.yaml", "pipeline: [")
    settings = write("b.yaml", VALID)
    assert find_pipeline("revenue", settings).name == "revenue"
    broken, _ = load_each_pipeline(settings)
    assert re.search(r"a\.yaml has 1 problem", str(broken))


def test_two_files_cannot_declare_one_pipeline(write: Callable[[str, str], Settings]) -> None:
    write("a.yaml", VALID)
    settings = write("b.yaml", "# again\n" + VALID)
    _, second = load_each_pipeline(settings)
    assert re.search(r"b\.yaml:2: pipeline: got 'revenue', which .*a\.yaml has", str(second))


def test_of_two_files_that_declare_a_pipeline_the_one_that_is_called_so_has_it(
    write: Callable[[str, str], Settings],
) -> None:
    write("a.yaml", VALID)
    settings = write("revenue.yaml", "# again\n" + VALID)
    first, second = load_each_pipeline(settings)
    assert re.search(r"a\.yaml:1: pipeline: got 'revenue', which .*revenue\.yaml has", str(first))
    assert second == find_pipeline("revenue", settings)
    assert find_pipeline("revenue", settings).file.endswith("revenue.yaml")


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read, in order."""
    names: list[str] = []
    read = loader.read_document
    monkeypatch.setattr(loader, "read_document", lambda path: names.append(path.name) or read(path))
    return names


def settle(project: Project) -> None:
    """As if all files had been there for a while."""
    for path in project.root.rglob("*"):
        status = path.stat()
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - 10**10))


def test_a_file_is_read_once_however_often_its_pipeline_is_asked_for(
    write: Callable[[str, str], Settings], project: Project, files_read: list[str]
) -> None:
    write("costs.yaml", edited("pipeline: revenue => pipeline: costs"))
    settings = write("revenue.yaml", VALID)
    settle(project)
    first = load_each_pipeline(settings)
    assert files_read == ["costs.yaml", "revenue.yaml"]
    assert load_each_pipeline(settings) == first
    assert find_pipeline("revenue", settings) is first[1]
    assert files_read == ["costs.yaml", "revenue.yaml"]


def test_one_pipeline_is_found_without_reading_the_others(
    write: Callable[[str, str], Settings], project: Project, files_read: list[str]
) -> None:
    for number in range(20):
        write(f"costs_{number}.yaml", edited(f"pipeline: revenue => pipeline: costs_{number}"))
    settings = write("revenue.yaml", VALID)
    settle(project)
    assert find_pipeline("revenue", settings).name == "revenue"
    assert set(files_read) == {"revenue.yaml"}


@pytest.mark.parametrize("changed", ["pipelines/revenue.yaml", "work/jobs.py", "suites/joined.yaml"])
def test_a_file_is_read_again_when_it_or_what_it_names_has_changed(
    write: Callable[[str, str], Settings], project: Project, files_read: list[str], changed: str
) -> None:
    settings = write("revenue.yaml", VALID)
    settle(project)
    find_pipeline("revenue", settings)
    read = len(files_read)
    path = project.root / changed
    path.write_text(path.read_text() + "\n")
    find_pipeline("revenue", settings)
    assert len(files_read) > read


def test_a_file_is_read_again_when_its_sql_has_changed(
    write: Callable[[str, str], Settings], project: Project, files_read: list[str]
) -> None:
    query = project.root / "sql" / "top.sql"
    query.parent.mkdir()
    query.write_text("select * from cleaned")
    settings = write("revenue.yaml", edited("job: work.jobs:top => sql: sql/top.sql"))
    settle(project)
    assert find_pipeline("revenue", settings) is find_pipeline("revenue", settings)
    read = len(files_read)
    query.write_text("select * from cleaned limit 10")
    find_pipeline("revenue", settings)
    assert len(files_read) > read


def test_what_a_file_named_and_is_gone_is_told(write: Callable[[str, str], Settings], project: Project) -> None:
    settings = write("revenue.yaml", VALID)
    settle(project)
    find_pipeline("revenue", settings)
    (project.suites / "joined.yaml").unlink()
    with pytest.raises(InvalidSpec, match=r"'joined'; allowed: a file joined\.yaml"):
        find_pipeline("revenue", settings)


def test_a_file_that_was_written_just_now_is_not_kept(
    write: Callable[[str, str], Settings], files_read: list[str]
) -> None:
    """A second change could leave it with the same time and size."""
    settings = write("revenue.yaml", VALID)
    load_each_pipeline(settings)
    load_each_pipeline(settings)
    assert files_read == ["revenue.yaml", "revenue.yaml"]


def test_a_name_is_no_path_to_another_folder(write: Callable[[str, str], Settings], project: Project) -> None:
    settings = write("costs.yaml", edited("pipeline: revenue => pipeline: costs"))
    (project.root / "secret.yaml").write_text(VALID)
    with pytest.raises(UnknownName):
        find_pipeline("../secret", settings)
