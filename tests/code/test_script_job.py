from __future__ import annotations

from pathlib import Path

import pytest

from stagehold.code.code_problems import code_problems
from stagehold.code.connect_lacks import asked_in_code
from stagehold.code.project import load_module
from stagehold.code.project_archive import archive_of
from stagehold.code.script_job import filled, job_of_script, script_tree, variables_of
from stagehold.code.side_reads import side_reads
from stagehold.code.sql_job import shown_job
from stagehold.code.stage_code import calls_of, code_fingerprint
from stagehold.errors import InvalidInterval
from stagehold.model.context import StageContext

FILE = "jobs/old_job.py"
JOB = job_of_script(FILE)
SCRIPT = '''\
"""Totals of a day."""
from __future__ import annotations
import sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import *
from settings import *
import helpers.money as money
from helpers.text import clean

RATE = 3

def main(argv):
    global spark
    spark = SparkSession.builder.getOrCreate()
    frame = spark.read.parquet(argv[1]).where(col("n") > RATE + LEAST)
    _ = clean(money.net(frame)).write.parquet(argv[2])

if __name__ == "__main__":
    main(sys.argv)
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    helpers = tmp_path / "jobs" / "helpers"
    helpers.mkdir(parents=True)
    (tmp_path / FILE).write_text(SCRIPT)
    (helpers / "money.py").write_text("def net(frame):\n    return frame\n\ndef gross(frame):\n    return 1\n")
    (helpers / "text.py").write_text("def clean(frame):\n    return frame\n")
    (tmp_path / "jobs" / "settings.py").write_text("LEAST = 1\nMOST = 9\n")
    return tmp_path


def key(project: Path) -> str:
    found = code_fingerprint(JOB, project)
    assert found.value is not None, found.reason
    return found.value


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (FILE, "RATE = 3", "RATE = 4"),
        (FILE, "main(sys.argv)", "main(sys.argv[1:])"),  # what runs only as a script
        (FILE, ".write.parquet", ".write.save"),  # of a name that nobody uses
        (FILE, "from pyspark.sql.functions import *", "from pyspark.sql.types import *"),
        ("jobs/helpers/money.py", "return frame", "return 0"),
        ("jobs/helpers/text.py", "return frame", "return 0"),
        ("jobs/settings.py", "LEAST = 1", "LEAST = 2"),  # by a star
    ],
)
def test_all_of_a_script_counts_and_what_it_uses_of_modules_beside_it(project, file, old, new):
    before, path = key(project), project / file
    path.write_text(path.read_text().replace(old, new))
    assert key(project) != before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (FILE, "RATE = 3", "RATE  =  3  # per cent"),
        (FILE, '"""Totals of a day."""', '"""Totals."""'),
        ("jobs/helpers/money.py", "return 1", "return 2"),  # of a function that it does not use
        ("jobs/settings.py", "MOST = 9", "MOST = 8"),
    ],
)
def test_comments_and_what_it_does_not_use_are_no_other_code(project, file, old, new):
    before, path = key(project), project / file
    path.write_text(path.read_text().replace(old, new))
    assert key(project) == before


def test_its_workers_get_the_modules_beside_it_by_the_names_that_it_imports_them_by(project):
    assert {"jobs/helpers/money.py", "jobs/helpers/text.py"} <= archive_of([JOB], project).sources.keys()
    imports = [line for line in _unparsed(project) if "helpers" in line]
    assert imports == ["import jobs.helpers.money as money", "from jobs.helpers.text import clean"]


def _unparsed(project: Path) -> list[str]:
    import ast

    return ast.unparse(script_tree(project / FILE, FILE)).splitlines()


@pytest.mark.parametrize(
    ("written", "run"),
    [
        ("import helpers", ["import jobs.helpers as helpers"]),
        ("import helpers.money", ["import jobs.helpers as helpers", "import jobs.helpers.money"]),
        ("import helpers as h, json", ["import jobs.helpers as h", "import json"]),
        ("from helpers import text", ["from jobs.helpers import text"]),
        ("import pyspark.sql.types", ["import pyspark.sql.types"]),
        ("from . import x", ["from . import x"]),  # which no script can
    ],
)
def test_imports_of_what_lies_beside_it(project, written, run):
    (project / FILE).write_text(written)
    assert _unparsed(project) == run


def test_a_module_beside_it_does_not_stand_in_for_one_of_pythons(project):
    (project / "jobs" / "json.py").write_text("")
    (project / FILE).write_text("import json")
    assert _unparsed(project) == ["import json"]


def test_what_it_says_of_itself_is_what_airflow_shows_and_it_is_called_by_its_file(project):
    import ast

    module = load_module(FILE, project)
    assert module is not None
    function = module.tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    assert ast.get_docstring(function) == "Totals of a day."
    assert (function.lineno, function.end_lineno) == (1, SCRIPT.count("\n"))
    assert [shown_job(JOB), shown_job(job_of_script("top.py"))] == [FILE, "top.py"]


def test_calls_and_reads_are_found_with_the_lines_of_the_file(project):
    (project / FILE).write_text(
        "import os, random\nfrom pyspark.sql import SparkSession\n\n"
        "rate = os.environ['RATE']\nx = random.random()\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "spark.read.csv('config/rates.csv')\nspark.read.parquet(os.sep + rate)\n"
    )
    assert "jobs/old_job.py:5" in [call.place for call in calls_of(JOB, project) if call.name == "random"]
    found = [(str(read.kind), read.name, read.place) for read in side_reads(JOB, project)]
    assert found == [("env", "RATE", "jobs/old_job.py:4"), ("file", "config/rates.csv", "jobs/old_job.py:7")]


def test_a_module_that_is_found_only_from_the_scripts_folder_is_told_with_its_name_in_the_project(project):
    (project / "jobs" / "helpers" / "text.py").write_text(
        "from helpers.money import net\nfrom settings import LEAST\n\ndef clean(frame):\n    return frame\n"
    )
    told = [problem.partition("; ")[2] for problem in code_problems(JOB, project)]
    assert told == [
        "jobs/helpers is there, which is called jobs.helpers in the project; write that, or move what is in jobs/ into "
        "the project's folder",
        "jobs/settings.py is there, which is called jobs.settings in the project; write that, or move what is in jobs/ "
        "into the project's folder",
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("sys.path.append('/lib')", "uses sys.path; the project's modules, and those beside a script, are found"),
        ("HERE = __file__", "uses __file__; relative paths begin at the project's folder"),
    ],
)
def test_what_keeps_a_script_from_being_compared_is_told_with_its_line(project, line, why):
    (project / FILE).write_text(f"import sys\n\nprint(sys.argv)\n{line}\n")
    assert str(code_fingerprint(JOB, project).reason).startswith(f"jobs/old_job.py line 4 {why}")


def test_an_import_that_is_sure_to_fail_is_told_with_its_line(project):
    (project / FILE).write_text("import sys\nimport not_installed_anywhere\n")
    assert code_problems(JOB, project) == ("jobs/old_job.py:2: imports not_installed_anywhere, which is not installed",)


def test_a_file_elsewhere_is_none_of_the_projects(project):
    for script in ("../old_job.py", str(project / FILE), "jobs/none.py"):
        assert load_module(job_of_script(script).partition(":")[0], project) is None


def context(interval: str = "2026-11-20", **facts: object) -> StageContext:
    from datetime import UTC, datetime

    start = datetime(2026, 11, 20, tzinfo=UTC) if interval.startswith("2026") else None
    return StageContext("p", "s", interval, start, (0,), 0, params=facts)


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("--day=${interval.start:%d.%m.%Y}", "--day=20.11.2026"),
        ("${interval}", "2026-11-20"),
        ("${inputs.orders}/*.parquet", "/lake/orders/*.parquet"),
        ("${params.least}${params.name}", "3${output}"),  # what was put in is not looked at again
        ("${params.many}", '["a", 1]'),
        ("$HOME {x} 100%", "$HOME {x} 100%"),
    ],
)
def test_arguments_are_filled(written, given):
    own = context(least=3, name="${output}", many=["a", 1])
    assert filled(written, own, {"inputs.orders": "/lake/orders", "output": "/lake/x"}) == given


def test_an_interval_without_a_date_is_told_by_the_argument(project):
    with pytest.raises(InvalidInterval, match=r"\$\{interval.start:%d\}.*allowed: a date"):
        filled("${interval.start:%d}", context("spring"), {})
    assert list(variables_of("${output}/${inputs.a}-${interval}-${interval.start:%Y}")) == ["output", "inputs.a"]


def test_what_connect_lacks_is_found_with_its_lines_before_anything_runs(project):
    (project / FILE).write_text(
        "from pyspark import SparkContext\nfrom pyspark.sql import SparkSession\nfrom helpers.text import clean\n"
        "sc = SparkContext.getOrCreate()\nspark = SparkSession.builder.getOrCreate()\n"
        "rows = (clean(spark.range(3))\n    .rdd\n    .map(str))\nspark._jvm.java\n"
    )
    (project / "jobs" / "helpers" / "text.py").write_text(
        "def clean(frame):\n    return frame.sparkSession.newSession()\n"
    )
    found = [(file, line, text.partition(":")[0]) for file, line, text in asked_in_code(JOB, project)]
    assert found == [
        ("jobs/helpers/text.py", 2, "newSession"),
        (FILE, 4, "SparkContext"),
        (FILE, 7, "rdd"),
        (FILE, 9, "_jvm"),
    ]


def test_what_a_session_answers_of_classic_spark_is_not_told(project):
    (project / FILE).write_text(
        "from pyspark import SparkFiles\nfrom pyspark.sql import SparkSession, SQLContext\n"
        "spark = SparkSession.builder.getOrCreate()\nspark.sparkContext.setLogLevel('ERROR')\n"
        "sc = spark.sparkContext\nsc.setLogLevel('ERROR')\nrates = sc.broadcast({})\n"
        "log = sc._jvm.org.apache.log4j.LogManager.getLogger(sc.applicationId)\n"
        "sc.textFile('x')\nSQLContext(sc)\nsc._jvm.java\nSparkFiles.get('x')\n"
    )
    found = [(line, text.partition(":")[0]) for _, line, text in asked_in_code(JOB, project)]
    assert found == [(9, "sparkContext"), (10, "sparkContext"), (11, "_jvm"), (11, "sparkContext"), (12, "SparkFiles")]


def test_what_is_asked_of_a_context_that_a_job_makes_is_told_line_by_line(project):
    (project / FILE).write_text(
        "import pyspark\nfrom pyspark import SparkContext, SparkConf\nsc = SparkContext(conf=SparkConf())\n"
        "sc.setLogLevel('ERROR')\nlines = sc.textFile('x')\n"
        "pyspark.SparkContext.getOrCreate()\npyspark.SparkContext()\n"
    )
    assert [line for _, line, _ in asked_in_code(JOB, project)] == [3, 5, 6, 7]
