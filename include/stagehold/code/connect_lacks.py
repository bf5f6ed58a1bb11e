"""What Spark Connect lacks of classic Spark: what does the same there, and where a stage's code asks for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from stagehold.code.stage_code import reached_code

LACKS = "functions run in Spark Connect, which has no {lacking}; {instead}"
RDD = LACKS.format(
    lacking="RDDs",
    instead="instead of df.rdd use df.mapInPandas, df.mapInArrow or df.groupBy(...).applyInPandas for Python "
    "functions, and df.collect(), df.toLocalIterator() or df.isEmpty() for rows",
)
CONTEXT = LACKS.format(
    lacking="SparkContext",
    instead="instead of sc.parallelize use spark.createDataFrame; of sc.textFile, spark.read.text; of sc.broadcast, a "
    "plain variable or F.broadcast; of accumulators, df.observe; of sc.addPyFile, nothing (the project's modules are "
    "sent); and leave sc.setLogLevel and sc.setCheckpointDir out",
)
NEW_SESSION = LACKS.format(
    lacking="newSession", instead="each call's views and settings are its own anyway, so use the session as it is"
)
JVM = LACKS.format(lacking="JVM in this process", instead="use pyspark.sql.functions, F.expr or spark.sql instead")
# By their names in pyspark's errors.
NOT_IN_CONNECT = {"rdd": RDD, "sparkContext": CONTEXT, "_jsc": CONTEXT, "newSession": NEW_SESSION}
_IN_CODE = {**NOT_IN_CONNECT, "_jvm": JVM, "_sc": CONTEXT}
MAKES_CONTEXT = "SparkContext"


def asked_in_code(job: str, project: Path) -> tuple[tuple[str, int, str], ...]:
    """Each file and line at which the code of ``module:function`` asks for it, with what to use instead."""
    found = {
        (module.path.relative_to(project).as_posix(), line, f"{name}: {_IN_CODE.get(name, CONTEXT)}")
        for module, statement in reached_code(job, project)
        for name, line in _asked(statement)
    }
    return tuple(sorted(found))


def _asked(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(attr=name) if name in _IN_CODE:
                yield name, node.end_lineno or node.lineno
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name))) if name == MAKES_CONTEXT:
                yield name, node.lineno
