"""In which wave something failed travels with its error, for who tells people of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_ATTRIBUTE = "__stagehold_wave__"


@dataclass(frozen=True)
class WavePlace:
    stage: str
    wave: int
    partitions: tuple[int, ...]


@contextmanager
def in_wave(place: WavePlace) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if place_of(error) is None:
            setattr(error, _ATTRIBUTE, place)
        raise


def place_of(error: BaseException | None) -> WavePlace | None:
    """Of an error, or of what it came from."""
    while error is not None:
        place: WavePlace | None = getattr(error, _ATTRIBUTE, None)
        if place is not None:
            return place
        error = error.__cause__
    return None
