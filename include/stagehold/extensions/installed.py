"""What installed packages offer under an entry point's group."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from stagehold.model.states import RunStatusChange, StageStatusChange

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

log = logging.getLogger(__name__)
LISTENERS = "stagehold.run_status_listeners"
STAGE_LISTENERS = "stagehold.stage_status_listeners"


@cache
def installed(group: str) -> Mapping[str, Callable[..., Any]]:
    """The functions of a group by their names. What cannot be loaded is left out and told, and so is a name that two
    packages offer, since nobody could say which of them is meant. Looked for once in a process.
    """
    from importlib.metadata import entry_points

    offered = tuple(entry_points(group=group))
    counts = Counter(entry_point.name for entry_point in offered)
    for name in sorted(name for name, count in counts.items() if count > 1):
        log.warning("%s: %s is left out, since more than one package offers it", group, name)
    loaded = {entry_point.name: _loaded(entry_point) for entry_point in offered if counts[entry_point.name] == 1}
    return {name: function for name, function in loaded.items() if function is not None}


def _loaded(entry_point: EntryPoint) -> Callable[..., Any] | None:
    try:
        function = entry_point.load()
    except Exception as error:  # noqa: BLE001 - code of others; whatever it does must not end a run
        log.warning(
            "%s: %s (%s) is left out: %s: %s",
            entry_point.group,
            entry_point.name,
            entry_point.value,
            type(error).__name__,
            error,
        )
        return None
    if not callable(function):
        log.warning(
            "%s: %s (%s) is left out: it cannot be called", entry_point.group, entry_point.name, entry_point.value
        )
        return None
    return function  # type: ignore[no-any-return]


def tell_listeners(change: RunStatusChange) -> None:
    """Tell every listener, in the process that made the change and after it was recorded. A listener that raises is
    logged, and harms nothing.
    """
    for name, listener in installed(LISTENERS).items():
        try:
            listener(change)
        except Exception:
            log.warning("run status listener %s failed on %s -> %s", name, change.run_id, change.after, exc_info=True)


def tell_stage_listeners(change: StageStatusChange) -> None:
    """Likewise of a stage of a run."""
    for name, listener in installed(STAGE_LISTENERS).items():
        try:
            listener(change)
        except Exception:
            log.warning("stage status listener %s failed on %s of %s", name, change.stage, change.run_id, exc_info=True)
