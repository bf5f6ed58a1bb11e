"""Stages that `extend` another stage or a template: its fields are put in before anything of them is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stagehold.spec.form import show, suggest
from stagehold.spec.yaml import Document, FieldPath, Problem

EXTENDS, STAGES, TEMPLATES = "extends", "stages", "templates"
OF_ITS_OWN = (EXTENDS, "uid")  # which nobody takes over
INSTEAD = (
    frozenset({"job", "sql", "script"}),
    frozenset({"source", "inputs"}),
)  # fields of which one stands for the others, too
WHOLE = ("inputs", "state")  # mappings that are not put together by their names


def extended(document: Document) -> Document:
    """The document in which each stage has what it takes over, with the places where that is written."""
    stages = document.data.get(STAGES)
    if not isinstance(stages, Mapping):
        return document
    work = _Extending(document.data)
    found = {name: work.whole((STAGES, name), ()) for name in stages}
    problems = (*document.problems, *work.problems)
    return replace(document, data={**document.data, STAGES: found}, problems=problems, taken=work.taken)


class _Extending:
    """Puts stages and templates together with what they extend, each once."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._places = {
            str(name): (kind, str(name)) for kind in (TEMPLATES, STAGES) for name in _mapping(data.get(kind))
        }
        self._data = data
        self._done: dict[FieldPath, Any] = {}
        self.taken: dict[FieldPath, FieldPath] = {}
        self.problems = [
            Problem((TEMPLATES, name), show(name), "a name that no stage has")
            for name in _mapping(data.get(TEMPLATES))
            if name in _mapping(data.get(STAGES))
        ]

    def whole(self, place: FieldPath, around: tuple[FieldPath, ...]) -> Any:
        """A stage or template with all that it takes over.

        :param around: those that extend it.
        """
        if place not in self._done:
            kind, name = place
            own = _mapping(self._data.get(kind)).get(name)
            base = self._base(place, own, around)
            fields = self.whole(base, (place, *around)) if base else None
            self._done[place] = self._joined(place, own, base, _mapping(fields)) if base else own
        return self._done[place]

    def _base(self, place: FieldPath, own: Any, around: tuple[FieldPath, ...]) -> FieldPath | None:
        """The place of what is extended; None if nothing is, or nothing that there is."""
        if EXTENDS not in _mapping(own):
            return None
        name = own[EXTENDS]
        base = self._places.get(name) if isinstance(name, str) else None
        if base is None:
            others = tuple(each for each in self._places if each != place[1])
            allowed = f"a stage of this file, or one of its `templates`: {suggest(str(name), others)}"
        elif base in (place, *around):
            circle = (place, *reversed(around[: (place, *around).index(base)]), place)
            allowed = f"no circle: {' extends '.join(name for _, name in circle)}"
        else:
            return base
        self.problems.append(Problem((*place, EXTENDS), show(name), allowed))
        return None

    def _joined(self, place: FieldPath, own: Any, base: FieldPath, fields: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(own)
        replaced = {field for group in INSTEAD if group & own.keys() for field in group}
        for name, value in fields.items():
            if name in OF_ITS_OWN or (name in replaced and name not in own):
                continue
            if name not in own:
                self.taken[*place, name] = (*base, name)
                found[name] = value
            elif isinstance(value, Mapping) and isinstance(own[name], Mapping) and name not in WHOLE:
                self.taken |= {(*place, name, part): (*base, name, part) for part in value if part not in own[name]}
                found[name] = {**value, **own[name]}
        return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
