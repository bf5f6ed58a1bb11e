"""Pages as Great Expectations renders them: what they show, that they need no internet, and that data stays data."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.samples import gate_result, waiver

from stagehold.gates.verdict_pages import DocSite, docs_uri, have_docs, read_page, site_of, write_docs
from stagehold.lake.store.files import files_at
from stagehold.model.choices import Severity
from stagehold.model.records import GateResult

pytestmark = pytest.mark.slow  # imports Great Expectations, which takes seconds

ODD = "<b>{}</b>"
COUNTS = {
    "element_count": 100,
    "unexpected_count": 3,
    "unexpected_percent": 3.0,
    "missing_count": 0,
    "missing_percent": 0.0,
    "partial_unexpected_list": [ODD.format("value")],
}


def said(kind: str, result: dict[str, Any], *, passed: bool = False, **kwargs: Any) -> GateResult:
    configuration = json.dumps({"type": kind, "kwargs": kwargs, "meta": {}})
    made = gate_result(3, passed=passed, expectation=f"{kind}({kwargs.get('column', '')})")
    return replace(made, configuration=configuration, result=json.dumps(result))


SAID = [
    said("expect_column_values_to_match_regex", COUNTS, column=ODD.format("column"), regex=ODD.format("regex")),
    said(
        "expect_column_values_to_be_in_set", COUNTS, column="colour", value_set=[ODD.format("set"), "red"], mostly=0.9
    ),
    said("expect_column_mean_to_be_between", {"observed_value": 3.5}, passed=True, column="total", min_value=1),
    said(
        "expect_column_most_common_value_to_be_in_set",
        {"observed_value": [ODD.format("seen")]},
        column="colour",
        value_set=["red"],
    ),
    said("expect_table_columns_to_match_set", {"observed_value": [ODD.format("found")]}, column_set=["a"]),
    replace(said("expect_something_of_our_own", {}, column=ODD.format("own")), severity=Severity.INFO),
    replace(gate_result(3, passed=False, expectation="expect_column_to_exist(old)"), result="", configuration=""),
]


@pytest.fixture(scope="module")
def site() -> DocSite:
    word = waiver(expectation=SAID[0].expectation, reason=ODD.format("reason"))
    waived = {"joined": {(3, SAID[0].expectation): word}}
    return site_of("sales", "2024-01-01", {"joined": SAID}, waived)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, site: DocSite) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    assert write_docs(site, str(folder)) == f"{folder}/_docs/sales/2024-01-01/index.html"
    return folder


@pytest.fixture(scope="module")
def page(lake: Path) -> str:
    return (lake / "_docs/sales/2024-01-01/0.html").read_text()


def test_a_page_says_what_great_expectations_says(page):
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    for part in (
        "values must belong to this set:",
        "at least 90 % of the time",
        "3 unexpected values found. 3% of 100 total rows.",
        "mean must be greater than or equal to 1",
        "Evaluated Expectations 5",
        "joined[3]",
        "ann waived expect_column_values_to_match_regex",
    ):
        assert part in text


def test_an_expectation_that_great_expectations_does_not_know_has_a_line_of_ours(page):
    assert "expect_something_of_our_own(&lt;b&gt;own&lt;/b&gt;)<td>not met (info)" in page
    assert "expect_column_to_exist(old)<td>not met (critical)<td>3 nulls" in page


def test_texts_of_data_suites_and_people_are_escaped(page):
    for text in ("value", "column", "regex", "set", "seen", "found", "own", "reason"):
        assert f"&lt;b&gt;{text}&lt;" in page
        assert f"<b>{text}" not in page
    assert "&amp;lt;" not in page


def test_no_page_loads_or_runs_anything(lake):
    for file in (lake / "_docs/sales/2024-01-01").iterdir():
        text = file.read_text()
        assert "default-src 'none'" in text.partition("<style>")[0]
        assert re.findall(r"<(?:script|link|img|iframe)\b|\bsrc=|\son\w+=|https?:", text) == []
        assert {*re.findall(r'href="([^"]+)"', text)} <= {"0.html", "index.html"} | {*re.findall(r'"(#[^"]+)"', text)}


def test_writing_again_takes_the_place_of_what_was_there(lake, site):
    files = files_at(docs_uri(str(lake), "sales", "2024-01-01"))
    files.create("7.html", b"of another time")
    write_docs(site, str(lake))
    assert {*files.names()} == {"index.html", "0.html"}


def test_the_pages_of_an_interval_are_not_those_of_another(lake):
    assert have_docs(str(lake), "sales", "2024-01-01")
    assert not have_docs(str(lake), "sales", "2024-01-02")
    assert (read_page("index.html", str(lake), "sales", "2024-01-01") or b"").startswith(b"<!DOCTYPE html>")
    for name in ("1.html", "../2024-01-01/0.html", "/etc/passwd", "index.html\n", "\N{ARABIC-INDIC DIGIT ZERO}.html"):
        assert read_page(name, str(lake), "sales", "2024-01-01") is None


@pytest.mark.parametrize("interval", ["..", "../../etc", "a/b", "/"])
def test_no_interval_leads_out_of_the_folder(interval):
    folder, _, name = docs_uri("/lake", "sales", interval).rpartition("/")
    assert (folder, name in (".", "..", "")) == ("/lake/_docs/sales", False)
