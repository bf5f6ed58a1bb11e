"""What is sure to fail in a stage's code, found by reading it; nothing is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagehold.code.code_problems import code_problems

GOOD = {
    "jobs/__init__.py": "",
    "jobs/sales.py": "import json\nfrom stagehold import stage\nfrom jobs import dates\nfrom jobs.money import "
    "net\n\n\n"
    "@stage\ndef orders(ctx, source):\n    from jobs.late import when\n\n    return net(dates.start(source)), when\n",
    "jobs/dates.py": "def start(x):\n    return x\n",
    "jobs/money.py": "from .rates import *\nnet = print\n",
    "jobs/rates.py": "RATE = 1\n",
    "jobs/late.py": "when = 1\n",
}


def problems(folder: Path, job: str = "jobs.sales:orders", **changed: str) -> list[str]:
    files = GOOD | {f"jobs/{name}.py": text for name, text in changed.items()}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return [*code_problems(job, folder)]


def test_good_code_has_none(tmp_path):
    assert problems(tmp_path) == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"dates": "def start(x:\n"}, ["jobs/dates.py:1: Python cannot read it: '(' was never closed"]),
        (
            {"dates": "import no_such_package.at_all\nstart = 1\n"},
            ["jobs/dates.py:1: imports no_such_package, which is not installed"],
        ),
        (
            {"dates": "x = 1\nfrom jobs.gone import a\nstart = 1\n"},
            ["jobs/dates.py:2: imports jobs.gone, and there is no jobs/gone.py"],
        ),
        (
            {"dates": "from jobs.late import wen\nstart = 1\n"},
            ["jobs/dates.py:1: imports wen from jobs.late, which has no wen"],
        ),
        ({"late": "def when(:\n"}, ["jobs/late.py:1: Python cannot read it: invalid syntax"]),
        (
            {"sales": "def orders(ctx, source):\n    return source\n"},
            ["jobs/sales.py:1: orders is no stage function; put @stage on it"],
        ),
        ({"rates": "import no_such_package\n"}, ["jobs/rates.py:1: imports no_such_package, which is not installed"]),
    ],
)
def test_what_is_sure_to_fail_is_named_with_its_place(tmp_path, changed, expected):
    assert problems(tmp_path, **changed) == expected


@pytest.mark.parametrize(
    "dates",
    [
        "try:\n    import no_such_package\nexcept ImportError:\n    pass\ndef start(x): ...\n",
        "import sys\nif sys.platform == 'vms':\n    import no_such_package\ndef start(x): ...\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import no_such_package\ndef start(x): ...\n",
        "def start(x): ...\ndef other():\n    import no_such_package\n",
        "from jobs.rates import ANYTHING\ndef start(x): ...\n",
        "import os.path\nimport xml.etree.ElementTree as tree\nfrom collections import abc\ndef start(x): ...\n",
    ],
    ids=["tried", "elsewhere", "for type checkers", "not reached", "made at run time", "standard library"],
)
def test_what_may_be_meant_so_is_left_alone(tmp_path, dates):
    assert problems(tmp_path, dates=dates, rates="globals()['ANYTHING'] = RATE = 1\n") == []


def test_a_stage_that_is_made_by_a_call_is_left_alone(tmp_path):
    assert (
        problems(tmp_path, sales="from stagehold import stage\ndef orders(ctx, source): ...\norders = stage(orders)\n")
        == []
    )


def test_nothing_is_run(tmp_path):
    assert problems(tmp_path, dates="raise SystemExit\ndef start(x): ...\n") == []
