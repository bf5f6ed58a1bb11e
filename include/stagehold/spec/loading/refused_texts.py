"""What a file may not say: a ``${NAME}`` that nothing resolves, and settings of Spark that no session can have.

There is no way to write a variable that is meant as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from stagehold.code.script_job import INPUTS, OUTPUT, PARAMS, SOURCE, variables_of
from stagehold.model.keys.interval_text import FORMS
from stagehold.model.keys.interval_text import VARIABLE as INTERVAL
from stagehold.spec.draft import Draft
from stagehold.spec.form import StageForm, suggest
from stagehold.spec.settings.launch_settings import stands_for
from stagehold.spec.settings.source import gives_rows
from stagehold.spec.yaml import FieldPath, Problem

LAKE = "${lake}"
VARIABLE = re.compile(r"\$\{[^}]*\}?")
VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*")
LONGEST = 80  # of what is shown where no brace ends it
OF_A_NAME = "no variable in a name"
ALSO_LAKE = f"{LAKE} is the only variable"
IN_A_PATH = f"{LAKE}, {FORMS}"
ELSEWHERE = (
    f"no variable: only {LAKE} is resolved, in `path` and `splits` of a source and in `files` and `tables` of `reads`, "
    "and what `vars` and `env` declare, as ${vars.NAME} and ${env.NAME}"
)
IN_A_DATABASE = f"{FORMS}; user_variable and password_variable name environment variables"
OF_A_DATABASE = "no variable; user_variable and password_variable name environment variables"


def check_variables(draft: Draft) -> Iterator[Problem]:
    """Texts are taken as they stand. What looks as if it were replaced and is not would end up in data. Variables are
    looked at where they were put in, and those of templates in the stages that extend them.
    """
    data = {name: value for name, value in draft.data.items() if name not in ("vars", "templates")}
    yield from dict.fromkeys(_variable_problems(data, (), draft))


def _variable_problems(given: Any, path: FieldPath, draft: Draft) -> Iterator[Problem]:
    if path[2:] == ("args",):
        yield from _argument_problems(given, path, draft)
    elif isinstance(given, str):
        with_lake, with_interval = _resolves_lake(path, draft), _resolves_interval(path)
        for found in VARIABLE.findall(given):
            if not ((found == LAKE and with_lake) or (with_interval and INTERVAL.fullmatch(found))):
                yield Problem(path, found[:LONGEST], _allowed(path, found, draft))
    elif isinstance(given, Mapping):
        for name, value in given.items():
            for found in VARIABLE.findall(str(name)):
                yield Problem((*path, str(name)), found[:LONGEST], OF_A_NAME)
            yield from _variable_problems(value, (*path, str(name)), draft)
    elif isinstance(given, list | tuple):
        for number, value in enumerate(given):
            yield from _variable_problems(value, (*path, str(number)), draft)


def _argument_problems(given: Any, path: FieldPath, draft: Draft) -> Iterator[Problem]:
    """What arguments of a stage's script name beside the interval."""
    stage = draft.stages.get(path[1], StageForm())
    read = (SOURCE,) if stage.source else (f"{INPUTS}{name}" for name in stage.inputs)
    known = (OUTPUT, *read, *(f"{PARAMS}{name}" for name in {**draft.form.params, **stage.params}))
    for argument in given if isinstance(given, list | tuple) else ():
        for name in variables_of(str(argument)):
            if name not in known:
                yield Problem(path, f"${{{name}}}"[:LONGEST], f"{suggest(name, known)}, {FORMS}")


def _resolves_lake(path: FieldPath, draft: Draft) -> bool:
    match path:
        case ("stages", _, "source", "path" | "splits", *_):
            return not _reads_a_database(path, draft)
        case ("stages", _, "reads", "files" | "tables", *_):
            return True
    return False


def _resolves_interval(path: FieldPath) -> bool:
    match path:
        case ("stages", _, "source", "path" | "splits" | "where" | "query" | "options", *_):
            return True
    return False


def _reads_a_database(path: FieldPath, draft: Draft) -> bool:
    """Whether the field is of such a source; its conditions are no paths."""
    stage = draft.stages.get(path[1])
    return stage is not None and stage.source is not None and gives_rows(stage.source.kind, stage.source.path)


def _allowed(path: FieldPath, found: str, draft: Draft) -> str:
    with_lake = _resolves_lake(path, draft)
    if _resolves_interval(path):
        in_a_query = IN_A_DATABASE if _reads_a_database(path, draft) else FORMS
        return IN_A_PATH if with_lake else in_a_query
    return ALSO_LAKE if with_lake else _allowed_instead(path, found, draft)


def _allowed_instead(path: FieldPath, found: str, draft: Draft) -> str:
    match path:
        case ("params", *_) | ("stages", _, "params", *_):
            named = VARIABLE_NAME.match(found.removeprefix("${"))
            name = named[0] if named else "NAME"
            return (
                f"no variable: a parameter is taken as it stands. Declare `reads: {{env: [{name}]}}` for the stage and "
                f'read os.environ["{name}"] in its function, or give a parameter of the pipeline with `--param`'
            )
        case ("pipeline",):
            return OF_A_NAME
        case ("stages", _, "source", *_) if _reads_a_database(path, draft):
            return OF_A_DATABASE
    return ELSEWHERE


SETTING_NAME = re.compile(r"spark(\.[A-Za-z0-9_-]+)+")
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
    *("spark.sql.streaming.streamingQueryListeners", "spark.waves."),
)


def refusal_of(name: str) -> tuple[str, str] | None:
    """Why a pipeline may not have a setting of Spark, and what it may have instead; None for one that it may have."""
    if not SETTING_NAME.fullmatch(name):
        return ("which names no setting of Spark", f"a name that begins with `spark.`; {CHANGEABLE}")
    if name in OWN:
        return OWN[name], CHANGEABLE
    setting = next((setting for start, setting in SET_FOR_THE_SERVER.items() if stands_for(start, name)), None)
    if setting is None and not any(stands_for(start, name) for start in OF_THE_SERVER):
        return None
    instead = f"see {setting}" if setting else "start a server of your own with it, which STAGEHOLD_SPARK_REMOTE names"
    return "which is fixed when Spark's server starts", f"{CHANGEABLE}; {instead}"
