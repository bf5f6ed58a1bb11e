"""What a run is asked for in the end: Airflow's forms and routes take more than can be meant, and a run that exists
already is no place to refuse it. What is left aside is said in the run's note, and in its configuration, which is all
that tasks are told of.
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
)

REMARKS = "stagehold_remarks"  # in the configuration
BY = "Stagehold: "  # how our lines in a run's note begin
LONGEST_NOTE = 1000  # letters that Airflow keeps
OF_A_BACKFILL = frozenset({BACKFILL, RESTORE_FROM_STAGE, RESTORE, ALLOW_NON_RESTORED})


def settled_wish(
    conf: Mapping[str, Any], fields: Collection[str], backfill_conf: Mapping[str, Any] | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The configuration that counts, and why it is not the one that was given, a sentence for each difference.

    :param fields: of the DAG's form.
    :param backfill_conf: what Airflow's backfill passes to its runs, which may be nothing; None for a run of no
        backfill.
    """
    settled, remarks = {name: value for name, value in conf.items() if name != REMARKS}, list[str]()
    unknown = sorted(set(conf) - {*fields, BACKFILL, REMARKS})
    if unknown:
        known = ", ".join(sorted(fields))
        remarks.append(f"{', '.join(unknown)} is no field of this pipeline and does nothing; fields: {known}.")
    if backfill_conf is None:
        return settled, tuple(remarks)
    if conf.get(INTERVAL):
        remarks.append(f"The interval {conf[INTERVAL]} was left aside: a backfill runs each of its dates for itself.")
    earlier = {name for name in OF_A_BACKFILL - backfill_conf.keys() if conf.get(name)}
    if earlier:
        remarks.append(
            "This backfill asks for nothing but its dates, so what is not consumable is computed; "
            f"{', '.join(sorted(earlier))} of an earlier one was left aside."
        )
    return {name: value for name, value in settled.items() if name not in earlier}, tuple(remarks)


def noted(note: str | None, remarks: Collection[str]) -> str | None:
    """A run's note with our lines behind what people wrote; a line that is there already is not said twice."""
    lines = (note or "").splitlines()
    new = [line for remark in remarks if (line := f"{BY}{remark}") not in lines]
    return "\n".join([*lines, *new])[:LONGEST_NOTE] if new else note


def remarks_in(conf: Mapping[str, Any] | None) -> list[str]:
    """What was said of a run's wish when it started."""
    return list((conf or {}).get(REMARKS) or ())
