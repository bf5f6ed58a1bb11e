"""Whether what a stage declares that it reads can be looked at: names of variables, files and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stagehold.spec.checks.sources import ENVIRONMENT_VARIABLE
from stagehold.spec.draft import Draft
from stagehold.spec.form import show
from stagehold.spec.yaml import FieldPath, Problem

TABLE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")
TABLE_ALLOWED = "schema.table of a table that is published in the lake, or the path of a Delta table, with a / in it"


def check_reads(draft: Draft, name: str) -> Iterator[Problem]:
    reads, path = draft.stages[name].reads, ("stages", name, "reads")
    for variable in reads.env:
        if not ENVIRONMENT_VARIABLE.fullmatch(variable):
            allowed = "the name of an environment variable: letters, digits and underscores, no digit first"
            yield Problem((*path, "env"), show(variable), allowed)
    for file in reads.files:
        if not file:
            yield Problem((*path, "files"), show(file), "a file, a folder or a glob")
    for table in reads.tables:
        yield from _check_table(draft, table, (*path, "tables"))


def _check_table(draft: Draft, table: str, path: FieldPath) -> Iterator[Problem]:
    if is_name(table):
        publisher = next((name for name, one in draft.stages.items() if one.output.table == table), None)
        if publisher is not None:
            # Its version is another one after each wave, and nobody would wait for it.
            allowed = f"a table that no stage of this pipeline publishes; have the stage read {publisher} as an input"
            yield Problem(path, show(table), allowed)
    elif "/" not in table:
        yield Problem(path, show(table), TABLE_ALLOWED)


def is_name(table: str) -> bool:
    """Whether a table is called by its name in the lake, and not by its place."""
    return TABLE_NAME.fullmatch(table) is not None
