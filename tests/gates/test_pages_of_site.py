"""Which pages a site of verdicts has, from results made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.samples import gate_result, waiver

from stagehold.gates.verdict_pages import MOST_PAGES, site_of
from stagehold.model.choices import Severity
from stagehold.model.records import GateResult

A, B = "expect a", "expect b"


def said(partition: int, a: bool, b: bool, severity: Severity = Severity.WARNING) -> list[GateResult]:
    first = gate_result(partition, passed=a, expectation=A)
    return [first, replace(gate_result(partition, passed=b, expectation=B), severity=severity)]


def pages(*results: list[GateResult], waived: tuple[int, ...] = ()) -> list[tuple[object, ...]]:
    words = {(number, A): waiver(number, expectation=A) for number in waived}
    every = [one for some in results for one in some]
    site = site_of("sales", "day", {"joined": every}, {"joined": words})
    return [(one.file, one.title, {**one.outcomes}) for one in site.pages]


@pytest.mark.parametrize(
    ("results", "waived", "expected"),
    [
        pytest.param(
            [said(number, True, True) for number in range(3)],
            (),
            [("0.html", "joined[0-2]", {"passed": 2})],
            id="one page if all is met",
        ),
        pytest.param(
            [
                said(0, True, True),
                said(1, False, True),
                said(2, True, False),
                said(3, False, False),
                said(4, True, True),
            ],
            (),
            [
                ("0.html", "joined[3]", {"failed": 1, "warning": 1}),
                ("1.html", "joined[1]", {"failed": 1, "passed": 1}),
                ("2.html", "joined[2]", {"warning": 1, "passed": 1}),
                ("3.html", "joined[0, 4]", {"passed": 2}),
            ],
            id="one page for each kind of partition, the worst first",
        ),
        pytest.param(
            [said(0, False, True), said(1, False, True)],
            (1,),
            [
                ("0.html", "joined[0]", {"failed": 1, "passed": 1}),
                ("1.html", "joined[1]", {"waived": 1, "passed": 1}),
            ],
            id="what is waived stands apart",
        ),
        pytest.param([], (), [], id="nothing was judged"),
    ],
)
def test_partitions_with_the_same_verdicts_share_a_page(results, waived, expected):
    assert pages(*results, waived=waived) == expected


def test_a_page_has_the_words_for_its_first_partition():
    words = {(number, A): waiver(number, expectation=A) for number in (0, 1, 9)}
    results = [*said(0, False, True), *said(1, False, True)]
    (page,) = site_of("sales", "day", {"joined": results}, {"joined": words}).pages
    assert [one.partition for one in page.waivers] == [0]


def test_stages_share_the_numbers_of_their_pages():
    site = site_of("sales", "day", {"a": said(0, True, True), "b": said(0, True, True)}, {})
    assert [(one.stage, one.file) for one in site.pages] == [("a", "0.html"), ("b", "1.html")]


def test_if_there_are_too_many_pages_the_worst_are_made_and_the_others_are_named():
    results = [
        gate_result(partition, passed=number != partition, expectation=f"expect {number}")
        for partition in range(MOST_PAGES + 5)
        for number in range(MOST_PAGES + 2)
    ]
    site = site_of("sales", "day", {"joined": results}, {})
    assert len(site.pages) == MOST_PAGES
    assert site.left_out == {"joined": tuple(range(MOST_PAGES, MOST_PAGES + 5))}
