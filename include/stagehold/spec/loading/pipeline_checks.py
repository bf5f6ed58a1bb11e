"""What must hold across the fields of a pipeline and of each of its stages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from keyword import iskeyword
from typing import Any

import yaml

from stagehold.code.project import find_module, places_text
from stagehold.spec.draft import Draft, key_of
from stagehold.spec.form import show, suggest
from stagehold.spec.loading.edges import check_edges, check_state, is_name
from stagehold.spec.loading.named_code import check_failures, check_notifiers, check_script, job_problem
from stagehold.spec.loading.refused_texts import check_variables, refusal_of
from stagehold.spec.loading.restart_checks import restart_problems
from stagehold.spec.loading.schedule_checks import check_schedule
from stagehold.spec.loading.source_checks import check_reads, check_source
from stagehold.spec.loading.sql_checks import check_sql
from stagehold.spec.loading.task_checks import check_airflow, check_resources
from stagehold.spec.pipeline import OutputForm, OutputType
from stagehold.spec.settings.fields import written_name
from stagehold.spec.settings.output_settings import NO_NAME, OUTPUT_TYPES, OnCodeChange, fit_name, is_fit_name
from stagehold.spec.settings.source import SourceForm
from stagehold.spec.suites import is_of_python, suite_files
from stagehold.spec.yaml import FieldPath, Problem, plain_data

SECRET = re.compile(r"[a-z][a-z0-9_]{0,62}")  # a name of a file, a variable and a connection
SECRET_ALLOWED = "names of small letters, digits and _, a letter first, at most 63"  # noqa: S105
NAME_ALLOWED = "lower-case letters, digits and single underscores, a letter first, at most 63"
RESERVED = ("ctx", "source")  # parameters that every stage function may have
# What the trigger and backfill forms ask besides the pipeline's own parameters.
OF_THE_FORMS = ("restore_from_stage", "restore", "allow_non_restored_state", "interval")
OF_SHARED_FORMS = ("restore_pipeline",)  # those of DAGs with several pipelines
OF_THE_LAKE = ("stages", "checkpoints", "ledger", "savepoints")  # its own folders, which nobody publishes into
TABLE = re.compile(r"([a-z][a-z0-9_]*\.)?[a-z][a-z0-9_]*")
STORED_ONLY = {"columns", "committer", "file_bytes"}  # options of an output
ENTRY = re.compile(r"([a-z][a-z0-9_]*\.){1,2}[a-z][a-z0-9_]*")
PUBLISHED_ONLY = {"catalog", "on_foreign_change", "on_waiver_end", "evolution"}
WORK = ("job", "sql", "script")  # what a stage does, in one of these ways


def check(draft: Draft) -> Iterator[Problem]:
    """Every problem that a single field does not show."""
    yield from check_variables(draft)
    yield from _check_pipeline(draft)
    yield from _check_restart(draft)
    yield from _check_spark(draft.form.spark, ())
    yield from check_failures(draft)
    yield from check_airflow(draft)
    yield from check_resources(draft)
    yield from check_notifiers(draft)
    yield from _check_uids(draft)
    yield from _check_tables(draft)
    yield from _check_entries(draft)
    yield from _check_stored_only(draft)
    yield from _check_published_only(draft)
    for name in draft.declared:
        yield from _check_name(name)
    for name in draft.stages:
        yield from _check_work(draft, name)
        yield from check_source(draft, name)
        yield from check_reads(draft, name)
        yield from _check_job(draft, name)
        yield from _check_columns(draft, name)
        yield from _check_gate(draft, name)
        yield from _check_keeping(draft, name)
        yield from _check_on_complete(draft, name)
        yield from _check_spark(draft.stages[name].spark, ("stages", name))
        yield from check_state(draft, name)
    yield from check_edges(draft)


def _check_pipeline(draft: Draft) -> Iterator[Problem]:
    form = draft.form
    if not draft.is_broken("pipeline") and not is_name(form.pipeline or ""):
        yield Problem(("pipeline",), show(form.pipeline), NAME_ALLOWED)
    if not draft.declared and not draft.is_broken("stages"):
        yield Problem(("stages",), show(draft.data.get("stages")), "one stage or more")
    yield from check_schedule(form.schedule, draft.project)
    yield from _check_secrets(draft)
    for name in (*OF_THE_FORMS, *OF_SHARED_FORMS):
        if name in form.params:
            yield Problem(("params", name), show(name), "another name: Airflow's forms have a field that is called so")


def _check_secrets(draft: Draft) -> Iterator[Problem]:
    declared = draft.form.secrets
    for name in declared:
        if not SECRET.fullmatch(name):
            yield Problem(("secrets",), show(name), SECRET_ALLOWED)
    for name, stage in draft.stages.items():
        for field, named in _named_secrets(stage.source) if stage.source else ():
            if named not in declared and not draft.is_broken("secrets"):
                allowed = f"one of `secrets` of the pipeline: {suggest(named, declared)}"
                yield Problem(("stages", name, "source", *field), show(named), allowed)


def _named_secrets(source: SourceForm) -> Iterator[tuple[FieldPath, str]]:
    if source.password_secret is not None and not source.password_variable:
        yield ("password_secret",), source.password_secret
    yield from ((("secret_options", option), named) for option, named in source.secret_options.items())


def _check_restart(draft: Draft) -> Iterator[Problem]:
    return iter(()) if draft.is_broken("restart", "strategy") else restart_problems(draft.form.restart)


def _check_spark(given: Mapping[str, str], path: FieldPath) -> Iterator[Problem]:
    for name in given:
        if refusal := refusal_of(name):
            why, instead = refusal
            yield Problem((*path, "spark", name), f"{show(name)}, {why}", instead)


def _check_uids(draft: Draft) -> Iterator[Problem]:
    taken = {name: f"the stage {name}" for name in draft.declared}
    for name, stage in draft.stages.items():
        path = ("stages", name, "uid")
        if stage.uid is None or stage.uid == name:
            continue
        if not is_name(stage.uid):
            yield Problem(path, show(stage.uid), NAME_ALLOWED)
        elif stage.uid in taken:
            yield Problem(path, show(stage.uid), f"a uid of its own; this one is that of {taken[stage.uid]}")
        taken.setdefault(stage.uid, f"the stage {name}")
    for name, stage in draft.stages.items():
        path = ("stages", name, "was")
        for past in stage.was:
            whose = taken.setdefault(past, f"the stage {name}")
            if not is_name(past):
                yield Problem(path, show(past), NAME_ALLOWED)
            elif whose != f"the stage {name}":
                yield Problem(path, show(past), f"a past of its own; {whose} is or was called so")


def _check_tables(draft: Draft) -> Iterator[Problem]:
    publisher: dict[str, str] = {}
    for name, stage in draft.stages.items():
        output, path = stage.output, ("stages", name, "output", "table")
        if draft.is_broken("stages", name, "output", "type") or draft.is_broken(*path):
            continue
        persistent = output.type is OutputType.BLOCKING_PERSISTENT
        if persistent == (output.table is None):
            yield Problem(
                path, show(output.table), "schema.table for an output of type blocking_persistent, and only there"
            )
        elif output.table is not None and not TABLE.fullmatch(output.table):
            yield Problem(path, show(output.table), "schema.table or table, in lower case")
        elif output.table is not None and output.table.partition(".")[0] in OF_THE_LAKE:
            yield Problem(path, show(output.table), f"a name that begins with none of {', '.join(OF_THE_LAKE)}")
        elif output.table in publisher:
            yield Problem(path, show(output.table), f"a table of its own; {publisher[output.table]} publishes this one")
        elif output.table is not None:
            publisher[output.table] = name


def _check_entries(draft: Draft) -> Iterator[Problem]:
    owner: dict[str, str] = {}
    for name, stage in draft.stages.items():
        entry, path = stage.output.catalog, ("stages", name, "output", "catalog")
        if entry is None or draft.types[name] is not OutputType.BLOCKING_PERSISTENT:
            continue
        if not ENTRY.fullmatch(entry):
            yield Problem(path, show(entry), "schema.table or catalog.schema.table, in lower case")
        elif owner.setdefault(entry, name) != name:
            yield Problem(path, show(entry), f"a name of its own; {owner[entry]} registers its table under this one")


def _check_stored_only(draft: Draft) -> Iterator[Problem]:
    """Options of how an output is stored mean nothing for one that is not."""
    for name, stage in draft.stages.items():
        path = ("stages", name, "output")
        if draft.types[name].stored or draft.is_broken(*path, "type"):
            continue
        for field in sorted(STORED_ONLY & stage.output.model_fields_set):
            given = getattr(stage.output, field)
            yield Problem(
                (*path, field),
                show(given) if isinstance(given, Mapping) else str(given),
                "only where the type is blocking or blocking_persistent",
            )


def _check_published_only(draft: Draft) -> Iterator[Problem]:
    """Refuse, for a table that a stage keeps for itself, what only a published table may have: nobody else has a reason
    to read or write it.
    """
    for name, stage in draft.stages.items():
        path = ("stages", name, "output")
        if draft.types[name] is OutputType.BLOCKING_PERSISTENT or draft.is_broken(*path, "type"):
            continue
        for field in sorted(PUBLISHED_ONLY & stage.output.model_fields_set):
            yield Problem(
                (*path, written_name(OutputForm, field)),
                getattr(stage.output, field),
                "only where the type is blocking_persistent",
            )


def _check_columns(draft: Draft, name: str) -> Iterator[Problem]:
    """The declared columns of an output are all of its columns, so those that it is cut and found by are among them."""
    columns, path = draft.stages[name].output.columns, ("stages", name, "output", "columns")
    for column, form in columns.items():
        if form.type is None and not draft.is_broken(*path, column, "type"):
            yield Problem((*path, column), "a column without `type`", f"`type`: {OUTPUT_TYPES}")
        elif not is_fit_name(column):
            yield Problem((*path, column), show(column), f"{NO_NAME}, as {fit_name(column)}")
    for column in key_of(draft.stages[name]) if columns and not draft.is_doubtful(*path) else ():
        if column not in columns:
            yield Problem(path, f"no {column}, which is in the stage's key", f"{column} among the columns")


def _check_name(name: str) -> Iterator[Problem]:
    if name in RESERVED or iskeyword(name):
        yield Problem(
            ("stages", name), show(name), f"a name that can be a parameter, other than {' and '.join(RESERVED)}"
        )
    elif not is_name(name):
        yield Problem(("stages", name), show(name), NAME_ALLOWED)


def _check_work(draft: Draft, name: str) -> Iterator[Problem]:
    stage, path = draft.stages[name], ("stages", name)
    if draft.is_broken(*path, "source") or draft.is_doubtful(*path, "inputs"):
        return
    if (stage.source is None) == (not stage.inputs):
        given = "neither source nor inputs" if stage.source is None else "both source and inputs"
        yield Problem(path, given, "either a source or inputs")


def _check_job(draft: Draft, name: str) -> Iterator[Problem]:
    stage, path = draft.stages[name], ("stages", name)
    if any(draft.is_broken(*path, field) for field in WORK):
        return
    first, *others = [field for field in WORK if getattr(stage, field) is not None] or ["job"]
    if others:
        written = f"{show(getattr(stage, others[0]))} beside the {first} {getattr(stage, first)}"
        yield Problem((*path, others[0]), written, f"one of {', '.join(WORK)}")
        return
    if stage.script is None and stage.args:
        yield Problem((*path, "args"), show(stage.args), "only with a `script`; a function has `params`")
    given = ("source",) if stage.source else tuple(edge.frame or name for name, edge in stage.inputs.items())
    certain = (
        not draft.is_broken(*path, "source")
        and not draft.is_doubtful(*path, "inputs")
        and set(stage.inputs) <= set(draft.declared)
    )
    frames = given if given and certain else None
    if stage.script is not None:
        yield from check_script(draft, name, stage.script)
    elif stage.sql is not None:
        yield from check_sql(draft, name, stage.sql, frames)
    elif problem := job_problem(stage.job or "", frames, draft.project):
        yield Problem((*path, "job"), *problem)


def _check_gate(draft: Draft, name: str) -> Iterator[Problem]:
    gate, path = draft.stages[name].gate, ("stages", name, "gate")
    if gate is None:
        return
    if is_of_python(gate):
        yield from _check_python_gate(draft, gate, path)
        return
    known = suite_files(draft.suites, draft.project)
    if gate not in known:
        where = (
            f"a file {gate}.yaml or {gate}.json in {draft.suites}, or FOLDER/NAME of a project of Great Expectations"
        )
        yield Problem(path, show(gate), f"{where}; there are {suggest(gate, tuple(sorted(known)))}")
        return
    try:
        suite = _plain_suite(known[gate].read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        problem = f"{known[gate].name}, which cannot be read ({str(error).splitlines()[0]})"
        yield Problem(path, problem, "a suite in YAML or JSON")
        return
    if not isinstance(suite, dict) or not isinstance(suite.get("expectations"), list):
        yield Problem(path, f"{known[gate].name} without expectations", "a suite with a list of expectations")


@lru_cache(maxsize=256)
def _plain_suite(text: str) -> Any:
    """Many stages are judged by one suite; whoever asks only looks."""
    return plain_data(text)


def _check_python_gate(draft: Draft, gate: str, path: FieldPath) -> Iterator[Problem]:
    """Check a suite of Python, which is made, in a process of its own, by who needs it."""
    module = gate.partition(":")[0]
    if find_module(module, draft.project) is None:
        yield Problem(path, f"{show(gate)}, but there is no {module.replace('.', '/')}.py", places_text(draft.project))


def _check_keeping(draft: Draft, name: str) -> Iterator[Problem]:
    if draft.stages[name].keep and not draft.types[name].stored:
        kept = ", ".join(draft.stages[name].keep)
        yield Problem(("stages", name, "keep"), kept, "nothing, for an output that is not stored: its readers have it")
    if draft.stages[name].on_code_change is OnCodeChange.KEEP and not draft.types[name].stored:
        yield Problem(
            ("stages", name, "on_code_change"),
            "'keep'",
            "recompute, for an output that is not stored; keep needs a stored one",
        )


def _check_on_complete(draft: Draft, name: str) -> Iterator[Problem]:
    function, path = draft.stages[name].on_complete, ("stages", name, "on_complete")
    if function is None:
        return
    if problem := job_problem(function, (), draft.project):
        yield Problem(path, *problem)
    if not draft.types[name].stored:
        yield Problem(path, show(function), "only where the output is stored, as with `output: {type: blocking}`")
