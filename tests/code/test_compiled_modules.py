"""A process runs what is in the project's files, whatever Python has kept of them compiled."""

from __future__ import annotations

import compileall
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unseen_edits import edit_unseen

from stagehold.code.project import CompiledHere, find_modules_of, load_module
from stagehold.code.stage_code import code_fingerprint

FILES = {
    "top_of.py": "LIMIT = 1\n",
    "packed_of/__init__.py": "LIMIT = 1\n",
    "packed_of/inner.py": "LIMIT = 1\n",
    "spaced_of/inner.py": "LIMIT = 1\n",
    "src/below_of.py": "LIMIT = 1\n",
}
NAMES = ("top_of", "packed_of", "packed_of.inner", "spaced_of.inner", "below_of")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0].endswith("_of")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", NAMES)
def test_what_python_compiled_before_an_edit_is_not_run(project: Path, name: str):
    assert compileall.compile_dir(project, quiet=2)
    for file in FILES:
        edit_unseen(project / file, "1", "2")
    find_modules_of(project)
    assert importlib.import_module(name).LIMIT == 2


def test_folders_that_python_has_looked_into_before_are_looked_into_anew(project: Path):
    sys.path.insert(0, str(project))
    assert importlib.import_module("packed_of").LIMIT == 1
    sys.modules.pop("packed_of")
    edit_unseen(project / "packed_of/__init__.py", "1", "2")
    find_modules_of(project)
    assert importlib.import_module("packed_of").LIMIT == 2


def test_nothing_compiled_is_left_in_the_project(project: Path):
    find_modules_of(project)
    for name in NAMES:
        importlib.import_module(name)
    assert not [*project.rglob("*.pyc")]


def test_packages_of_an_environment_in_the_project_are_imported_as_ever(project: Path):
    installed = project / ".venv/lib/site-packages"
    installed.mkdir(parents=True)
    (installed / "installed_of.py").write_text("LIMIT = 1\n")
    sys.path.insert(0, str(installed))
    find_modules_of(project)
    assert not isinstance(importlib.import_module("installed_of").__loader__, CompiledHere)
    assert isinstance(importlib.import_module("top_of").__loader__, CompiledHere)


def test_a_module_that_is_only_compiled_is_found(project: Path):
    compileall.compile_dir(project, quiet=2, legacy=True)
    (project / "top_of.py").unlink()
    find_modules_of(project)
    assert importlib.import_module("top_of").LIMIT == 1


def test_an_edit_that_no_time_tells_of_is_parsed_and_changes_the_fingerprint(project: Path):
    (project / "jobs_of.py").write_text("def one(ctx, source):\n    return source.limit(1)\n")
    before = code_fingerprint("jobs_of:one", project).value
    module = load_module("jobs_of", project)
    edit_unseen(project / "jobs_of.py", "1", "2")
    assert code_fingerprint("jobs_of:one", project).value not in (None, before)
    assert load_module("jobs_of", project) != module
