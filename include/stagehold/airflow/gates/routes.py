"""The web API of a run's gates: what they said, and somebody's word against it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from stagehold.airflow.access import MAY_RESUME, SAME_ORIGIN_JSON
from stagehold.airflow.dag_runs import StageholdDagRun, read_dag_run
from stagehold.airflow.gates.ranges import Ranges, as_ranges, numbers_in
from stagehold.airflow.gates.unmet import WaiverTold
from stagehold.airflow.server import answering, server_ledger
from stagehold.errors import InvalidArgument, UnknownName
from stagehold.model.records import Cell, Waiver
from stagehold.plan.resume.waiving import WaiverWish, wished
from stagehold.settings import load_settings

LONGEST_REASON = 1000  # letters
MOST_RANGES = 1000
MOST_PARTITION = 1_000_000  # the highest number that may be named

log = logging.getLogger(__name__)
router = APIRouter(prefix="/api/dags/{dag_id}/runs/{run_id:path}")
Number = Annotated[int, Field(ge=0, le=MOST_PARTITION)]


class WaiveRequest(BaseModel):
    """``partitions`` are ranges, their ends included. ``until`` is a date (UTC) or moment at which the word ends; with
    ``end`` it takes back what was waived before.
    """

    model_config = ConfigDict(extra="forbid")

    stage: str
    expectation: Annotated[str, Field(min_length=1)]
    partitions: Annotated[list[tuple[Number, Number]], Field(min_length=1, max_length=MOST_RANGES)]
    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_REASON)]
    until: datetime | None = None
    end: bool = False


@dataclass(frozen=True)
class WaiveAnswer:
    """What is on record now."""

    stage: str
    expectation: str
    partitions: Ranges
    waiver: WaiverTold


@router.post("/waive", dependencies=[MAY_RESUME, SAME_ORIGIN_JSON])
def waive(dag_id: str, run_id: str, wanted: WaiveRequest, session: SessionDep, user: GetUserDep) -> WaiveAnswer:
    """Let partitions be read though they do not meet an expectation, or take that back. The verdict stays on record.

    It holds for the data that is there now; what is computed anew while somebody decides is other data, unless it has
    the same content.
    """
    settings, now = load_settings(), datetime.now(UTC)
    with answering():
        ledger = server_ledger(settings)
        cell = _cell(wanted.stage, read_dag_run(dag_id, run_id, session, settings, ledger))
        records = ledger.partitions.newest(cell)
        named = numbers_in(wanted.partitions, [one.partition for one in records])
        until = now if wanted.end else _moment(wanted.until, now)
        wish = WaiverWish(named, wanted.expectation, user.get_name(), wanted.reason, until)
        words = wished(wish, wanted.stage, records, now)
        ledger.waivers.record(words)
        log.info("waived %s of %s %s: %s partitions, until %s", words[0].expectation, cell, run_id, len(words), until)
        return _answer(wanted.stage, words)


def _cell(stage: str, run: StageholdDagRun) -> Cell:
    """:raises UnknownName: the pipeline has no such stage."""
    pipeline = run.request.pipeline
    for one in pipeline.stages:
        if one.name == stage:
            return Cell(pipeline.name, one.id, run.request.interval)
    raise UnknownName(f"stage of {pipeline.name}", stage, [one.name for one in pipeline.stages])


def _moment(given: datetime | None, now: datetime) -> datetime | None:
    """:raises InvalidArgument: it is over."""
    if given is None:
        return None
    try:
        moment = given.astimezone(UTC) if given.tzinfo else given.replace(tzinfo=UTC)
    except OverflowError:  # a moment of the year 9999 that is none in UTC
        moment = now
    if moment <= now:
        raise InvalidArgument("until", given.isoformat(), "a date such as 2030-01-31 or a moment, later than now")
    return moment


def _answer(stage: str, words: Sequence[Waiver]) -> WaiveAnswer:
    partitions = as_ranges(one.partition for one in words)
    return WaiveAnswer(stage, words[0].expectation, partitions, WaiverTold.of(words[0]))
