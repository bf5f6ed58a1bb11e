"""Calls a pipeline's notifiers. Their errors are logged and reported, and harm nothing."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from stagehold.airflow.telling.news import RunNews
from stagehold.airflow.telling.untold import Untold, untold
from stagehold.code.project import find_modules_of
from stagehold.errors.spec_errors import InvalidSpec, SpecProblem
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.airflow_settings import NotifierDeclaration
from stagehold.spec.yaml import read_document

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)


def notify(pipeline: Pipeline, news: RunNews, context: Context | Mapping[str, Any], project: str) -> tuple[Untold, ...]:
    """Call the notifiers of the news' hook, one after the other; return those that failed. They find the news in the
    context, as `stagehold`; their classes may be the project's.
    """
    find_modules_of(Path(project))
    failed: list[Untold] = []
    for place, declared in enumerate(getattr(pipeline, news.hook)):
        try:
            made = notifier_class(declared, pipeline, (news.hook.value, str(place)))(**deepcopy({**declared.arguments}))
            made({**context, "stagehold": news})
        except Exception as error:
            failed.append(untold(f"notifier {declared.notifier} of {news.hook}", error))
            log.exception(
                "%s of %s: notifier %s failed, and %r was not told",
                news.hook,
                pipeline,
                declared.notifier,
                news.message,
            )
        else:
            log.info("%s of %s: told %s", news.hook, pipeline, declared.notifier)
    return tuple(failed)


def notifier_class(declared: NotifierDeclaration, pipeline: Pipeline, path: tuple[str, ...]) -> type[BaseNotifier]:
    """The class of a notifier.

    :raises InvalidSpec: the class cannot be imported, or is no notifier; with file, field and line.
    """
    module, _, name = declared.notifier.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:
        problem = f"{declared.notifier!r}, which cannot be imported ({type(error).__name__}: {error})"
        raise _invalid(pipeline, path, problem, "a class that this Airflow can import") from error
    if not isinstance(found, type) or not issubclass(found, BaseNotifier):
        raise _invalid(pipeline, path, repr(declared.notifier), "a subclass of airflow.sdk.BaseNotifier")
    return found


def _invalid(pipeline: Pipeline, path: tuple[str, ...], given: str, allowed: str) -> InvalidSpec:
    field = (*path, "notifier")
    line = read_document(Path(pipeline.file)).line(field) if Path(pipeline.file).is_file() else 0
    return InvalidSpec(pipeline.file, [SpecProblem(line, ".".join(field), given, allowed)])
