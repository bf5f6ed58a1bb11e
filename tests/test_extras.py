"""What is missing is said with the extra that brings it, by whoever needs it first; and what needs it not goes on."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.samples import attempt
from tests.run.here.paper_task import task_of
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.errors import JavaMissing, PackageMissing, Terminal
from stagehold.extras import BROUGHT, Extra, brought_by, is_installed, require
from stagehold.gates.judge import import_great_expectations
from stagehold.gates.suite_files import expectation_types, load_suite, suite_of_python
from stagehold.gates.verdict_pages import site_of, write_docs, write_docs_apart
from stagehold.lake.store import files
from stagehold.lake.store.files import files_at
from stagehold.ledger import Ledger
from stagehold.local import airflow_process
from stagehold.local.demo.demo_run import expected_top_orders
from stagehold.local.project.new_project import write_project
from stagehold.local.setup.__main__ import main as set_up
from stagehold.model.keys.compute_key import result_versions
from stagehold.run.stage.spark_engine import SparkEngine
from stagehold.settings import PROJECT, Settings
from stagehold.spark.server.configuration import spark_home
from stagehold.spark.server.java import pinned_jars
from stagehold.viewer.database import closed_database, database_over

DECLARED = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
PACKAGES = {"pyspark": "pyspark[connect]", "psycopg2": "psycopg2-binary", "great_expectations": "great-expectations"}


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has a package refuse to be imported, as one that is not installed."""

    def hide(package: str) -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)

    files._s3.cache_clear()
    expectation_types.cache_clear()
    yield hide
    files._s3.cache_clear()
    expectation_types.cache_clear()


def entered(context: Any) -> None:
    with ExitStack() as stack:
        stack.enter_context(context)


SITE = site_of("sales", "2026-11-20", {}, {})
NEEDED = {
    "a gate judges": ("great_expectations", "gates", import_great_expectations.__wrapped__),
    "a suite is Python": ("great_expectations", "gates", lambda: suite_of_python("jobs.suites:own", PROJECT)),
    "pages of verdicts": ("great_expectations", "gates", lambda: write_docs(SITE, "unused")),
    "pages from a server": ("great_expectations", "gates", lambda: write_docs_apart(SITE, "unused")),
    "a statement is read": ("duckdb", "inspect", lambda: entered(closed_database())),
    "a checkpoint is asked": ("duckdb", "inspect", lambda: entered(database_over((), print))),
    "the demo compares": ("duckdb", "inspect", lambda: expected_top_orders(Path("unused"))),
    "a bucket is listed": ("boto3", "aws", lambda: files_at("s3://bucket/lake").names()),
    "a file is made once": ("botocore", "aws", lambda: files_at("s3://bucket/lake").create("name", b"")),
    "the ledger is opened": ("psycopg2", "postgres", lambda: Ledger.open("postgresql://me:secret@h/d")),
    "Spark is started": ("pyspark", "server", spark_home),
}


@pytest.mark.parametrize("case", NEEDED)
def test_what_is_missing_is_said_with_the_extra_and_the_command(case: str, without: Callable[[str], None]) -> None:
    package, extra, needing = NEEDED[case]
    without(package)
    with pytest.raises(PackageMissing) as missing:
        needing()
    text = str(missing.value)
    assert f"Run `pip install 'stagehold[{extra}]'`" in text
    assert f"not installed in {sys.prefix}" in text
    assert isinstance(missing.value, Terminal)
    assert "secret" not in text


def test_every_extra_is_tested_and_declared_with_what_we_import_of_it() -> None:
    assert {extra for _, extra, _ in NEEDED.values()} == set(Extra)
    declared = DECLARED["optional-dependencies"]
    assert set(declared) == {*Extra, "all"}
    for extra in Extra:
        package = BROUGHT[extra][0]
        assert any(line.startswith(PACKAGES.get(package, package)) for line in declared[extra])
        assert not any(line.startswith(package.replace("_", "-")) for line in _base() if "client" not in line)


def test_all_is_every_extra() -> None:
    assert DECLARED["optional-dependencies"]["all"] == [f"stagehold[{','.join(Extra)}]"]


def test_spark_and_its_client_have_one_version() -> None:
    """Both have the package pyspark: whoever had one of another version would have a mixture of both."""
    (client,) = (line for line in _base() if line.startswith("pyspark"))
    (whole,) = (line for line in DECLARED["optional-dependencies"]["server"] if line.startswith("pyspark"))
    assert client == f"pyspark-client=={version('pyspark')}"
    assert whole == f"pyspark[connect]=={version('pyspark')}"


def _base() -> list[str]:
    return list(DECLARED["dependencies"])


def test_what_is_missing_beside_an_extra_is_told_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), brought_by(Extra.GATES):
        import no_such_package  # noqa: F401


