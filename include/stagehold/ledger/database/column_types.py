"""Column types that give and take the types of `model.records`, and the database's own clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Enum, Text, TypeDecorator
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from stagehold.model.choices import CodeChoice, CodeHandling
from stagehold.model.records import DataFile, StatePart
from stagehold.model.source_position import Position, read_position, write_position

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class UtcTime(TypeDecorator[datetime]):
    """A moment, always UTC and aware in Python; text that sorts by time in SQLite, timestamptz in PostgreSQL."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


class DataFiles(TypeDecorator[tuple[DataFile, ...]]):
    """The files of a partition as a JSON list of objects."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Sequence[DataFile] | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return [asdict(file) for file in value or ()]

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[DataFile, ...]:  # noqa: ARG002
        return tuple(DataFile(**file) for file in value)


def written_part(part: StatePart) -> dict[str, Any]:
    """The part as it is written: without a shape, as earlier versions wrote it."""
    facts = asdict(part)
    return facts if part.shape else {name: value for name, value in facts.items() if name != "shape"}


class StateParts(TypeDecorator[tuple[StatePart, ...]]):
    """What a partition keeps for later intervals as a JSON list of objects; NULL is nothing."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Sequence[StatePart] | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return [written_part(part) for part in value] if value else None

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[StatePart, ...]:  # noqa: ARG002
        return tuple(
            StatePart(**{**part, "files": tuple(DataFile(**file) for file in part["files"])}) for part in value or ()
        )


class CodeChoices(TypeDecorator[tuple[CodeChoice, ...]]):
    """What a restore does with data of other code as a JSON list of objects; NULL is nothing."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Sequence[CodeChoice] | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return [asdict(choice) for choice in value] if value else None

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[CodeChoice, ...]:  # noqa: ARG002
        return tuple(
            CodeChoice(**{**choice, "handling": CodeHandling(choice["handling"]), "made_by": tuple(choice["made_by"])})
            for choice in value or ()
        )


class AsJson(TypeDecorator[Any]):
    """A value of ours of any kind as JSON; NULL is None."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else _form(self.kind).dump_python(value, mode="json")

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else _form(self.kind).validate_python(value)


@cache
def _form(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # here, as `stagehold status` needs none of it

    return TypeAdapter(kind)


class AsPosition(TypeDecorator[Position]):
    """A position in a source as JSON, in the form that the commits of its readers have it in."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Position | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return value and write_position(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Position:  # noqa: ARG002
        return read_position(value)


class Texts(TypeDecorator[tuple[str, ...]]):
    """Short texts as a JSON list; NULL is none."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Sequence[str] | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return list(value) if value else None

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[str, ...]:  # noqa: ARG002
        return tuple(value or ())


class Counts(TypeDecorator[tuple[tuple[str, int], ...]]):
    """Names with whole numbers as a JSON list of pairs; NULL is none."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Sequence[tuple[str, int]] | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return [list(pair) for pair in value] if value else None

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[tuple[str, int], ...]:  # noqa: ARG002
        return tuple((name, count) for name, count in value or ())


class FreeText(TypeDecorator[str]):
    """Text that nobody of ours wrote (stack traces, observed values): what PostgreSQL refuses to store is replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return value and storable(value)


def storable(text: str) -> str:
    """The text as a `FreeText` keeps it, for who tells the chronicle what is stored."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def words(enum: type[StrEnum], length: int = 32) -> Enum:
    """A state word stored as its text, so that a new word needs no migration."""
    return Enum(
        enum,
        native_enum=False,
        create_constraint=False,
        length=length,
        values_callable=lambda kind: [word.value for word in kind],
    )


class DatabaseTime(FunctionElement[datetime]):
    """The database's clock, ``seconds`` from now: the only clock that processes on different machines share."""

    type = UtcTime()
    inherit_cache = True

    def __init__(self, seconds: float = 0) -> None:
        super().__init__(seconds)


@compiles(DatabaseTime, "sqlite")
def _sqlite_time(element: DatabaseTime, compiler: SQLCompiler, **options: Any) -> str:
    # Milliseconds are all SQLite knows; the zeros make the text as long as the ones SQLAlchemy writes.
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', {compiler.process(element.clauses, **options)} || ' seconds')"


@compiles(DatabaseTime, "postgresql")
def _postgresql_time(element: DatabaseTime, compiler: SQLCompiler, **options: Any) -> str:
    # Not now(): that is when the transaction began, which may be long before it got the row lock.
    return f"clock_timestamp() + make_interval(secs => {compiler.process(element.clauses, **options)})"


class bytes_of(FunctionElement[int]):
    """How large the files in a `DataFiles` column are together; added up by the database, as there may be very many
    rows.
    """

    type = BigInteger()
    inherit_cache = True


@compiles(bytes_of, "sqlite")
def _sqlite_bytes(element: bytes_of, compiler: SQLCompiler, **options: Any) -> str:
    files = compiler.process(element.clauses, **options)
    return f"coalesce((SELECT sum(json_extract(value, '$.bytes')) FROM json_each({files})), 0)"


@compiles(bytes_of, "postgresql")
def _postgresql_bytes(element: bytes_of, compiler: SQLCompiler, **options: Any) -> str:
    files = compiler.process(element.clauses, **options)
    return f"coalesce((SELECT sum((file ->> 'bytes')::bigint) FROM json_array_elements({files}) AS file), 0)"


class first_path(FunctionElement[str]):
    """Where the first of the files in a `DataFiles` column lies, from its table; NULL of none."""

    type = Text()
    inherit_cache = True


@compiles(first_path, "sqlite")
def _sqlite_first_path(element: first_path, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_extract({compiler.process(element.clauses, **options)}, '$[0].path')"


@compiles(first_path, "postgresql")
def _postgresql_first_path(element: first_path, compiler: SQLCompiler, **options: Any) -> str:
    return f"({compiler.process(element.clauses, **options)} -> 0 ->> 'path')"
