"""Where the stages of a pipeline are computed, and with how many executors of which size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, PlainValidator
from pydantic_core import PydanticCustomError

from stagehold.spec.settings.fields import Count, Options, SpecPart


class Launcher(StrEnum):
    """What computes a region: the server that all of them share, or a Spark application of its own."""

    SERVER = "server"
    SUBMIT = "submit"


_MEMORY = re.compile(r"[1-9]\d*[kmgt]")


def _memory(given: object) -> str:
    if isinstance(given, str) and _MEMORY.fullmatch(given.lower()):
        return given.lower()
    raise PydanticCustomError("memory", "a size as Spark has it: 512m, 4g")


class Resources(SpecPart):
    """What a Spark application is given. None of it changes a result, so none of it counts in keys."""

    executor_memory: Annotated[str, PlainValidator(_memory, json_schema_input_type=str)] | None = None
    """Heap of each executor. Example: `executor_memory: 4g`"""

    executor_cores: Count | None = None
    """Cores of each executor, which are so many tasks at a time. Example: `executor_cores: 4`"""

    instances: Count | None = None
    """How many executors there are. Example: `instances: 8, executor_cores: 2`"""

    conf: Options = Field(default_factory=dict)
    """Other settings of Spark that say what an application is given and how it uses that, by name; no session's, no
    paths and no secrets. Example: `conf: {spark.dynamicAllocation.enabled: true}`"""

    def under(self, others: Iterable[Resources]) -> Resources:
        """These, with what others say put over them."""
        said, conf = self.model_dump(exclude_unset=True), dict(self.conf)
        for other in others:
            said |= other.model_dump(exclude_unset=True)
            conf |= other.conf
        return Resources.model_validate({**said, "conf": conf})

    @property
    def cores(self) -> int | None:
        """How many tasks all executors have at a time, where that is said."""
        return (self.instances or 1) * (self.executor_cores or 1) if self.instances or self.executor_cores else None

    @property
    def settings(self) -> Mapping[str, str]:
        """All of it, as Spark takes it. A standalone master goes by the cores of all executors, others by their
        number.
        """
        named = {
            "spark.executor.memory": self.executor_memory,
            "spark.executor.cores": self.executor_cores or (1 if self.instances else None),
            "spark.executor.instances": self.instances,
            "spark.cores.max": self.cores if self.instances else None,
        }
        return {**{name: str(value) for name, value in named.items() if value is not None}, **self.conf}


# What `conf` may name; a name that ends in a dot stands for all that begin with it.
_ALLOWED = (
    *("spark.broadcast.", "spark.cleaner.", "spark.cores.max", "spark.driver.cores", "spark.driver.maxResultSize"),
    *("spark.driver.memory", "spark.driver.memoryOverhead", "spark.driver.memoryOverheadFactor"),
    *("spark.dynamicAllocation.", "spark.eventLog.", "spark.excludeOnFailure.", "spark.executor.heartbeatInterval"),
    *("spark.executor.memoryOverhead", "spark.executor.memoryOverheadFactor", "spark.executor.pyspark.memory"),
    *("spark.executor.resource.", "spark.io.compression.", "spark.kryoserializer.", "spark.kubernetes."),
    *("spark.locality.", "spark.memory.", "spark.metrics.", "spark.network.", "spark.reducer.", "spark.rpc."),
    *("spark.scheduler.", "spark.shuffle.", "spark.stage.", "spark.storage.", "spark.task.", "spark.yarn."),
)
# Of those: variables that functions read, and what nobody writes into a file that all can read.
_VARIABLE = re.compile(r"env\.", re.IGNORECASE)
_SECRET = re.compile(r"password|secret|token|credential", re.IGNORECASE)
CONF_ALLOWED = "what an application is given, such as spark.executor.memoryOverhead, spark.dynamicAllocation.enabled"
OWN_FIELDS = {
    "spark.executor.memory": "executor_memory",
    "spark.executor.cores": "executor_cores",
    "spark.executor.instances": "instances",
}


def conf_refusal(name: str) -> tuple[str, str] | None:
    """Why `conf` may not have a setting of Spark, and where it stands instead; None for one that it may have."""
    if name in OWN_FIELDS:
        return "which has a field of its own", f"`{OWN_FIELDS[name]}` of `resources`"
    if name.startswith(("spark.sql.", "spark.databricks.")):
        return "which may change results, so that it has to count in keys", "`spark:` of the pipeline or stage"
    if _VARIABLE.search(name) or not any(stands_for(start, name) for start in _ALLOWED):
        return "which says more than what an application is given", CONF_ALLOWED
    if _SECRET.search(name):
        return "which is a secret's", "the environment or files of whoever starts tasks"
    return None


def stands_for(start: str, name: str) -> bool:
    """Whether ``start``, a setting or the beginning of several up to a dot, is or has the setting of that name."""
    return name == start or (start.endswith(".") and name.startswith(start))
