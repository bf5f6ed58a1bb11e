"""What a stage's function reads beside its inputs, as its author declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from stagehold.spec.settings.fields import Names, SpecPart


class Undeclared(StrEnum):
    """What becomes of a read that no `reads` declares: it is in no key, so a change of it is not seen."""

    WARN = "warn"  # it is told, once per stage and attempt
    STRICT = "strict"  # the stage is refused


READS_ALLOWED = f"{', '.join(Undeclared)}, or a mapping with env, files, tables, undeclared"


class ReadsForm(SpecPart):
    """What a stage says of its reads; a bare word stands for a mapping with `undeclared` alone."""

    env: Names = ()
    """Environment variables that the function reads, one name or a list. Their values count in its key, as hashes, and
    UDFs are given them. One that is not set is another value than an empty one.
    Example: `env: [TAX_RATE, COUNTRY]`"""

    files: Names = ()
    """Files that the function reads, one path or glob or a list; a folder stands for all files in it. A relative path
    begins at the project's folder, `${lake}` is the lake. Their content counts in its key.
    Example: `files: [config/rates.csv, "${lake}/side/*.json"]`"""

    tables: Names = ()
    """Delta tables that the function reads, one or a list: `schema.table` of a table that is published in the lake, or
    a path as for `files`. Their identity and version count in its key. What a stage of this pipeline publishes is read
    as an input.
    Example: `tables: [marts.customers, "s3://shop/reference/countries"]`"""

    undeclared: Undeclared | None = None
    """What becomes of reads that are not declared: `warn` tells them, `strict` refuses the stage. Without it: the
    pipeline's `reads`.
    Example: `undeclared: strict`"""


@dataclass(frozen=True)
class Reads:
    """What a stage reads beside its inputs, as it is declared, each name once."""

    env: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    undeclared: Undeclared = Undeclared.WARN

    @staticmethod
    def of(form: ReadsForm, otherwise: Undeclared) -> Reads:
        """What the form says, with ``otherwise`` where it does not say what becomes of the rest."""
        env, files, tables = (tuple(dict.fromkeys(names)) for names in (form.env, form.files, form.tables))
        return Reads(env, files, tables, form.undeclared or otherwise)


def _with_word(given: Any) -> Any:
    if given is None:
        return {}
    if isinstance(given, str):
        return {"undeclared": given}
    if isinstance(given, Mapping | ReadsForm):
        return given
    raise PydanticCustomError("reads", READS_ALLOWED)


StageReads = Annotated[ReadsForm, BeforeValidator(_with_word, json_schema_input_type=ReadsForm | Undeclared | None)]
