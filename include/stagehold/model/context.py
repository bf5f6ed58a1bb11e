"""What a stage function is given besides its input frames."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class StageContext:
    """The facts a stage may depend on, so that it needs neither the clock nor a random source.

    ``partitions`` are the ids computed by this call: one for source splits and ``forward`` inputs, those of the
    wave for ``keyed`` ones. ``seed`` is the same for every attempt of the same stage and interval.
    """

    pipeline: str
    stage: str
    interval: str
    logical_date: datetime | None
    partitions: tuple[int, ...]
    seed: int
    params: Mapping[str, Any] = field(default_factory=dict)
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("stagehold.stage"))


def stage(function: Function) -> Function:
    """Mark a function as a stage; it stays an ordinary function that tests and spark-submit can call."""
    function.__stagehold_stage__ = True  # type: ignore[attr-defined]
    return function
