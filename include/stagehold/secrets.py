"""Secrets: where they are found, and how their values stay out of what is told, logged and recorded."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from stagehold.errors import SecretsUnusable
from stagehold.settings import SECRET_PREFIX, Settings

MASK = "***"
SHORTEST = 4  # characters: to take a shorter value out of texts would spoil them
_LONG_LINE = 8  # characters from which a line of a secret is one by itself
_KNOWN: set[str] = set()  # the forms of all values that this process has found, as texts may have them


# A kind of place for secrets: which of them is a name's, for people; and the value there, None if it is not there.
SecretPlace = tuple[Callable[[str], str], Callable[[str], str | None]]


def usual_places(settings: Settings) -> tuple[SecretPlace, ...]:
    """Where every process looks, the first place first."""
    folder = Path(settings.secrets_folder)
    return (
        (lambda name: f"the environment variable {_variable(name)}", _in_environment),
        (lambda name: f"the file {folder / name}", partial(_in_file, folder)),
    )


def found_secrets(names: Sequence[str], places: Sequence[SecretPlace]) -> Mapping[str, str]:
    """The values of all these secrets, which from now on `masked` takes out of texts.

    :raises SecretsUnusable: with each that is nowhere, that others may read, or that is too short to be masked
    """
    problems: dict[str, str] = {}
    found: dict[str, str] = {}
    for name in names:
        try:
            value = next((value for _, read in places if (value := read(name)) is not None), None)
        except PermissionError as error:
            problems[name] = str(error)
            continue
        if value is None:
            problems[name] = f"is not found: put it into {' or '.join(described(name) for described, _ in places)}"
        elif len(value) < SHORTEST:
            problems[name] = f"is shorter than {SHORTEST} characters, so that it cannot be taken out of texts"
        else:
            found[name] = value
            keep_masked(value)
    if problems:
        raise SecretsUnusable(problems)
    return found


def keep_masked(value: str) -> None:
    """From now on `masked` takes the value out of texts, and log records of this process are without it."""
    _KNOWN.update(form for form in _forms(value) if len(form) >= SHORTEST)
    _mask_log_records()


def masked(text: str) -> str:
    """The text without the values of secrets that this process has found, however they are quoted."""
    for form in sorted(_KNOWN, key=len, reverse=True):
        text = text.replace(form, MASK)
    return text


def _forms(value: str) -> set[str]:
    whole = {value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value), quote(value, safe=""), quote_plus(value)}
    return whole | {line for line in value.splitlines() if len(line) >= _LONG_LINE}


def _in_environment(name: str) -> str | None:
    return os.environ.get(_variable(name))


def _variable(name: str) -> str:
    return f"{SECRET_PREFIX}{name.upper()}"


def _in_file(folder: Path, name: str) -> str | None:
    """:raises PermissionError: people other than its owner may read the file"""
    path = folder / name
    if not path.is_file():
        return None
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise PermissionError(f"is in a file that others may read (mode {mode:04o}): `chmod 600 {path}`")
    return path.read_text(encoding="utf-8").removesuffix("\n")


@cache
def _mask_log_records() -> None:
    """Once in a process, as a record is made and not by a handler: there may be any handlers."""
    make = logging.getLogRecordFactory()
    formatter = logging.Formatter()

    def masked_record(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        said = record.getMessage()
        if masked(said) != said:
            record.msg, record.args = masked(said), ()
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = masked(formatter.formatException(record.exc_info))
        return record

    logging.setLogRecordFactory(masked_record)
