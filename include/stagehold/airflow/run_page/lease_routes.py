"""The web API of who is at work: the leases of a pipeline or of one run, with the reports of their last heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from fastapi import APIRouter

from stagehold.airflow.answering.access import MAY_SEE_RUN
from stagehold.airflow.answering.api_server import answering, server_ledger
from stagehold.airflow.answering.response_model import ResponseModel
from stagehold.airflow.runs.asked_pipeline import PlacedDep
from stagehold.airflow.runs.declared_dags import PlacedPipeline
from stagehold.model.pulse import Pulse, Side
from stagehold.run.lease.held_leases import HeldLease, LeaseKind, held_leases, hosts_left_out

router = APIRouter(prefix="/api/dags/{dag_id}")


class PulseAnswer(ResponseModel):
    """The last heartbeat's report on an attempt's work. Of the ``partitions`` of the stage that it has to do, ``done``
    ones are on record, with so many ``rows`` and ``bytes``; the rates are those of waves that have ended. ``read`` is
    the size of files that Spark has read for the stage. ``seconds`` say how the time was spent, ``slowest`` what took
    most of it, and which part of it that was. ``doing`` is None between waves; memory is None if nobody can look.
    """

    stage: str
    wave: int
    doing: Side | None
    done: int
    partitions: int
    rows: int
    bytes: int
    read: int
    rows_a_second: float
    bytes_a_second: float
    seconds: Mapping[Side, float]
    slowest: Side | None
    share_of_slowest: float
    client_bytes: int | None
    server_bytes: int | None


class LeaseAnswer(ResponseModel):
    """A lease and its holder: ``owner`` in which process of which ``host``; both None if the holder is no process.

    ``subject`` is what the lease is for, in words; ``run_id`` is the ledger's, None if it belongs to no run;
    ``attempt_id`` is None unless it is a region's lease. Times are the ledger's, and so are ``seconds_left``: they are
    0 or less for a lease that ended before its attempt has. ``taken_at`` and ``renewed_at`` are None for a lease that
    an older version took.
    """

    name: str
    kind: LeaseKind
    subject: str
    interval: str | None
    run_id: str | None
    attempt_id: str | None
    owner: str
    host: str | None
    pid: int | None
    epoch: int
    taken_at: datetime | None
    renewed_at: datetime | None
    expires_at: datetime
    seconds_left: float
    pulse: PulseAnswer | None


class LeftOutAnswer(ResponseModel):
    """A host that gets no tasks of any pipeline ``until`` then: so many attempts in a row failed there, the last by
    ``rule``, and others succeeded elsewhere meanwhile.
    """

    host: str
    failures: int
    rule: str
    until: datetime


class LeasesAnswer(ResponseModel):
    """Leases that are held, regions first, and the hosts that are ``left_out``."""

    leases: tuple[LeaseAnswer, ...]
    left_out: tuple[LeftOutAnswer, ...]


@router.get("/leases", dependencies=[MAY_SEE_RUN])
def show_leases(dag: PlacedDep) -> LeasesAnswer:
    """Who works on the pipeline now, for any run."""
    return _answer(dag, None)


# Run ids may hold any character, a slash too, hence :path.
@router.get("/runs/{run_id:path}/leases", dependencies=[MAY_SEE_RUN])
def show_leases_of_run(dag: PlacedDep, run_id: str) -> LeasesAnswer:
    """Who works for the run now: nobody once it has ended."""
    return _answer(dag, dag.place.run(run_id))


def _answer(dag: PlacedPipeline, run_id: str | None) -> LeasesAnswer:
    with answering():
        pipeline, ledger = dag.name, server_ledger(dag.settings)
        left_out = tuple(LeftOutAnswer(**vars(host)) for host in hosts_left_out(ledger))
        return LeasesAnswer(
            leases=tuple(map(_lease, held_leases(ledger, pipeline, run_id, str(dag.place)))), left_out=left_out
        )


def _lease(held: HeldLease) -> LeaseAnswer:
    lease, holder = held.lease, held.holder
    return LeaseAnswer(
        name=lease.name,
        kind=held.kind,
        subject=held.subject,
        interval=held.attempt.interval if held.attempt else None,
        run_id=held.run_id,
        attempt_id=held.attempt_id,
        owner=holder.owner if holder else lease.holder,
        host=holder.host if holder else None,
        pid=holder.pid if holder else None,
        epoch=lease.epoch,
        taken_at=lease.taken_at,
        renewed_at=lease.renewed_at,
        expires_at=lease.expires_at,
        seconds_left=round(held.seconds_left, 1),
        pulse=_pulse(lease.pulse) if lease.pulse else None,
    )


def _pulse(pulse: Pulse) -> PulseAnswer:
    return PulseAnswer(
        **vars(pulse),
        slowest=pulse.slowest,
        share_of_slowest=pulse.share_of_slowest,
        client_bytes=pulse.memory.client,
        server_bytes=pulse.memory.server,
    )
