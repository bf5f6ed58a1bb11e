"""What Spark Connect lacks of classic Spark: what does the same there, and where a stage's code asks for it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
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
    instead="instead of sc.parallelize use spark.createDataFrame; of sc.textFile, spark.read.text; of accumulators, "
    "df.observe or ctx.counter; of SparkContext() and SQLContext, SparkSession.builder.getOrCreate()",
)
FILES = LACKS.format(
    lacking="files of `spark-submit --files`",
    instead="declare them as `files: [configs/etl.json]` of the stage, which sends them: a script then finds them by "
    "SparkFiles, a function by ctx.file(NAME)",
)
NEW_SESSION = LACKS.format(
    lacking="newSession", instead="each call's views and settings are its own anyway, so use the session as it is"
)
JVM = LACKS.format(lacking="JVM in this process", instead="use pyspark.sql.functions, F.expr or spark.sql instead")
CONTEXT_OF_SESSION, SENT_FILES = "sparkContext", "SparkFiles"
# By their names in pyspark's errors.
NOT_IN_CONNECT = {"rdd": RDD, CONTEXT_OF_SESSION: CONTEXT, "_jsc": CONTEXT, "newSession": NEW_SESSION}
_IN_CODE = {**NOT_IN_CONNECT, "_jvm": JVM, "_sc": CONTEXT, SENT_FILES: FILES}
MADE = "SparkContext"
_MADE = (MADE, SENT_FILES)
# What a session has for jobs that ask for it, though it has no SparkContext: see `spark.session.classic_context`.
PASSED_OVER = frozenset(
    {"addPyFile", "clearJobGroup", "setCheckpointDir", "setJobDescription", "setJobGroup", "setLocalProperty"}
    | {"setInterruptOnCancel", "setLogLevel"}
)
ANSWERED = PASSED_OVER | {"appName", "applicationId", "broadcast", "defaultParallelism", "getConf", "stop", "version"}
LOGGERS = ".org.apache.log4j"


def asked_in_code(job: str, project: Path) -> tuple[tuple[str, int, str], ...]:
    """Each file and line at which the code of ``module:function`` asks for it, with what to use instead."""
    found = {
        (module.path.relative_to(project).as_posix(), line, f"{name}: {_IN_CODE.get(name, CONTEXT)}")
        for module, statement in reached_code(job, project)
        for name, line in _asked(statement)
    }
    return tuple(sorted(found))


def _asked(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    nodes = list(ast.walk(statement))
    contexts = {name for node in nodes for name in _named_context(node)}
    answered = {id(node) for each in nodes for node in _answered(each, contexts)}
    for node in nodes:
        match node:
            case ast.Attribute(attr=name) if name in _IN_CODE and id(node) not in answered:
                yield name, node.end_lineno or node.lineno
            case ast.Name(id=name, ctx=ast.Load()) if name in contexts and id(node) not in answered:
                yield CONTEXT_OF_SESSION, node.lineno
            case ast.Call():
                yield from ((name, node.lineno) for name in _made(node))


def _named_context(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(attr="sparkContext")):
            yield name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if [*_made(call)] == [MADE]:
            yield name


def _made(call: ast.Call) -> Iterator[str]:
    """Whose call it is, as in `SparkContext()`, `SparkContext.getOrCreate()` and `pyspark.SparkContext()`."""
    callee = call.func
    for part in (callee, callee.value if isinstance(callee, ast.Attribute) else callee):
        name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
        if name in _MADE:
            yield name
            return


def _answered(node: ast.AST, contexts: Collection[str]) -> Iterator[ast.AST]:
    """Those nodes within one that ask for what a session has an answer to."""
    match node:
        case ast.Assign(targets=[ast.Name()], value=ast.Attribute(attr="sparkContext") as context):
            yield context  # its uses are looked at
        case ast.Attribute(value=ast.Attribute(attr="sparkContext") as context, attr=name) if name in ANSWERED:
            yield context
        case ast.Attribute(value=ast.Name(id=given) as context, attr=name) if given in contexts and name in ANSWERED:
            yield context
        case ast.Attribute(attr="log4j") if ast.unparse(node).endswith(f"._jvm{LOGGERS}"):
            yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.Attribute | ast.Name))
