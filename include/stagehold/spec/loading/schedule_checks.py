"""What may start runs: times, assets and timetables. Assets are read into what Airflow makes a condition of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stagehold.model.keys.interval_key import ONCE, PRESETS
from stagehold.spec.form import show
from stagehold.spec.loading.named_code import class_problem
from stagehold.spec.settings.airflow_settings import ScheduleForm
from stagehold.spec.yaml import Problem

SCHEDULES = (ONCE, *PRESETS)  # besides cron
AN_ASSET = re.compile(r"\s*(?:(?P<name>[\w.:/{}$%~@+-]+)|(?P<mark>[&|()]))")
ASSETS_ALLOWED = "names or URIs of assets, joined by & and |, with ( and ), such as marts.orders & (a.rates | b.rates)"
PATH = ("schedule",)


@dataclass(frozen=True)
class AssetName:
    """An asset by its name, or by its URI."""

    name: str

    @property
    def is_uri(self) -> bool:
        return "://" in self.name


@dataclass(frozen=True)
class AssetsJoined:
    """Conditions that all have to hold, or of which one does."""

    every: bool
    parts: tuple[AssetCondition, ...]


AssetCondition = AssetName | AssetsJoined


def asset_condition(text: str) -> AssetCondition:
    """`&` binds more closely than `|`, as in Python.

    :raises ValueError: the text is no condition
    """
    words = _words(text)
    found, rest = _any_of(words)
    if rest:
        raise ValueError(f"{rest[0]} is one too many")
    return found


def _words(text: str) -> list[str]:
    words, place = [], 0
    while text[place:].strip():
        found = AN_ASSET.match(text, place)
        if found is None:
            raise ValueError(f"{text[place:].strip()[:20]} is no asset")
        words.append(found["name"] or found["mark"])
        place = found.end()
    return words


def _any_of(words: list[str]) -> tuple[AssetCondition, list[str]]:
    return _joined(words, "|")


def _joined(words: list[str], mark: str) -> tuple[AssetCondition, list[str]]:
    inner = _one if mark == "&" else lambda rest: _joined(rest, "&")
    first, words = inner(words)
    parts = [first]
    while words[:1] == [mark]:
        part, words = inner(words[1:])
        parts.append(part)
    return (parts[0] if len(parts) == 1 else AssetsJoined(mark == "&", tuple(parts))), words


def _one(words: list[str]) -> tuple[AssetCondition, list[str]]:
    if not words or words[0] in "&|)":
        raise ValueError(f"an asset is missing {f'before {words[0]}' if words else 'at the end'}")
    if words[0] != "(":
        return AssetName(words[0]), words[1:]
    found, rest = _any_of(words[1:])
    if rest[:1] != [")"]:
        raise ValueError("a ) is missing")
    return found, rest[1:]


def check_schedule(schedule: ScheduleForm, project: Path) -> Iterator[Problem]:
    cron = schedule.cron
    if cron is not None and cron not in SCHEDULES and not _is_cron(cron):
        yield Problem(PATH, show(cron), f"a cron expression or {', '.join(SCHEDULES)}; leave it out to run by hand")
    if schedule.assets is not None:
        try:
            asset_condition(schedule.assets)
        except ValueError as error:
            yield Problem((*PATH, "assets"), f"{show(schedule.assets)}, where {error}", ASSETS_ALLOWED)
        if cron == ONCE:
            yield Problem((*PATH, "cron"), show(cron), "times that come again, beside assets")
    if schedule.timetable is not None:
        for field in ("cron", "assets"):
            if getattr(schedule, field) is not None:
                yield Problem((*PATH, field), show(getattr(schedule, field)), "nothing beside a timetable")
        if problem := class_problem(schedule.timetable, project):
            yield Problem((*PATH, "timetable"), *problem)
    elif schedule.arguments:
        yield Problem((*PATH, "arguments"), "a mapping", "only with a `timetable`")


def _is_cron(text: str) -> bool:
    from croniter import croniter

    return len(text.split()) == 5 and croniter.is_valid(text)
