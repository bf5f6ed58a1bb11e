"""Each cell of the table: a wish through a door, what came of it, and whether that is what is expected."""

from __future__ import annotations

import json
import re
import time
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from fuzz.doors.clicks import CLICKED_DOORS
from fuzz.doors.doors import DOORS, Answer, Asked
from fuzz.doors.place import Place
from fuzz.doors.wishes import CLICKED, STAGES, WISHES, Computed, Door, End, Expected, Standing, Wish

from stagehold.airflow.context.settled_wish import BY

SHOWN = 600  # letters of what was said that are kept
EQUAL, BY_INTENT, NO_WAY, DIFFERENT = "equal", "by intent", "no way", "DIFFERENT"


@dataclass(frozen=True)
class Cell:
    """``computed`` has the epochs of the partitions of each date and stage; ``why`` the reason of a cell that was not
    run, or that is meant to come out otherwise.
    """

    wish: str
    door: str
    result: str
    end: str = ""
    computed: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    said: str = ""
    why: str = ""
    differences: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    notes: str = ""
    seconds: float = 0.0
    made: str = ""

    @property
    def ran(self) -> bool:
        return self.result != NO_WAY


def cell(place: Place, wish: Wish) -> Cell:
    """Put the wish through the door, unless the door has no way to say it."""
    if reason := wish.cannot.get(place.door.asked_alike):
        return Cell(wish.key, place.door, NO_WAY, why=reason)
    began = time.monotonic()
    try:
        found = _run(place, wish)
    except Exception:  # noqa: BLE001 - the other cells are run all the same
        found = Cell(wish.key, place.door, DIFFERENT, differences=(traceback.format_exc()[-SHOWN:],))
    seconds = round(time.monotonic() - began, 1)
    return replace(found, seconds=seconds, made=f"{datetime.now(UTC):%Y-%m-%d %H:%M}")


def _run(place: Place, wish: Wish) -> Cell:
    dates = place.dates_of(wish)
    before = datetime.now(UTC)
    runs = place.prepare(wish, dates)
    known = "\n".join(map(place.note, runs.values()))
    since = before if Standing.GOES_ON in wish.dates else datetime.now(UTC)
    answer = {**DOORS, **CLICKED_DOORS}[place.door](Asked(place, wish.ask, dates, runs))
    if Standing.GOES_ON in wish.dates:
        for run in runs.values():
            place.airflow.wait(run, 240)
    computed = place.computed(since)
    expected, why = wish.unlike.get(place.door.asked_alike, (wish.expected, ""))
    differences = tuple(_differences(expected, answer, dates, computed)) + tuple(
        _of_notes(expected, answer, dates, known)
    )
    result = DIFFERENT if differences else BY_INTENT if why else EQUAL
    return Cell(
        wish=wish.key,
        door=place.door,
        result=result,
        end=answer.end,
        computed=computed,
        said=_excerpt(answer, _pattern(expected, dates)),
        why=why,
        differences=differences,
        runs=tuple(run.run_id for run in answer.runs),
        notes=answer.notes or "",
    )


def _differences(
    expected: Expected, answer: Answer, dates: Sequence[str], computed: Mapping[str, Mapping[str, Sequence[int]]]
) -> Iterator[str]:
    for day, wanted in zip(dates, expected.computed, strict=True):
        found = {stage: len(epochs) for stage, epochs in computed.get(day, {}).items()}
        if found != dict(wanted):
            yield f"{day}: computed {_counts(found)}, expected {_counts(wanted)}"
    if answer.end not in expected.ends:
        yield f"it ended {answer.end}, expected {' or '.join(sorted(expected.ends))}: {answer.said[-SHOWN:]}"
    pattern = _pattern(expected, dates)
    if pattern and not re.search(pattern, _one_line(answer.said)):
        yield f"neither door nor log says {pattern!r}: {answer.said[:SHOWN]}"


def _of_notes(expected: Expected, answer: Answer, dates: Sequence[str], known: str) -> Iterator[str]:
    """The notes say what there is to say of the wish, and nothing else that they did not say before."""
    if answer.notes is None or End.GREEN not in expected.ends:
        return
    pattern = _pattern(expected, dates)
    ours = [line for line in answer.notes.splitlines() if line.startswith(BY)]
    if pattern and not any(re.search(pattern, line) for line in ours):
        yield f"no note says {pattern!r}: {answer.notes[:SHOWN]}"
    if (new := [line for line in ours if line not in known]) and not pattern:
        yield f"a note says what nobody expected: {new}"


