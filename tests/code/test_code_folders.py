"""Modules of a project are found in its folder and in its `src`, by whoever looks, as Python would import them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from stagehold.code.code_problems import code_problems
from stagehold.code.project import code_folders, find_modules_of, module_file
from stagehold.code.project_archive import archive_of, whole_archive
from stagehold.code.stage_code import code_fingerprint
from stagehold.settings import Settings
from stagehold.spark.processes import python_environment

FILES = {
    "src/shop/__init__.py": "",
    "src/shop/etl.py": "from shop.rules import net\nfrom stagehold import stage\n\n\n@stage\ndef clean(ctx, source):\n"
    "    return net(source)\n",
    "src/shop/rules.py": "def net(frame):\n    raise ValueError(frame)\n",
    "src/shop/dynamic.py": "def run(ctx, source):\n    return eval('source')\n",
    "src/lone.py": "",
    "both/own.py": "",
    "src/both/other.py": "",
    "whole/__init__.py": "",
    "src/whole/hidden.py": "",
    "src/plain/__init__.py": "",
    "plain/data.txt": "",
    "top.py": "WHERE = 'project'\n",
    "src/top.py": "WHERE = 'src'\n",
    "src/main.py": "import lone\nimport shop.rules\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


FOUND = {
    "shop": "src/shop/__init__.py",
    "shop.etl": "src/shop/etl.py",
    "src.shop.etl": "src/shop/etl.py",
    "lone": "src/lone.py",
    "top": "top.py",
    "both.own": "both/own.py",
    "both.other": "src/both/other.py",
    "whole.hidden": None,
    "plain": "src/plain/__init__.py",
    "gone": None,
}


@pytest.mark.parametrize(("name", "file"), FOUND.items())
def test_a_module_is_the_file_that_python_imports(project: Path, name: str, file: str | None):
    assert module_file(name, project) == (file and project / file)
    script = f"import sys; sys.path[:0] = sys.argv[1:]; import {name}; print(sys.modules[{name!r}].__file__)"
    command = [sys.executable, "-I", "-c", script, *map(str, code_folders(project))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout.strip() == (str(project / file) if file else ""), ended.stderr


def test_a_project_without_src_has_one_folder_of_code(tmp_path: Path):
    assert code_folders(tmp_path) == (tmp_path,)


def test_a_helper_in_src_counts_in_the_key_of_a_stage(project: Path):
    before = code_fingerprint("shop.etl:clean", project)
    assert before.files == ("src/shop/__init__.py", "src/shop/etl.py", "src/shop/rules.py")
    (project / "src/shop/rules.py").write_text("def net(frame):\n    return frame\n")
    assert None is not code_fingerprint("shop.etl:clean", project).value != before.value


def test_code_that_moves_to_src_is_the_same_code(project: Path):
    before = code_fingerprint("shop.etl:clean", project).value
    (project / "src/shop").rename(project / "shop")
    assert code_fingerprint("shop.etl:clean", project).value == before is not None


def test_a_missing_module_of_a_package_in_src_is_told(project: Path):
    (project / "src/shop/etl.py").write_text("from shop.rulse import net\n\n\ndef clean(ctx, source): ...\n")
    assert code_problems("shop.etl:clean", project)[0] == (
        "src/shop/etl.py:1: imports shop.rulse, and there is no shop/rulse.py"
    )


def test_a_script_in_src_calls_what_lies_beside_it_as_the_packages_do(project: Path):
    script = "src/main.py:script"
    assert code_fingerprint(script, project).files == (
        "src/lone.py",
        "src/main.py",
        "src/shop/__init__.py",
        "src/shop/rules.py",
    )
    assert code_problems(script, project) == ()


IN_A_WORKER = """
import sys, traceback
sys.path.insert(0, sys.argv[1])
from shop.etl import net
try:
    net("x")
except ValueError:
    traceback.print_exc(file=sys.stdout)
"""


@pytest.mark.parametrize("whole", [False, True])
def test_a_worker_imports_what_is_in_src_and_names_its_file(project: Path, tmp_path_factory, whole: bool):
    archive = whole_archive(project) if whole else archive_of(["shop.etl:clean"], project)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / archive.name).write_bytes(archive.content())
    command = [sys.executable, "-I", "-c", IN_A_WORKER, archive.name]
    ended = subprocess.run(command, cwd=elsewhere, env={}, capture_output=True, text=True, timeout=60, check=False)
    assert '  File "src/shop/rules.py", line 2, in net\n    raise ValueError(frame)' in ended.stdout, ended.stderr
    with ZipFile(elsewhere / archive.name) as packed:
        assert {"shop/etl.py", "src/shop/etl.py"} <= {*packed.namelist()}
        assert not whole or packed.read("top.py") == b"WHERE = 'project'\n"


def test_all_of_a_package_in_src_is_packed_where_its_code_cannot_be_followed(project: Path):
    packed = archive_of(["shop.dynamic:run"], project).sources
    assert {f"src/shop/{name}.py" for name in ("__init__", "etl", "rules", "dynamic")} <= packed.keys()


def test_processes_of_ours_find_both_folders_the_projects_own_first(project: Path, monkeypatch: pytest.MonkeyPatch):
    paths = python_environment(Settings(project=str(project)))["PYTHONPATH"].split(":")
    assert paths.index(str(project)) + 1 == paths.index(str(project / "src"))
    monkeypatch.setattr(sys, "path", ["elsewhere"])
    find_modules_of(project)
    find_modules_of(project)
    assert sys.path == [str(project), str(project / "src"), "elsewhere"]
