from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from stagehold.settings import PROJECT

PROMISED = {"demo", "test", "test-all", "test-fast", "lint", "up", "down", "status", "clean", "bench", "chaos", "fuzz"}


def make(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", "-C", str(PROJECT), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_make_alone_lists_every_promised_target_with_one_line_each() -> None:
    lines = make().stdout.splitlines()
    assert make("help").stdout.splitlines() == lines
    assert {line.split()[1] for line in lines} >= PROMISED
    assert all(len(line.split()) > 2 for line in lines), "each says what it does"


def test_every_target_is_declared_as_a_word_not_a_file() -> None:
    text = (PROJECT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", text, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony
    assert targets <= set(phony[1].split())


def test_every_marked_test_is_run_by_exactly_one_target() -> None:
    text = (PROJECT / "Makefile").read_text()
    expressions = re.findall(r"^(?:FAST|SPARK|AIRFLOW|E2E) := (.*)$", text, re.MULTILINE)
    assert len(expressions) == 4
    markers = ("spark", "slow", "airflow", "e2e", "browser")
    for chosen in range(2 ** len(markers)):
        values = {marker: bool(chosen >> position & 1) for position, marker in enumerate(markers)}
        assert sum(bool(eval(expression, {}, values)) for expression in expressions) == 1, values


def test_a_python_that_will_not_do_is_refused_with_what_to_do(tmp_path: Path) -> None:
    answer = make("setup", f"VENV={tmp_path / 'environment'}", f"PYTHON={tmp_path / 'python'}", "UV=")
    assert answer.returncode != 0
    assert "it needs 3.11, 3.12 or 3.13" in answer.stderr
    assert "make setup PYTHON=" in answer.stderr
    assert not (tmp_path / "environment").exists()


def test_clean_removes_the_state_folder_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "lake").mkdir(parents=True)
    (tmp_path / "beside").mkdir()
    monkeypatch.setenv("STAGEHOLD_HOME", str(home))
    answer = make("clean", f"VENV={tmp_path / 'none'}")
    assert (answer.returncode, [path.name for path in tmp_path.iterdir()]) == (0, ["beside"]), answer.stderr


def test_lint_says_so_and_goes_on_where_there_is_no_node_for_the_types_of_the_pages(tmp_path: Path) -> None:
    command = ["/bin/sh", str(PROJECT / "tools" / "check-page-types"), str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, env={"PATH": str(tmp_path)}, check=False)
    said = "There is no node on this machine: the types of the pages were not checked\n"
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, said, "")
