"""Keeps pages of runs that take long to make, so that whoever looks at one does not wait for it."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock, Thread

from stagehold.airflow.run_page.grid import LaidOut
from stagehold.ledger.revision import Revision
from stagehold.run.planning.planning import RunRequest

MOST_PAGES = 8
QUICK_SECONDS = 0.25  # what is made sooner is made for each request
# In times of what it took to make: files of the lake come and go unseen by the ledger, and a run writes all the time.
AGE, PAUSE = 20, 2

Make = Callable[[], LaidOut]


@dataclass(frozen=True)
class Seen:
    """What a page was made from, as far as that can be told at once."""

    request: RunRequest
    revision: Revision


@dataclass(frozen=True)
class _Kept:
    seen: Seen
    page: LaidOut
    seconds: float
    made_at: float


class KeptPages:
    """Of this process. A page that took long is shown as it was while a thread makes it anew: when what it was made
    from has changed, or after a while.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._problems: dict[str, Exception] = {}
        self._under_way: set[str] = set()

    def page(self, run: str, seen: Seen, make: Make, large: Callable[[], bool]) -> LaidOut | None:
        """The page of a run; None while that of a ``large`` one is made for the first time.

        :raises Exception: what went wrong in the thread, once.
        """
        with self._lock:
            kept, problem = self._kept.get(run), self._problems.pop(run, None)
        if problem is not None:
            raise problem
        if kept is None and not large():
            return self._made(run, seen, make).page
        if kept is None or self._is_outdated(kept, seen):
            self._make_aside(run, seen, make)
        return kept.page if kept else None

    def _is_outdated(self, kept: _Kept, seen: Seen) -> bool:
        age = self._clock() - kept.made_at
        return age > AGE * kept.seconds or (kept.seen != seen and age > PAUSE * kept.seconds)

    def _made(self, run: str, seen: Seen, make: Make) -> _Kept:
        began = self._clock()
        page = make()
        made = _Kept(seen, page, self._clock() - began, self._clock())
        with self._lock:
            self._kept.pop(run, None)
            if made.seconds > QUICK_SECONDS:
                self._kept[run] = made
            while len(self._kept) > MOST_PAGES:
                self._kept.popitem(last=False)
        return made

    def _make_aside(self, run: str, seen: Seen, make: Make) -> None:
        with self._lock:
            if run in self._under_way:
                return
            self._under_way.add(run)
        Thread(target=self._work_aside, args=(run, seen, make), name=f"page of {run}", daemon=True).start()

    def _work_aside(self, run: str, seen: Seen, make: Make) -> None:
        try:
            self._made(run, seen, make)
        except Exception as error:  # noqa: BLE001 - told to whoever asks next
            with self._lock:
                self._problems[run] = error
        finally:
            with self._lock:
                self._under_way.discard(run)
