"""Which settings of Spark a pipeline or a stage may have, and why not the others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

NAME = re.compile(r"spark(\.[A-Za-z0-9_-]+)+")
CHANGEABLE = "a setting that Spark can change in a session, such as spark.sql.shuffle.partitions"
_PLANS = "which Stagehold sets itself, since it reads Spark's plans and needs them whole"
_ROWS = "which would have rows of files that are gone or damaged left out without a word, where Stagehold heals them"
# Those that Stagehold depends on.
OWN: Mapping[str, str] = {
    "spark.sql.artifact.isolation.alwaysApplyClassloader": (
        "which Stagehold sets itself, so that Spark does not compile each query anew for every session"
    ),
    "spark.sql.artifact.isolation.enabled": (
        "which Stagehold sets itself: it keeps the modules that Python workers of one session have imported from "
        "the next"
    ),
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": (
        "which Stagehold sets itself: with it Spark and its Python workers may wait for each other for ever "
        "(SPARK-58241)"
    ),
    "spark.sql.debug.maxToStringFields": _PLANS,
    "spark.sql.maxPlanStringLength": _PLANS,
    "spark.sql.files.ignoreCorruptFiles": _ROWS,
    "spark.sql.files.ignoreMissingFiles": _ROWS,
    "spark.databricks.delta.commit.idempotencyCheck.enabled": (
        "which Stagehold sets itself: without it a commit that is tried again may be made twice"
    ),
}
# Those that are the server's, as far as a setting of Stagehold's is for them. A name that ends in a dot stands for all
# that begin with it.
SET_FOR_THE_SERVER: Mapping[str, str] = {
    "spark.master": "STAGEHOLD_SPARK_MASTER",
    "spark.driver.memory": "STAGEHOLD_SPARK_MEMORY",
    "spark.driver.extraJavaOptions": "STAGEHOLD_SPARK_JAVA_OPTIONS",
    "spark.jars": "STAGEHOLD_SPARK_JARS",
    "spark.jars.": "STAGEHOLD_SPARK_JARS",
    "spark.remote": "STAGEHOLD_SPARK_REMOTE",
    "spark.connect.grpc.binding.port": "STAGEHOLD_SPARK_PORT",
}
OF_THE_SERVER = (
    *("spark.app.", "spark.archives", "spark.connect.", "spark.cores.max", "spark.driver.", "spark.executor."),
    *("spark.dynamicAllocation.", "spark.eventLog.", "spark.excludeOnFailure.", "spark.executorEnv.", "spark.files"),
    *("spark.local.dir", "spark.memory.", "spark.network.", "spark.plugins", "spark.pyspark.", "spark.rpc."),
    *("spark.python.daemon.module", "spark.serializer", "spark.submit.", "spark.task.", "spark.ui."),
    *("spark.sql.cache.serializer", "spark.sql.catalog.", "spark.sql.catalogImplementation", "spark.sql.extensions"),
    *("spark.sql.globalTempDatabase", "spark.sql.queryExecutionListeners", "spark.sql.warehouse.dir"),
    "spark.sql.streaming.streamingQueryListeners",
)


@dataclass(frozen=True)
class RefusedSetting:
    """Why a setting is not to be had, and what is."""

    why: str
    instead: str


def refusal_of(name: str) -> RefusedSetting | None:
    """None for a setting that a pipeline may have."""
    if not NAME.fullmatch(name):
        return RefusedSetting("which names no setting of Spark", f"a name that begins with `spark.`; {CHANGEABLE}")
    if name in OWN:
        return RefusedSetting(OWN[name], CHANGEABLE)
    setting = next((setting for start, setting in SET_FOR_THE_SERVER.items() if _stands_for(start, name)), None)
    if setting is None and not any(_stands_for(start, name) for start in OF_THE_SERVER):
        return None
    instead = f"see {setting}" if setting else "start a server of your own with it, which STAGEHOLD_SPARK_REMOTE names"
    return RefusedSetting("which is fixed when Spark's server starts", f"{CHANGEABLE}; {instead}")


def _stands_for(start: str, name: str) -> bool:
    return name == start or (start.endswith(".") and name.startswith(start))
