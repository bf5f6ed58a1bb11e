"""How what a stage reads is cut into splits, and how tasks come by them, as authors declare it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, model_serializer
from pydantic_core import PydanticCustomError

from stagehold.model.units import Size, read_size, write_size
from stagehold.spec.settings.fields import Count, SpecPart


class Assignment(StrEnum):
    """How tasks that share a source come by its splits."""

    STATIC = "static"  # each has its own
    DYNAMIC = "dynamic"  # each asks for the next ones when it is done with what it has


SplitList = tuple[tuple[str, ...], ...]
SPLITS_ALLOWED = (
    "a whole number, 1 or more, {bytes: 128mb}, or a list with the files of each split; or {count: 16, assignment: "
    "dynamic}, or {files: [...], assignment: dynamic} with that list"
)


class SplitSize(SpecPart):
    """The size of a split: there are as many as it takes for each to have about so many bytes."""

    bytes: Annotated[int, PlainSerializer(write_size, when_used="json")]  # read by `read_splits`


class AssignedSplits(SpecPart):
    """Splits, and how tasks come by them."""

    cut: int | SplitList
    assignment: Assignment

    @model_serializer(when_used="json")
    def _written(self) -> Mapping[str, Any]:
        name = "count" if isinstance(self.cut, int) else "files"
        return {name: self.cut, "assignment": self.assignment}


def read_splits(given: Any) -> int | SplitSize | SplitList | AssignedSplits:
    """A number, a size, or a list that names what each split reads, one text or several; or one of these with how tasks
    come by it.
    """
    if isinstance(given, AssignedSplits):
        return given
    if isinstance(given, Mapping) and "assignment" in given:
        (name, cut), *more = [(name, cut) for name, cut in given.items() if name != "assignment"] or [("", None)]
        fits = given["assignment"] in (*Assignment,) and not more and isinstance(cut, FORMS.get(name, ()))
        if not fits:
            raise PydanticCustomError("splits", SPLITS_ALLOWED)
        read = read_splits(cut)
        return AssignedSplits.model_construct(cut=read, assignment=Assignment(given["assignment"]))
    if isinstance(given, Mapping) and set(given) == {"bytes"}:
        return SplitSize(bytes=read_size(given["bytes"]))
    if isinstance(given, SplitSize):
        return given
    if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return given
    if isinstance(given, list | tuple) and given:
        splits = tuple(
            (item,) if isinstance(item, str) else tuple(item) if isinstance(item, list | tuple) else ()
            for item in given
        )
        if all(split and all(isinstance(text, str) and text for text in split) for split in splits):
            return splits
    raise PydanticCustomError("splits", SPLITS_ALLOWED)


def cut_of(splits: int | SplitSize | SplitList | AssignedSplits | None) -> int | SplitSize | SplitList | None:
    """The splits themselves, whoever takes them."""
    return splits.cut if isinstance(splits, AssignedSplits) else splits


FORMS: Mapping[str, type | tuple[type, ...]] = {"count": int, "files": (list, tuple)}  # of splits with an assignment


class WrittenSplitSize(SpecPart):
    """A `SplitSize` as a file says it."""

    bytes: Size


class WrittenSplitCount(SpecPart):
    """A number of splits, and how tasks come by them."""

    count: Count
    assignment: Assignment


class WrittenSplitFiles(SpecPart):
    """A list of splits, and how tasks come by them."""

    files: Annotated[list[str | list[str]], Field(min_length=1)]
    assignment: Assignment


WrittenSplits = (
    Count
    | WrittenSplitSize
    | Annotated[list[str | list[str]], Field(min_length=1)]
    | WrittenSplitCount
    | WrittenSplitFiles
)
Splits = Annotated[
    int | SplitSize | SplitList | AssignedSplits,
    BeforeValidator(read_splits, json_schema_input_type=WrittenSplits),
]
