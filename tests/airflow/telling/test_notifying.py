"""Real notifiers of Airflow, called as a task or the DAG processor calls them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.airflow.telling.test_news import news
from tests.spec.samples import VALID, Project

from stagehold.errors.spec_errors import InvalidSpec
from stagehold.ledger.ledger import Ledger
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.airflow_settings import Hook

pytestmark = pytest.mark.airflow

NOTES = "tests.airflow.telling.notes"


def declared(tmp_path: Path, *notifiers: str) -> Pipeline:
    lines = "".join(f"  - {one}\n" for one in notifiers)
    return Project(tmp_path).load(f"{VALID}on_failure:\n{lines}")


def to_file(path: Path, notifier: str = "FileNotifier") -> str:
    return f"{{notifier: '{NOTES}:{notifier}', arguments: {{path: {path}, text: '{{{{ stagehold.message }}}}'}}}}"


def test_templates_of_an_ordinary_notifier_find_the_message(airflow_home, tmp_path):
    from stagehold.airflow.telling.notifying import notify

    told = news(Hook.ON_FAILURE)
    notify(declared(tmp_path, to_file(tmp_path / "notes")), told, {"run_id": "r"}, str(tmp_path))
    assert (tmp_path / "notes").read_text() == f"{told.message}\n"


def test_a_notifier_that_raises_is_logged_and_the_next_is_called(airflow_home, tmp_path, caplog):
    from stagehold.airflow.telling.notifying import notify

    told = news(Hook.ON_FAILURE)
    pipeline = declared(tmp_path, to_file(tmp_path / "no", "RaisingNotifier"), to_file(tmp_path / "notes"))
    (failed,) = notify(pipeline, told, {}, str(tmp_path))
    assert failed == (
        f"notifier {NOTES}:RaisingNotifier of on_failure",
        "RuntimeError: the pager is out of order",
    )
    assert (tmp_path / "notes").read_text() == f"{told.message}\n"
    assert f"on_failure of revenue: notifier {NOTES}:RaisingNotifier failed" in caplog.text
    assert "the pager is out of order" in caplog.text


def test_notifiers_of_other_hooks_are_not_called(airflow_home, tmp_path):
    from stagehold.airflow.telling.notifying import notify

    notify(declared(tmp_path, to_file(tmp_path / "notes")), news(Hook.ON_RESUME), {}, str(tmp_path))
    assert not (tmp_path / "notes").exists()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", "OSError"),
        ("first\nsecond", "OSError: first"),
        ("400 of https://hooks.slack.com/services/T0/B0/xyz?a=b", "OSError: 400 of https://hooks.slack.com/..."),
        ("Max retries exceeded with url: /services/T0/xyz (x)", "OSError: Max retries exceeded with url: ... (x)"),
        ("at 'http://me:pw@host:80/p' it", "OSError: at 'http://host:80/...' it"),
    ],
)
def test_the_reason_of_a_failed_report_has_no_path_of_an_address(airflow_home, said, told):
    from stagehold.airflow.telling.untold import untold

    assert untold("x", OSError(said))[1] == told


def test_a_notifier_that_fails_when_a_run_has_failed_is_on_record_of_the_run(airflow_home, tmp_path, monkeypatch):
    from airflow.sdk import DAG

    from stagehold.airflow.telling.ends import failure_callback
    from stagehold.airflow.telling.untold import UNTOLD

    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    monkeypatch.setenv("STAGEHOLD_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    callback = failure_callback(declared(tmp_path, to_file(tmp_path / "no", "RaisingNotifier")))
    callback({"dag": DAG("revenue", schedule=None), "run_id": "manual__1", "reason": "task_failure"})
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        (event,) = ledger.events.of_kind("revenue/manual__1", UNTOLD)
    assert event.subject == f"notifier {NOTES}:RaisingNotifier of on_failure"
    assert event.text == "RuntimeError: the pager is out of order"


@pytest.mark.parametrize(
    ("ledger", "cause"),
    [
        ("sqlite:///{}/ledger.db", "nothing of it is on record; see the logs of its tasks."),
        ("sqlite:///{}/no/such/folder/ledger.db", "The ledger"),
    ],
)
def test_a_failed_run_without_a_record_is_reported(airflow_home, tmp_path, monkeypatch, ledger, cause):
    from airflow.sdk import DAG

    from stagehold.airflow.telling.ends import failure_callback

    (tmp_path / "no").write_text("a file, so no folder")
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    monkeypatch.setenv("STAGEHOLD_LEDGER", ledger.format(tmp_path))
    callback = failure_callback(declared(tmp_path, to_file(tmp_path / "notes")))
    callback({"dag": DAG("revenue", schedule=None), "run_id": "manual__1", "reason": "task_failure"})
    text = (tmp_path / "notes").read_text()
    assert text.startswith(f"revenue manual__1 failed: {cause}")
    assert text.endswith("/dags/revenue/runs/manual__1/plugin/stagehold\n")


@pytest.mark.parametrize(
    ("notifier", "text"),
    [
        (f"{NOTES}:FileNote", "'tests.airflow.telling.notes:FileNote', which cannot be imported (AttributeError"),
        (f"{NOTES}:NoNotifier", "allowed: a subclass of airflow.sdk.BaseNotifier"),
        ("nowhere.at_all:X", "'nowhere.at_all:X', which cannot be imported (ModuleNotFoundError"),
    ],
)
def test_a_class_that_is_no_notifier_is_named_with_file_field_and_line(airflow_home, tmp_path, notifier, text):
    from stagehold.airflow.telling.notifying import notifier_class

    pipeline = declared(tmp_path, to_file(tmp_path / "a"), to_file(tmp_path / "b"))
    wrong = pipeline.on_failure[1].model_copy(update={"notifier": notifier})
    with pytest.raises(InvalidSpec) as caught:
        notifier_class(wrong, pipeline, ("on_failure", "1"))
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (VALID.count("\n") + 3, "on_failure.1.notifier")
    assert text in str(caught.value)
    assert "revenue.yaml" in str(caught.value)
