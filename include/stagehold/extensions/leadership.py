"""Tells functions of installed packages who may work on what: how leases are had, renewed too late, and lost."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum

from stagehold.extensions.installed import installed

LEADERSHIP = "stagehold.leadership_listeners"

log = logging.getLogger(__name__)


class Leadership(StrEnum):
    """What has become of a lease."""

    GRANTED = "granted"  # this process has it from now on
    LATE = "late"  # it could not be renewed this time, and has not ended yet
    RELEASED = "released"  # its holder needs it no more
    REVOKED = "revoked"  # somebody else took it: all that its holder still does is refused
    LOST = "lost"  # it ended, since it could not be renewed
    TIMED_OUT = "timed_out"  # its holder was silent until it ended, as whoever took it over has noticed


@dataclass(frozen=True)
class LeadershipChange:
    """Told in the process that noticed it. ``holder`` is who has or had the lease, ``reason`` why, in words."""

    what: Leadership
    lease: str
    holder: str
    epoch: int
    reason: str = ""


def tell_leadership(change: LeadershipChange) -> None:
    """Tell every listener. A listener that raises is logged, and harms nothing."""
    for name, listener in installed(LEADERSHIP).items():
        try:
            listener(change)
        except Exception:
            log.warning("leadership listener %s failed on %s of %s", name, change.what, change.lease, exc_info=True)


def tell_no_listener(change: LeadershipChange) -> None:
    """For a lease of which nobody is told."""
