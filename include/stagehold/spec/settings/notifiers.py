"""Whom a pipeline tells of what happens to its runs: notifiers of Airflow, by hook."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field, JsonValue

from stagehold.spec.settings.fields import SpecPart


class Hook(StrEnum):
    """What notifiers are called for; each is a field of a pipeline file."""

    ON_FAILURE = "on_failure"
    ON_GATE_WARNING = "on_gate_warning"
    ON_RESUME = "on_resume"


class NotifierDeclaration(SpecPart):
    """A class that is imported when there is something to say, and what it is made with."""

    notifier: str
    """The class, as `module:Class`: a subclass of Airflow's `BaseNotifier`, from a provider or of your own. Needed.
    Example: `notifier: "airflow.providers.smtp.notifications.smtp:SmtpNotifier", arguments: {to: me@example.com}`"""

    arguments: Mapping[str, JsonValue] = Field(default_factory=dict)
    """What it is made with. Those that it takes for templates may use `stagehold.message` and the other facts of
    notifications.md.
    Example: `notifier: "airflow.providers.smtp.notifications.smtp:SmtpNotifier", arguments: {to: me@example.com,
    subject: "{{ stagehold.pipeline }}", html_content: "{{ stagehold.message }}"}`"""
