"""What somebody or something was to be told of a run and was not: it fails nothing, so it is put on record."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Event

UNTOLD = "untold"  # the kind of such an event; its subject says who was not told
LONGEST = 300  # letters of a reason
# What stands behind the host in the address of a webhook is often all that keeps others from using it.
ADDRESS = re.compile(r"(https?://)(?:[^/\s@]*@)?([^/\s'\"?#)]+)[^\s'\")]*")
PATH = re.compile(r"(\burl: )\S+")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Untold:
    """``whom`` nothing was told, and why."""

    whom: str
    why: str


def untold(whom: str, error: BaseException) -> Untold:
    """Why somebody was not told, without what Airflow counts as secret and without paths of addresses."""
    from airflow.sdk._shared.secrets_masker import redact

    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    text = ": ".join(filter(None, (type(error).__name__, str(redact(said)))))
    return Untold(whom, PATH.sub(r"\1...", ADDRESS.sub(r"\1\2/...", text))[:LONGEST])


def note_untold(run_id: str, found: Iterable[Untold], ledger: Ledger) -> None:
    """Put it on record, for the run's page and its history. That fails nothing either."""
    for failure in found:
        try:
            ledger.events.append(Event(run_id, UNTOLD, failure.whom, failure.why, datetime.now(UTC)))
        except Exception:
            log.exception("it is not on record that %s was not told: %s", failure.whom, failure.why)
