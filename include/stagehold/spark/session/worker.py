"""What Spark's Python workers do before they import a module of the project; it is sent to them along with those."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

    from pyspark.sql.types import DataType

IMPORTING = "<frozen importlib._bootstrap"


def prepare() -> None:
    """Let a module say ``@pandas_udf("string")`` where there is no session that could parse the type.

    A worker needs just the functions of a module, never the types that plans are made with. Over Connect, nothing else
    in making a column or a function asks for a session. What a module makes of one while it is imported, it does not
    need here; whatever uses it later is told why it cannot.
    """
    from pyspark.sql import SparkSession, types

    os.environ.setdefault("SPARK_CONNECT_MODE_ENABLED", "1")
    types._parse_datatype_string = _any_type
    session: Any = SparkSession
    session.Builder.getOrCreate = _no_session
    session.active = session.getActiveSession = _no_session_yet


def with_environment(environment: Mapping[str, str | None], command: bytes) -> bytes:
    """A pickled function that sets these variables where it is read, or unsets those that are None, so that they are so
    when it is called.
    """
    return pickle.dumps(_Carried(dict(environment), command))


class _Carried:
    """Turns into the function itself where it is read."""

    def __init__(self, environment: dict[str, str | None], command: bytes) -> None:
        self._parts = (environment, command)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[dict[str, str | None], bytes]]:
        return unpacked, self._parts


def unpacked(environment: dict[str, str | None], command: bytes) -> Any:
    """What ``with_environment`` has packed, in the worker that is to call it."""
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return pickle.loads(command)  # noqa: S301 - Spark's workers read what their session sent


class NoSession:
    """Stands for a session, and for all that a module makes of one while it is imported."""

    def __getattr__(self, name: str) -> NoSession:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._used(name)

    def __call__(self, *_: object, **__: object) -> NoSession:
        return self._used("()")

    def __getitem__(self, key: object) -> NoSession:
        return self._used(f"[{key!r}]")

    def __iter__(self) -> Iterator[Any]:
        raise _no_spark("its rows")

    def __bool__(self) -> bool:
        raise _no_spark("what it answers")

    def _used(self, name: str) -> NoSession:
        if not is_importing():
            raise _no_spark(name)
        return self


def _no_spark(wanted: str) -> RuntimeError:
    return RuntimeError(
        f"a Python function that runs in Spark's workers asked a Spark session, or a frame, for {wanted}; there is no "
        "Spark in a worker. Ask in the stage's function, and let the Python function use the answer as a variable"
    )


def is_importing() -> bool:
    """Whether a module is being imported by whoever asks; in a worker and elsewhere."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        outer = frame.f_back
        if frame.f_code.co_name == "<module>" and outer and outer.f_code.co_filename.startswith(IMPORTING):
            return True
        frame = outer
    return False


def _no_session(*_: object) -> Any:
    return NoSession()


def _no_session_yet(*_: object) -> Any:
    return NoSession() if is_importing() else None


def _any_type(s: str) -> DataType:  # noqa: ARG001
    from pyspark.sql.types import NullType

    return NullType()
