"""Reports about a run that could not be sent. That fails nothing, so it is put on record."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Event

UNTOLD = "untold"  # the kind of such an event; its subject says whom the report was for
LONGEST = 300  # characters of a reason
# The part behind the host in the address of a webhook is often all that keeps others from using it.
ADDRESS = re.compile(r"(https?://)(?:[^/\s@]*@)?([^/\s'\"?#)]+)[^\s'\")]*")
PATH = re.compile(r"(\burl: )\S+")

log = logging.getLogger(__name__)


Untold = tuple[str, str]  # whom the report was for, and why it could not be sent


def untold(whom: str, error: BaseException) -> Untold:
    """The reason as a text without Airflow's secrets and without the paths of addresses."""
    from airflow.sdk._shared.secrets_masker import redact

    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    text = ": ".join(filter(None, (type(error).__name__, str(redact(said)))))
    return whom, PATH.sub(r"\1...", ADDRESS.sub(r"\1\2/...", text))[:LONGEST]


def note_untold(run_id: str, found: Iterable[Untold], ledger: Ledger) -> None:
    """Put it on record, for the run's page and its history. A failure to do so fails nothing either."""
    for whom, why in found:
        try:
            ledger.events.append(Event(run_id, UNTOLD, whom, why, datetime.now(UTC)))
        except Exception:
            log.exception("it is not on record that %s was not told: %s", whom, why)
