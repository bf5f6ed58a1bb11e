"""Some cells of the table that `make doors` makes, so that it stays runnable."""

from __future__ import annotations

import pytest
from fuzz.doors.place import Place
from fuzz.doors.table import EQUAL, cell
from fuzz.doors.wishes import WISHES, Door
from tests.e2e.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

WISH = {wish.key: wish for wish in WISHES}


@pytest.mark.parametrize(
    ("door", "wish"),
    [
        (Door.BACKFILL, "no_date"),
        (Door.BACKFILL, "both"),
        (Door.DAGS_TEST, "unknown"),
        (Door.TAB, "from_stage_never"),
        (Door.TAB, "no_date"),
    ],
)
def test_a_wish_has_one_answer_whatever_door_it_comes_through(stack: Stack, door: Door, wish: str) -> None:
    found = cell(Place.of(stack, door), WISH[wish])
    assert (found.result, found.differences) == (EQUAL, ())
