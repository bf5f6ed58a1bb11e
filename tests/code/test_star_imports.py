"""What a star import gives counts in a stage's hash where it is used."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.code.test_stage_code import Code


@pytest.fixture
def code(tmp_path: Path) -> Code:
    return Code(tmp_path)


STARRED = {
    "jobs/starred.py": """
from pyspark.sql.functions import *
from config.all import *
from helpers.text import *

def net(ctx, source):
    return clean(source.where(col("x") > RATE)), sum(OWN), helper.near()

OWN = [1]
""",
    "config/all.py": "from config.rates import *\nfrom helpers import local as helper\nUNUSED = 1\n",
    "config/rates.py": "from config.all import UNUSED\nfrom os.path import *\nRATE = 3\nOTHER = 4\nremember(RATE)\n",
}


@pytest.mark.parametrize(
    ("file", "old", "new", "counts"),
    [
        ("config/rates.py", "RATE = 3", "RATE = 5", True),  # a constant of a configuration, by two stars
        ("config/rates.py", "OTHER = 4", "OTHER = 5", False),
        ("config/rates.py", "remember(RATE)", "remember(OTHER)", True),  # nobody knows what a star made of the name
        ("config/rates.py", "os.path", "posixpath", True),
        ("config/all.py", "UNUSED = 1", "UNUSED = 2", False),
        ("config/all.py", "local as helper", "money as helper", True),
        ("helpers/text.py", "return strip(row)", "return row", True),
        ("helpers/text.py", "return 1", "return 2", False),
        ("helpers/local.py", "return 1", "return 2", True),
        ("jobs/starred.py", "OWN = [1]", "OWN = [2]", True),
        ("jobs/starred.py", "pyspark.sql.functions", "pyspark.sql.types", True),
    ],
)
def test_what_a_star_import_gives_counts_where_it_is_used(code: Code, file: str, old: str, new: str, counts: bool):
    for name, text in STARRED.items():
        code.write(name, text.replace("remember(RATE)", "") if file != "config/rates.py" else text)
    code.write("helpers/money.py", "def near():\n    return 3\n")
    before = code.fingerprint("jobs.starred:net")
    assert before.value is not None, before.reason
    code.edit(file, old, new)
    assert (code.fingerprint("jobs.starred:net").value != before.value) is counts


def test_a_name_that_two_places_may_give_counts_in_both(code: Code) -> None:
    code.write("helpers/text.py", "def clean(row): return 1\n")
    code.write(
        "jobs/both.py", "def clean(row): return 2\nfrom helpers.text import *\ndef net(ctx): return clean(ctx)\n"
    )
    before = code.fingerprint("jobs.both:net").value
    code.edit("helpers/text.py", "return 1", "return 3")
    other = code.fingerprint("jobs.both:net").value
    code.edit("jobs/both.py", "return 2", "return 4")
    assert len({before, other, code.fingerprint("jobs.both:net").value, None}) == 4