def test_the_client_of_spark_alone_starts_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not is_installed(Extra.SERVER)
    with pytest.raises(PackageMissing, match=r"stagehold\[server\]'` there, or set STAGEHOLD_SPARK_REMOTE to"):
        require(Extra.SERVER)
    monkeypatch.setenv("STAGEHOLD_CACHE", str(tmp_path / "cache"))
    assert set_up() == 1
    assert "pip install 'stagehold[server]'" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["check --spark", "up", "up --spark-only", "up --foreground"])
def test_a_command_that_needs_spark_here_says_so_and_starts_nothing(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: Callable[[str], None]
) -> None:
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STAGEHOLD_SPARK_REMOTE", raising=False)
    without("pyspark")
    answer = CliRunner().invoke(app, words.split())
    assert answer.exit_code == 1
    assert "pyspark is needed to start Spark on this machine" in answer.output
    assert "Traceback" not in answer.output


@pytest.mark.parametrize("package", ["pyspark", "great_expectations"])
def test_a_run_that_lacks_something_does_not_begin(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: Callable[[str], None], ledger_file: Path
) -> None:
    monkeypatch.delenv("STAGEHOLD_SPARK_REMOTE", raising=False)
    folders = {"HOME": ".stagehold", "PROJECT": ".", "PIPELINES": "include/pipelines", "SUITES": "include/suites"}
    for name, folder in folders.items():
        monkeypatch.setenv(f"STAGEHOLD_{name}", str(tmp_path / folder))
    monkeypatch.setenv("STAGEHOLD_LEDGER", f"sqlite:///{ledger_file}")
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path)
    without(package)
    answer = CliRunner().invoke(app, ["run", "customer_totals", "--interval", "2026-11-20"])
    assert answer.exit_code == 1
    assert f"{package} is needed to" in answer.output
    listed = CliRunner().invoke(app, ["status", "--json"])
    assert json.loads(listed.output)["runs"] == []


def test_no_java_names_the_extra_too() -> None:
    assert "pip install 'stagehold[server]'" in str(JavaMissing(tried=(), supported=("17", "21")))


SUITE = "suite: small\nexpectations:\n  - {type: expect_column_values_to_be_odd, column: id}\n"


def test_a_suite_is_read_where_nobody_judges_it(tmp_path: Path, without: Callable[[str], None]) -> None:
    (tmp_path / "small.yaml").write_text(SUITE)
    without("great_expectations")
    (one,) = load_suite(tmp_path / "small.yaml", tmp_path).expectations
    assert one.type == "expect_column_values_to_be_odd"


def test_check_says_that_it_could_not_look_a_suite_up(without: Callable[[str], None]) -> None:
    without("great_expectations")
    answer = CliRunner().invoke(app, ["check"])
    assert answer.exit_code == 0, answer.output
    warned = [line for line in answer.output.splitlines() if "its expectations are not looked up" in line]
    assert any("shipping_priority.yaml:1: warning: gate shipping_priority: " in line for line in warned)
    assert all("pip install 'stagehold[gates]'" in line for line in warned)


def test_airflow_of_this_machine_starts_without_gates(
    monkeypatch: pytest.MonkeyPatch, without: Callable[[str], None]
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(airflow_process, "_import", asked.extend)
    monkeypatch.setattr(airflow_process, "begin_before_savepoints", lambda: None)
    without("great_expectations")
    airflow_process.prepare("scheduler")
    assert asked


def test_keys_are_the_same_with_spark_whole_and_with_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = result_versions()

    def of_client_alone(package: str) -> str:
        if package != "pyspark-client":
            raise PackageNotFoundError(package)
        return version("pyspark")

    monkeypatch.setattr("importlib.metadata.version", of_client_alone)
    assert result_versions() == whole == {"pyspark": "4.2.0", "delta-spark": "4.4.0"}


def test_the_version_of_delta_that_keys_count_is_that_of_the_jars() -> None:
    (jar,) = (name for name in pinned_jars() if name.startswith("delta-spark_"))
    assert jar.endswith(f"-{result_versions()['delta-spark']}.jar")


def test_a_gated_region_is_refused_before_it_has_a_session(without: Callable[[str], None], tmp_path: Path) -> None:
    task = task_of("server")
    (stage,) = task.pipeline.stages
    gated = task.pipeline.model_copy(update={"stages": (stage.model_copy(update={"gate": "small"}),)})
    task = replace(task, request=replace(task.request, pipeline=gated))
    without("great_expectations")
    engine = SparkEngine(Settings(home=str(tmp_path)), print)
    with pytest.raises(PackageMissing, match="gates"):
        entered(engine.open(task, attempt(), ()))
