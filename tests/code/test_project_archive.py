"""What is packed of a project, and that a Python which has nothing but the archive imports it."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from stagehold.code.project_archive import ProjectArchive, archive_of, whole_archive

JOBS = {
    "jobs/__init__.py": "",
    "jobs/orders.py": '"""Orders."""\nfrom __future__ import annotations\nfrom jobs.rules import check\nfrom shared '
    "import helper\n"
    "def orders(ctx, source):\n    return check(helper.clean(source))\n",
    "jobs/rules.py": "import os\nCONNECT = os.environ['SPARK_CONNECT_MODE_ENABLED']\ndef check(frame):\n    raise "
    "ValueError(frame)\n",
    "jobs/unused.py": "1 / 0\n",
    "shared/helper.py": "def clean(frame):\n    def inner():\n        import late\n        return late.VALUE\n    "
    "return frame\n",
    "late.py": "VALUE = 1\n",
    "broken.py": "def (",
    "dynamic/job.py": "def run(ctx, source):\n    return eval('source')\n",
    "dynamic/plugin/found.py": "",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in JOBS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def own(archive: ProjectArchive) -> set[str]:
    return {name for name in archive.sources if not name.startswith("stagehold/")}


def test_what_the_job_reaches_is_packed_and_nothing_else(project):
    assert own(archive_of(["jobs.orders:orders"], project)) == {
        "jobs/__init__.py",
        "jobs/orders.py",
        "jobs/rules.py",
        "shared/helper.py",
        "late.py",
    }


def test_the_whole_package_is_packed_where_the_code_cannot_be_followed(project):
    assert own(archive_of(["dynamic.job:run"], project)) == {"dynamic/job.py", "dynamic/plugin/found.py"}


def test_a_whole_project_is_packed_without_what_is_not_its_own(project):
    for other in ("venv/pyvenv.cfg", "venv/lib/x.py", ".hidden/x.py", "lib/site-packages/x.py", "node_modules/x.py"):
        (project / other).parent.mkdir(parents=True, exist_ok=True)
        (project / other).write_text("")
    assert own(whole_archive(project)) == set(JOBS)


def test_equal_code_has_one_name_and_changed_code_another(project):
    first = archive_of(["jobs.orders:orders"], project)
    assert archive_of(["jobs.orders:orders"], project).name == first.name
    (project / "jobs" / "unused.py").write_text("2 / 0\n")
    assert archive_of(["jobs.orders:orders"], project).name == first.name
    (project / "shared" / "helper.py").write_text("def clean(frame):\n    return None\n")
    assert archive_of(["jobs.orders:orders"], project).name != first.name


def test_a_file_that_is_no_python_is_packed_as_it_is():
    with ZipFile(io.BytesIO(ProjectArchive({"broken.py": b"def ("}).content())) as archive:
        assert archive.namelist() == ["broken.py"]


SCRIPT = """
import sys, traceback
sys.path.insert(0, sys.argv[1])
from jobs.orders import orders
import stagehold, stagehold.model.context, jobs.rules
print(jobs.rules.CONNECT, "project-" in stagehold.__file__, orders.__doc__, sys.modules["jobs.orders"].__doc__)
try:
    orders(None, "x")
except ValueError:
    traceback.print_exc(file=sys.stdout)
"""


def test_a_python_that_has_only_the_archive_imports_it_and_its_tracebacks_name_the_projects_files(
    project, tmp_path_factory
):
    archive = archive_of(["jobs.orders:orders"], project)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / archive.name).write_bytes(archive.content())
    command = [sys.executable, "-I", "-c", SCRIPT, archive.name]
    ended = subprocess.run(command, cwd=elsewhere, env={}, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout.splitlines()[0] == "1 True None Orders.", ended.stderr
    assert '  File "jobs/rules.py", line 4, in check\n    raise ValueError(frame)' in ended.stdout


PANDAS = """
from pyspark.sql import functions as F

KEY = F.col("number")


def plain(numbers):
    return numbers + 1


@F.pandas_udf("long")
def more(numbers):
    return plain(numbers)


@F.udf("string")
def text(number):
    return str(number)
"""


def test_a_module_with_pandas_functions_is_imported_where_there_is_no_session(tmp_path):
    archive = ProjectArchive({**archive_of([], tmp_path).sources, "pandas_jobs.py": PANDAS.encode()})
    (tmp_path / archive.name).write_bytes(archive.content())
    script = (
        f"import sys; sys.path.insert(1, {archive.name!r}); import pandas_jobs; print(pandas_jobs.plain(1), "
        "pandas_jobs.more.func)"
    )
    command = [sys.executable, "-I", "-c", script]
    ended = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout.startswith("2 <function more"), ended.stderr
