"""Tables of commands at every width of a terminal."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from stagehold.cli.common.output import print_table
from stagehold.settings import LIBRARY

GATES = (
    ("stage", "partitions", "severity", "result", "observed", "expectation"),
    [
        ("orders_by_customer", "0-15", "critical", "blocked", "17 of 12,002", "expect_column_values_to_not_be_null(c)"),
        ("top_orders", "0", "warning", "passed", "", "expect_table_row_count_to_equal(value=10)"),
    ],
)
WORDS = st.text(st.characters(codec="ascii", categories=("L", "N", "P")), min_size=1, max_size=40)


class Terminal(StringIO):
    """What is printed on a terminal."""

    def isatty(self) -> bool:
        return True


def on_terminal(width: int, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """What a table looks like on a terminal of so many columns and without colours."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(Terminal()) as printed:
        for name, value in {"COLUMNS": str(width), "TERM": "dumb", "LINES": "50"}.items():
            patch.setenv(name, value)
        print_table(title, columns, rows)
    return printed.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_a_table_fits_the_terminal_and_nothing_is_cut_off(width):
    printed = on_terminal(width, "Gates", *GATES)
    assert all(cell_len(line.rstrip()) <= width for line in printed.splitlines())
    packed = "".join(printed.split())
    assert all("".join(cell.split()) in packed for row in GATES[1] for cell in row)


def test_where_it_does_not_fit_each_row_is_a_block():
    rows = [("s" * 40, "0-15", "e" * 30), ("t", "", "short")]
    printed = on_terminal(60, "Gates", ("stage", "partitions", "expectation"), rows)
    assert [line.rstrip() for line in printed.splitlines()] == [
        "Gates",
        f" stage        {'s' * 40}",
        " partitions   0-15",
        f" expectation  {'e' * 30}",
        "",
        " stage        t",
        " expectation  short",
    ]


def test_in_a_pipe_a_row_is_a_line(capsys):
    print_table("", ("run", "state", "why"), [("r" * 150, "failed", "w" * 20), ("s", "running", "")])
    (found,) = [line for line in capsys.readouterr().out.splitlines() if "failed" in line]
    assert found.split() == ["r" * 150, "failed", "w" * 20]


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=4), st.integers(60, 220))
def test_every_cell_is_printed_whole_in_its_order(rows, width):
    lines = on_terminal(width, "", ("first", "second", "third"), rows).splitlines()
    assert all(cell_len(line.rstrip()) <= width for line in lines)
    assert all(any(cell in line for line in lines) for row in rows for cell in row[:2])


def test_no_other_module_draws_tables():
    package = LIBRARY / "stagehold" / "cli"
    drawing = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "rich.table"
    }
    assert drawing == {"common/output.py"}
