"""Which wishes of a run count: Airflow's forms and routes accept wishes that make no sense, and a run that exists
already cannot be refused. Wishes that are left aside are named in the run's note, and in its configuration, which is
all that tasks see.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from stagehold.airflow.context.restore_requests import (
    ALLOW_NON_RESTORED,
    BACKFILL,
    INTERVAL,
    RESTORE,
    RESTORE_FROM_STAGE,
    RESTORE_PIPELINE,
    TWO_RESTORES,
    asks_for_two_restores,
)

REMARKS = "stagehold_remarks"  # in the configuration
BY = "Stagehold: "  # how our lines in a run's note begin
LONGEST_NOTE = 1000  # characters that Airflow keeps
OF_A_BACKFILL = frozenset({BACKFILL, RESTORE_FROM_STAGE, RESTORE, RESTORE_PIPELINE, ALLOW_NON_RESTORED})


def settled_wish(
    conf: Mapping[str, Any], fields: Collection[str], backfill_conf: Mapping[str, Any] | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The configuration that counts, and a sentence for each difference from the given one.

    :param fields: fields of the DAG's form.
    :param backfill_conf: what Airflow's backfill passes to its runs, possibly nothing; None for a run without a
        backfill.
    """
    settled, remarks = {name: value for name, value in conf.items() if name != REMARKS}, list[str]()
    unknown = sorted(set(conf) - {*fields, BACKFILL, REMARKS})
    if unknown:
        known = ", ".join(sorted(fields))
        remarks.append(f"{', '.join(unknown)} is no field of this pipeline and does nothing; fields: {known}.")
    if backfill_conf is not None:
        if conf.get(INTERVAL):
            remarks.append(
                f"The interval {conf[INTERVAL]} was left aside: a backfill runs each of its dates for itself."
            )
        if earlier := _of_an_earlier_backfill(conf, backfill_conf):
            settled = _without(earlier, settled)
            remarks.append(
                "This backfill asks for nothing but its dates, so what is not consumable is computed; "
                f"{', '.join(sorted(earlier))} of an earlier one was left aside."
            )
    if asks_for_two_restores(settled):
        settled = _without(TWO_RESTORES, settled)
        remarks.append(
            f"{' and '.join(TWO_RESTORES)} exclude each other, so both were left aside and what is not consumable is "
            "computed. Ask again with one of them."
        )
    if restores_nobody(settled, fields):
        settled = _without(TWO_RESTORES, settled)
        remarks.append(
            f"The DAG has several pipelines and {RESTORE_PIPELINE} names none, so nothing is restored and what is not "
            f"consumable is computed. Ask again with {RESTORE_PIPELINE}."
        )
    return settled, tuple(remarks)


def restores_nobody(conf: Mapping[str, Any], fields: Collection[str]) -> bool:
    """Whether a restore is asked for in a DAG with several pipelines, and not of which."""
    asked = any(str(conf.get(name) or "").strip() for name in TWO_RESTORES)
    return asked and RESTORE_PIPELINE in fields and not conf.get(RESTORE_PIPELINE)


def wish_of_task(
    params: Mapping[str, Any], conf: Mapping[str, Any] | None, fields: Collection[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The parameters that count for a task of the run, and the remarks on the wish.

    The scheduler settled it when it started the run, except for `airflow dags test`, whose runs no scheduler starts.

    :param conf: configuration of the run.
    """
    given = conf or {}
    settled, remarks = settled_wish(given, fields, None)
    said = dict.fromkeys((*remarks_in(given), *remarks))
    return _without(given.keys() - settled.keys(), params), tuple(said)


def _of_an_earlier_backfill(conf: Mapping[str, Any], backfill_conf: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name in OF_A_BACKFILL - backfill_conf.keys() if conf.get(name))


def _without(names: Collection[str], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def noted(note: str | None, remarks: Collection[str]) -> str | None:
    """A run's note with our lines behind people's text; a line that is there already is not added."""
    lines = (note or "").splitlines()
    new = [line for remark in remarks if (line := f"{BY}{remark}") not in lines]
    return "\n".join([*lines, *new])[:LONGEST_NOTE] if new else note


def remarks_in(conf: Mapping[str, Any] | None) -> list[str]:
    """The remarks on a run's wish when it started."""
    return list((conf or {}).get(REMARKS) or ())