def _pattern(expected: Expected, dates: Sequence[str]) -> str:
    return expected.said.replace("{date}", dates[0]).replace("{other}", dates[-1])


def _counts(computed: Computed) -> str:
    return ", ".join(f"{stage} {computed[stage]}" for stage in STAGES if stage in computed) or "nothing"


def _one_line(said: str) -> str:
    """What a terminal broke is one line again."""
    return " ".join(said.split())


def _excerpt(answer: Answer, pattern: str) -> str:
    """What was said of the wish, or why it was refused, without places of this machine."""
    told = re.sub(r"/(?:tmp|home|root|work|usr)/[^\s`]*", "...", _one_line(answer.said))
    found = re.search(pattern, told) if pattern else None
    if found is None:
        return told[-SHOWN:] if answer.end is not End.GREEN else ""
    return told[max(0, found.start() - SHOWN // 3) :][:SHOWN]


def read(path: Path) -> list[Cell]:
    """Cells that were run before."""
    if not path.exists():
        return []
    return [
        Cell(**{**told, "differences": tuple(told["differences"]), "runs": tuple(told["runs"])})
        for told in json.loads(path.read_text())["cells"]
    ]


def merged(known: Collection[Cell], new: Collection[Cell]) -> list[Cell]:
    """In the order of the table; what was run anew counts."""
    by_place = {(one.wish, one.door): one for one in (*known, *new)}
    order = [(wish.key, str(door)) for wish in WISHES for door in Door]
    return [by_place[place] for place in order if place in by_place]


def as_json(cells: Sequence[Cell], facts: Mapping[str, object]) -> str:
    return json.dumps({**facts, "cells": [asdict(one) for one in cells]}, indent=1) + "\n"


MARKS = {EQUAL: "=", BY_INTENT: "≠", NO_WAY: "n/a", DIFFERENT: "**!**"}


def as_markdown(cells: Sequence[Cell], facts: Mapping[str, object]) -> str:
    by_place = {(one.wish, one.door): one for one in cells}
    doors = [door for door in Door if any(one.door == door for one in cells)]
    lines = [
        "# Wishes and doors",
        "",
        *(f"* {name}: {value}" for name, value in facts.items()),
        "",
        f"| Wish | Dates before | Computed | End | {' | '.join(doors)} |",
        f"|---|---|---|---|{'---|' * len(doors)}",
    ]
    for wish in WISHES:
        marks = [MARKS[one.result] if (one := by_place.get((wish.key, door))) else " " for door in doors]
        ends = " or ".join(sorted(wish.expected.ends))
        wanted = "; ".join(map(_counts, wish.expected.computed))
        lines.append(f"| {wish.text} | {', '.join(wish.dates)} | {wanted} | {ends} | {' | '.join(marks)} |")
    return "\n".join([*lines, "", *_explained(cells), ""])


def _explained(cells: Sequence[Cell]) -> Iterator[str]:
    counts = {result: sum(one.result == result for one in cells) for result in MARKS}
    empty = len(WISHES) * len({one.door for one in cells if one.door not in CLICKED}) - sum(
        one.door not in CLICKED for one in cells
    )
    yield (
        f"`=` {counts[EQUAL]} cells came out equal: the same partitions got a new epoch, the end is the same, and what "
        f"there is to say was said. `≠` {counts[BY_INTENT]} come out otherwise by intent. `n/a` {counts[NO_WAY]} have "
        f"no way to be said there. `!` {counts[DIFFERENT]} differ. {empty} cells are empty: they were not run yet, and "
        "`make doors CELLS=--missing` runs them. When each one was run is in `doors.json`."
    )
    for mark, title in ((BY_INTENT, "Otherwise by intent"), (NO_WAY, "No way to say it"), (DIFFERENT, "Different")):
        chosen = [one for one in cells if one.result == mark]
        if chosen:
            yield from ("", f"## {title}", "")
        for one in chosen:
            text = next(wish.text for wish in WISHES if wish.key == one.wish)
            yield f"* {text}, {one.door}: {one.why or ' '.join(_one_line(said) for said in one.differences)}"
