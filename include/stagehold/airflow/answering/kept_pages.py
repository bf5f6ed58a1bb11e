"""Keeps pages that take long to make, so that a person who opens one does not wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock, Thread
from typing import Generic, TypeVar

from stagehold.model.kept import OF_PROCESS, KeptMemory, Shelf
from stagehold.spark.processes import give_memory_back

Page = TypeVar("Page")

MOST_AT_ONCE = 8
QUICK_SECONDS = 0.25  # what is made sooner is made for each request
# In times of what it took to make: files of the lake come and go unseen by the ledger, and a run writes all the time.
AGE, PAUSE = 20, 2


@dataclass(frozen=True)
class _Kept(Generic[Page]):
    seen: object
    page: Page
    seconds: float
    made_at: float


class KeptPages(Generic[Page]):
    """The pages that this process keeps. A page that took long to make is shown as it was while a thread makes it anew.
    That happens when ``seen`` tells that its sources have changed, or after a while.
    """

    def __init__(
        self,
        kind: str,
        memory: KeptMemory = OF_PROCESS,
        clock: Callable[[], float] = time.monotonic,
        *,
        at_once: int = MOST_AT_ONCE,
        shows_old: bool = True,
    ) -> None:
        """:param kind: what these pages are called where it is shown what the process keeps.
        :param at_once: threads that make pages; others wait for their turn.
        :param shows_old: an outdated page is shown while it is made anew.
        """
        self._clock, self._kept, self._shows_old = clock, Shelf[_Kept[Page]](kind, memory), shows_old
        self._lock, self._turns = Lock(), BoundedSemaphore(at_once)
        self._problems: dict[Hashable, Exception] = {}
        self._under_way: set[Hashable] = set()

    def page(self, name: Hashable, seen: object, make: Callable[[], Page], large: Callable[[], bool]) -> Page | None:
        """The page of this name; None while a ``large`` page is made and there is none that may be shown.

        :raises Exception: the error of the thread that made the page, once.
        """
        kept = self._kept.get(name)
        with self._lock:
            problem = self._problems.pop(name, None)
        if problem is not None:
            raise problem
        if kept is None and not large():
            return self._made(name, seen, make, awaited=True).page
        if kept is None or self._is_outdated(kept, seen):
            self._make_aside(name, seen, make)
            return kept.page if kept and self._shows_old else None
        return kept.page

    def current(self, name: Hashable, seen: object) -> Page | None:
        """The page of this name, if it would be made the same now, as far as ``seen`` and its age tell that."""
        kept = self._kept.get(name)
        return kept.page if kept and kept.seen == seen and not self._is_outdated(kept, seen) else None

    def forget(self, name: Hashable) -> None:
        """Forget the page of this name: it is made anew when it is asked for next."""
        self._kept.drop(name)

    def _is_outdated(self, kept: _Kept[Page], seen: object) -> bool:
        age = self._clock() - kept.made_at
        return age > AGE * kept.seconds or (kept.seen != seen and age > PAUSE * kept.seconds)

    def _made(self, name: Hashable, seen: object, make: Callable[[], Page], *, awaited: bool) -> _Kept[Page]:
        """What nobody waited for is kept however quick it was: whoever asks next is to have it."""
        began = self._clock()
        page = make()
        made = _Kept(seen, page, self._clock() - began, self._clock())
        if made.seconds > QUICK_SECONDS or not awaited:
            self._kept.put(name, made, own=page)
        else:
            self._kept.drop(name)
        return made

    def _make_aside(self, name: Hashable, seen: object, make: Callable[[], Page]) -> None:
        with self._lock:
            if name in self._under_way:
                return
            self._under_way.add(name)
        Thread(target=self._work_aside, args=(name, seen, make), name=f"page of {name}", daemon=True).start()

    def _work_aside(self, name: Hashable, seen: object, make: Callable[[], Page]) -> None:
        try:
            with self._turns:
                self._made(name, seen, make, awaited=False)
        except Exception as error:  # noqa: BLE001 - told to whoever asks next
            with self._lock:
                self._problems[name] = error
        finally:
            with self._lock:
                self._under_way.discard(name)
            give_memory_back()
