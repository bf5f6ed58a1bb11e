"""Sources as their authors declare them: what is read, and how it is cut into splits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from stagehold.model.size import Size, read_size
from stagehold.model.spec_part import SpecPart

INFER = "infer"  # in place of a schema: take the one that the first file seems to have


class SourceKind(StrEnum):
    """Files of one format, a Delta table, or a table of a database."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    DELTA = "delta"
    JDBC = "jdbc"


class OnChange(StrEnum):
    """What to do when something that an incremental source has read is not what it was."""

    ERROR = "error"
    IGNORE = "ignore"


class Reread(StrEnum):
    """How long what was read from a database counts: nothing tells whether its rows have changed since."""

    INTERVAL = "interval"
    RUN = "run"


SplitList = tuple[tuple[str, ...], ...]
SPLITS_ALLOWED = "a whole number, 1 or more, {bytes: 128mb}, or a list with the files of each split"
BOUND_ALLOWED = "a whole number, a date or a time without a zone"


class SplitSize(SpecPart):
    """As many splits as it takes for each to have about so many bytes."""

    bytes: Size


def read_splits(given: Any) -> int | SplitSize | SplitList:
    """A number, a size, or a list that names what each split reads: one text or several."""
    if isinstance(given, Mapping) and set(given) == {"bytes"}:
        return SplitSize(bytes=read_size(given["bytes"]))
    if isinstance(given, SplitSize):
        return given
    if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return given
    if isinstance(given, list | tuple) and given:
        splits = tuple((item,) if isinstance(item, str) else tuple(item) if isinstance(item, list | tuple) else () for item in given)
        if all(split and all(isinstance(text, str) and text for text in split) for split in splits):
            return splits
    raise PydanticCustomError("splits", SPLITS_ALLOWED)


def read_bound(given: Any) -> int | date | datetime:
    """A bound of a range; a text has to be a date or a time in ISO form."""
    if isinstance(given, str):
        try:
            given = date.fromisoformat(given) if len(given) <= len("2024-01-01") else datetime.fromisoformat(given)
        except ValueError:
            raise PydanticCustomError("bound", BOUND_ALLOWED) from None
    if isinstance(given, bool) or not isinstance(given, int | date) or getattr(given, "tzinfo", None) is not None:
        raise PydanticCustomError("bound", BOUND_ALLOWED)
    return given


Splits = Annotated[int | SplitSize | SplitList, BeforeValidator(read_splits)]
Bound = Annotated[int | datetime | date, BeforeValidator(read_bound)]
Version = Annotated[int, Field(strict=True, ge=0)]


class Source(SpecPart):
    """What a stage without inputs reads, cut into splits, one partition each. Which fields a kind has is checked by the loader.

    ``${lake}`` in a path is the lake. ``ddl`` is what the file calls schema; `INFER` there means the first file's.
    """

    kind: SourceKind
    splits: Splits
    path: str | None = None
    incremental: bool = False
    on_change: OnChange = OnChange.ERROR
    ddl: str | None = None
    header: bool = False
    delimiter: str = ","
    options: Mapping[str, str] = Field(default_factory=dict)
    version: Version | None = None
    from_version: Version | None = None
    to_version: Version | None = None
    url: str | None = None
    driver: str | None = None
    table: str | None = None
    query: str | None = None
    column: str | None = None
    lower: Bound | None = None
    upper: Bound | None = None
    user_variable: str | None = None
    password_variable: str | None = None
    reread: Reread = Reread.INTERVAL

    @property
    def place(self) -> str:
        """Where the data is, whatever is taken of it and however it is cut."""
        if self.kind is SourceKind.JDBC:
            return f"{self.url} {self.table or self.query}"
        return self.path or " ".join(text for split in self.listed for text in split)

    @property
    def listed(self) -> SplitList:
        """What each split reads, where the file says so."""
        return self.splits if isinstance(self.splits, tuple) else ()

    @property
    def dealt(self) -> bool:
        """Whether what there is gets dealt into splits, so that one file more or less may move others."""
        return self.kind is not SourceKind.JDBC and not self.listed

    @property
    def skips_changes(self) -> bool:
        return self.on_change is OnChange.IGNORE
