"""Outlives the supervisor to end what it leaves behind: `python -m stagehold.local.guard`, started by the supervisor.

Its standard input is a pipe that only the supervisor holds, so it reads to the end exactly when the supervisor has
ended, whatever ended it.
"""

from __future__ import annotations

import sys

from stagehold.local.state import read_state
from stagehold.settings import Settings, load_settings
from stagehold.spark.processes import kill_session


def end_leftovers(settings: Settings) -> None:
    """Kill what is left of the sessions of the services that the supervisor recorded last."""
    state = read_state(settings)
    for service in state.services if state else ():
        kill_session(service.process)


if __name__ == "__main__":
    sys.stdin.read()
    end_leftovers(load_settings())
