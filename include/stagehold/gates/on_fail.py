"""What a suite says of data that does not meet it: `severity`, `on_fail`, `scope` and `max_quarantined`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stagehold.gates.suite import OnFail, RowLimit, Scope
from stagehold.model.records import Severity
from stagehold.spec.yaml import Problem

OWN = "stagehold"  # what files of Great Expectations have for us lies under this name in `meta`
LIMIT = re.compile(r"(?P<amount>\d+(\.\d+)?)(?P<percent>%?)")
LIMITS = "a number of rows, or a share such as 1%"
SEVERITIES = {OnFail.BLOCK: Severity.CRITICAL, OnFail.WARN: Severity.WARNING, OnFail.QUARANTINE: Severity.WARNING}
# Those that say of each row whether it is expected. Their types are asked of a schema, or follow from all rows at once.
OF_ROWS = re.compile(
    r"expect_(column_values?_|column_pair_values_|multicolumn_|compound_columns_|select_column_values_).*"
)
NOT_OF_ROWS = ("expect_column_values_to_be_of_type", "expect_column_values_to_be_in_type_list")


@dataclass(frozen=True)
class Consequence:
    """What follows if an expectation is not met."""

    severity: Severity
    sets_aside: bool = False


def consequence(fields: Mapping[str, Any], of_suite: OnFail | None) -> Consequence:
    """Of the expectation with these fields, which have no problems. What the suite says is for those that say neither;
    of expectations that no row is to blame for, and of those about a whole stage, quarantine blocks.
    """
    said, severity = _said(fields).get("on_fail"), fields.get("severity")
    if said is not None:
        word = OnFail(said)
        return Consequence(Severity(severity) if severity else SEVERITIES[word], word is OnFail.QUARANTINE)
    if severity is not None or of_suite is None:
        return Consequence(Severity(severity or Severity.CRITICAL))
    if of_suite is OnFail.QUARANTINE and (not is_of_rows(fields["type"]) or is_of_stage(fields)):
        return Consequence(Severity.CRITICAL)
    return Consequence(SEVERITIES[of_suite], of_suite is OnFail.QUARANTINE)


def is_of_rows(kind: str) -> bool:
    return OF_ROWS.fullmatch(kind) is not None and kind not in NOT_OF_ROWS


def scope_of(fields: Mapping[str, Any]) -> Scope:
    return Scope(_said(fields).get("scope", Scope.PARTITION))


def is_of_stage(fields: Mapping[str, Any]) -> bool:
    return bool(_said(fields).get("scope") == Scope.STAGE)


def on_fail_of(suite: Mapping[str, Any]) -> OnFail | None:
    said = _said(suite).get("on_fail")
    return OnFail(said) if said is not None else None


def row_limit(suite: Mapping[str, Any]) -> RowLimit | None:
    said = _said(suite).get("max_quarantined")
    return _limit(said) if said is not None else None


def suite_problems(suite: Mapping[str, Any]) -> Iterator[Problem]:
    said = _said(suite)
    if said.get("on_fail", OnFail.BLOCK) not in tuple(OnFail):
        yield Problem(("on_fail",), repr(said["on_fail"]), ", ".join(OnFail))
    if "max_quarantined" in said and _limit(said["max_quarantined"]) is None:
        yield Problem(("max_quarantined",), repr(said["max_quarantined"]), LIMITS)


def expectation_problems(path: tuple[str, ...], fields: Mapping[str, Any]) -> Iterator[Problem]:
    severity, on_fail = fields.get("severity"), _said(fields).get("on_fail", OnFail.BLOCK)
    scope = _said(fields).get("scope", Scope.PARTITION)
    if scope not in tuple(Scope):
        yield Problem((*path, "scope"), repr(scope), ", ".join(Scope))
    if (severity or Severity.CRITICAL) not in tuple(Severity):
        yield Problem((*path, "severity"), repr(severity), ", ".join(Severity))
    elif on_fail not in tuple(OnFail):
        yield Problem((*path, "on_fail"), repr(on_fail), ", ".join(OnFail))
    elif severity and "on_fail" in _said(fields) and not _fit(OnFail(on_fail), Severity(severity)):
        problem = f"{on_fail}, with the severity {severity}"
        yield Problem((*path, "on_fail"), problem, "block with critical, warn with warning or info, or one of the two")
    elif on_fail == OnFail.QUARANTINE and is_of_stage(fields):
        yield Problem((*path, "on_fail"), f"{on_fail}, with scope: stage", "block or warn, or scope: partition")
    elif on_fail == OnFail.QUARANTINE and fields["type"] in NOT_OF_ROWS:
        yield Problem((*path, "on_fail"), on_fail, "block or warn: no row is to blame for a type")


def _fit(word: OnFail, severity: Severity) -> bool:
    return word is OnFail.QUARANTINE or (word is OnFail.BLOCK) == (severity is Severity.CRITICAL)


def _said(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is for us: fields of ours, or in a file that Great Expectations wrote below `meta`."""
    meta = fields.get("meta")
    own = meta.get(OWN) if isinstance(meta, dict) else None
    return {**(own if isinstance(own, dict) else {}), **fields}


def _limit(said: object) -> RowLimit | None:
    found = LIMIT.fullmatch(str(said).replace(" ", "")) if not isinstance(said, bool) else None
    return RowLimit(float(found["amount"]), bool(found["percent"])) if found else None
