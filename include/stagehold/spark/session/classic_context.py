"""What jobs of classic Spark ask of `spark.sparkContext` and its JVM though they compute nothing there: log levels,
names, a logger, values for workers. Spark Connect has neither; what it can do for such a job is here.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkAttributeError

from stagehold.code.connect_lacks import CONTEXT_OF_SESSION, PASSED_OVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

LEVELS = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")


class ClassicContext:
    """A session's answer to `sparkContext`. Settings of processes are passed over, as they are of a builder.

    :raises PySparkAttributeError: it is asked for what Spark Connect lacks, as an RDD
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name in PASSED_OVER:
            return lambda *_, **__: None
        raise _lacking(CONTEXT_OF_SESSION)

    @property
    def appName(self) -> str:
        return self._setting("spark.app.name")

    @property
    def applicationId(self) -> str:
        return self._setting("spark.app.id")

    @property
    def version(self) -> str:
        return self._spark.version

    @property
    def defaultParallelism(self) -> int:
        return int(self._setting("spark.sql.shuffle.partitions"))

    @property
    def _jvm(self) -> JvmNames:
        return JVM

    def stop(self) -> None:
        self._spark.stop()

    def getConf(self) -> SimpleNamespace:
        conf = self._spark.conf
        return SimpleNamespace(get=lambda name, default=None: conf.get(name, default), getAll=lambda: [*conf.getAll])

    def broadcast(self, value: object) -> SimpleNamespace:
        """The value by itself, which Python sends along with the function that uses it."""
        return SimpleNamespace(value=value, unpersist=_passed_over(), destroy=_passed_over())

    def _setting(self, name: str) -> str:
        return str(self._spark.conf.get(name, ""))


class JvmNames(SimpleNamespace):
    """A part of the JVM's names that jobs ask for; there are no others."""

    def __getattr__(self, name: str) -> None:
        raise _lacking("_jvm")


class Log4jLogger:
    """A logger of Log4j that writes where Python's logger of its name does. Its level is passed over."""

    def __init__(self, name: str = "") -> None:
        self._logger = logging.getLogger(name or None)
        self.debug, self.info, self.warn = self._logger.debug, self._logger.info, self._logger.warning
        self.trace, self.error, self.fatal = self._logger.debug, self._logger.error, self._logger.critical

    def setLevel(self, level: object) -> None:
        """Such levels are of Spark's own loggers (`org`), as a rule, of which there are none here."""


_LOGGERS = JvmNames(getLogger=Log4jLogger, getRootLogger=Log4jLogger)
_LEVEL = JvmNames(**{name: name for name in LEVELS})
JVM = JvmNames(org=JvmNames(apache=JvmNames(log4j=JvmNames(LogManager=_LOGGERS, Logger=_LOGGERS, Level=_LEVEL))))


def _passed_over() -> Callable[..., None]:
    """Made within a function, so that Python sends it to workers as it is."""
    return lambda *_, **__: None


def _lacking(name: str) -> PySparkAttributeError:
    return PySparkAttributeError(errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": name})
