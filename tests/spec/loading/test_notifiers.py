"""Notifiers of a pipeline, and every mistake in one of them."""

from __future__ import annotations

import sys

import pytest
from tests.spec.samples import VALID, Project

from stagehold.spec.settings.airflow_settings import NotifierDeclaration

LINES = VALID.count("\n")
MAIL = "airflow.providers.smtp.notifications.smtp:SmtpNotifier"


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path)
    (tmp_path / "work" / "pager.py").write_text("raise SystemExit('imported')\nclass Pager: ...\n")
    (tmp_path / "work" / "broken_pager.py").write_text("class Pager(\n")
    return made


def test_one_or_a_list_of_notifiers_is_read_for_each_hook_and_none_is_imported(project):
    pipeline = project.load(
        f"{VALID}on_failure: {{notifier: '{MAIL}', arguments: {{to: me@example.com}}}}\n"
        f"on_resume:\n  - notifier: work.pager:Pager\n  - {{notifier: '{MAIL}'}}\n"
    )
    mail = NotifierDeclaration(notifier=MAIL, arguments={"to": "me@example.com"})
    assert pipeline.on_failure == (mail,)
    assert pipeline.on_gate_warning == ()
    assert [one.notifier for one in pipeline.on_resume] == ["work.pager:Pager", MAIL]
    assert "work.pager" not in sys.modules


def test_a_notifier_may_lie_in_src(project, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "pagers.py").write_text("class Pager: ...\n")
    assert project.load(f"{VALID}on_failure: {{notifier: 'pagers:Pager'}}\n").on_failure[0].notifier == "pagers:Pager"


@pytest.mark.parametrize(
    ("hook", "field", "text"),
    [
        ("on_failure: {arguments: {to: x}}", "on_failure.notifier", "nothing | needed: module:Class"),
        ("on_failure: SmtpNotifier", "on_failure", "'SmtpNotifier' | a mapping"),
        ("on_failure: {notifier: SmtpNotifier}", "on_failure.notifier", "'SmtpNotifier' | module:Class, such as"),
        ("on_resume: [{notifier: 7}]", "on_resume.0.notifier", "7 | module:Class"),
        (
            "on_gate_warning: {notifier: 'airflow.providers.smpt:X'}",
            "on_gate_warning.notifier",
            "a class of a module that is installed or in the project; not airflow.providers.smpt",
        ),
        (f"on_failure: [{{notifier: '{MAIL}s'}}]", "on_failure.0.notifier", "(did you mean SmtpNotifier?)"),
        ("on_failure: {notifier: 'work.pager:Page'}", "on_failure.notifier", "a class of work.pager: Pager"),
        ("on_failure: {notifier: 'work.broken_pager:Pager'}", "on_failure.notifier", "cannot be parsed"),
        (f"on_failure: {{notifier: '{MAIL}', arguments: [a]}}", "on_failure.arguments", "['a'] | a mapping"),
        (
            f"on_failure: {{notifier: '{MAIL}', arguments: {{since: 2026-11-01}}}}",
            "on_failure.arguments",
            "a mapping | text, number",
        ),
        (
            f"on_failure: {{notifier: '{MAIL}', argument: {{}}}}",
            "on_failure.argument",
            "a mapping | notifier, arguments (did you mean arguments?)",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_is_allowed(project, hook, field, text):
    (found,) = project.problems(f"{VALID}{hook}\n")
    assert found[:2] == (LINES + 1, field)
    assert text in found[2]
