"""The author's own failure rules, and every mistake in one of them."""

from __future__ import annotations

import pytest
from tests.spec.samples import VALID, Project

from stagehold.model.records import FailureClass
from stagehold.spec.settings.restart import FailureDeclaration

LINES = VALID.count("\n")


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path)
    (tmp_path / "work" / "errors.py").write_text("class BadInput(ValueError): ...\n")
    return made


def with_failures(*rules: str) -> str:
    return VALID + "failures:\n" + "".join(f"  - {rule}\n" for rule in rules)


def test_rules_come_in_the_order_they_are_written(project):
    text = with_failures(
        "{error: work.errors:BadInput, class: non_recoverable}",
        '{text: "quota exceeded", class: environment}',
        "{error: requests.exceptions:HTTPError, text: '429', class: recoverable}",
    )
    assert project.load(text).failures == (
        FailureDeclaration(error="work.errors:BadInput", kind=FailureClass.NON_RECOVERABLE),
        FailureDeclaration(text="quota exceeded", kind=FailureClass.ENVIRONMENT),
        FailureDeclaration(error="requests.exceptions:HTTPError", text="429", kind=FailureClass.RECOVERABLE),
    )
    assert project.load(VALID).failures == ()


@pytest.mark.parametrize(
    ("rule", "field", "text"),
    [
        ("{error: work.errors:BadInput}", "0.class", "nothing | non_recoverable, environment, recoverable"),
        ("{text: x, class: fatal}", "0.class", "'fatal' | non_recoverable, environment, recoverable"),
        ("{text: x, class: enviroment}", "0.class", "(did you mean environment?)"),
        (
            "{text: x, class: partition_data_missing}",
            "0.class",
            "'partition_data_missing' | non_recoverable, environment",
        ),
        ("{text: x, class: [a]}", "0.class", "['a'] | non_recoverable"),
        ("{class: environment}", "0", "neither error nor text | error, text or both"),
        ("{eror: a:B, text: x, class: environment}", "0.eror", "'a:B' | error, text, class (did you mean error?)"),
        ("{error: BadInput, class: environment}", "0.error", "'BadInput' | module:Class"),
        (
            "{error: work.errors:BadInputs, class: environment}",
            "0.error",
            "in work.errors: BadInput (did you mean BadInput?)",
        ),
        (
            "{error: work.broken:BadInput, class: environment}",
            "0.error",
            "whose module cannot be parsed (invalid syntax",
        ),
        ('{text: "(", class: environment}', "0.text", "'(', which is no pattern (missing ), unterminated subpattern"),
        ("{text: 7, class: environment}", "0.text", "7 | text"),
        ("environment", "0", "'environment' | a mapping of fields"),
    ],
)
def test_a_mistake_is_named_with_its_line(project, rule, field, text):
    (found,) = project.problems(with_failures(rule))
    assert found[:2] == (LINES + 2, f"failures.{field}")
    assert text in found[2]


def test_what_is_no_list_is_refused(project):
    ((line, field, text),) = project.problems(VALID + "failures: {text: x}\n")
    assert (line, field) == (LINES + 1, "failures")
    assert "a mapping | a list of rules such as" in text
