"""The runs of a pipeline as its tab shows them, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from stagehold.airflow.answering.response_model import AS_RECORDED, Looked, ResponseModel
from stagehold.airflow.pipeline_page.known_pipeline import KnownPipeline
from stagehold.airflow.run_page.run_responses import AttemptLoss
from stagehold.model.records import RunState
from stagehold.model.standing import StageOutcome
from stagehold.run.intervals.run_matrix import RunLine, RunMatrix, StageSquare


class RunSquare(ResponseModel):
    """What a run did about a stage. ``counts`` are partitions by outcome; one partition may be in several, since healed
    partitions were computed, too. ``attempts`` are those of its region. ``seconds`` is the work of this run, ``spared``
    the work of earlier runs that it reused. ``failure`` is why its last attempt failed, if that matters. If that
    attempt was lost, ``lost`` says who noticed, and when.
    """

    stage: str
    outcome: StageOutcome
    counts: Mapping[StageOutcome, int]
    attempts: int
    seconds: float
    spared: float
    cause: str | None
    failure: str | None
    lost: AttemptLoss | None


class MatrixRun(ResponseModel):
    """A run, by its id in the ledger; ``active`` says whether it goes on."""

    run_id: str
    interval: str
    launcher: str
    state: RunState
    active: bool
    started_at: datetime
    ended_at: datetime | None
    seconds: float
    spared: float
    squares: tuple[RunSquare, ...]


class RunMatrixPage(ResponseModel):
    """The runs that began last come first. The runs behind ``following`` are on the next page; ``looked_at`` runs were
    looked at for this page.
    """

    dag_id: str
    place: str
    pipeline: str
    stages: tuple[str, ...]
    runs: tuple[MatrixRun, ...]
    following: str | None
    looked_at: int
    looked: Looked = AS_RECORDED


def run_matrix_page(known: KnownPipeline, found: RunMatrix) -> RunMatrixPage:
    return RunMatrixPage(
        dag_id=known.place.dag_id,
        place=str(known.place),
        pipeline=known.pipeline.name,
        stages=tuple(stage.name for stage in known.pipeline.stages),
        runs=tuple(map(_run, found.lines)),
        following=found.following,
        looked_at=found.looked_at,
    )


def _run(line: RunLine) -> MatrixRun:
    run = line.run
    return MatrixRun(
        run_id=run.run_id,
        interval=run.interval,
        launcher=run.launcher,
        state=run.state,
        active=line.active,
        started_at=run.started_at,
        ended_at=run.ended_at,
        seconds=round(sum(square.seconds for square in line.squares), 1),
        spared=round(line.spared, 1),
        squares=tuple(map(_square, line.squares)),
    )


def _square(square: StageSquare) -> RunSquare:
    return RunSquare(**{**vars(square), "lost": AttemptLoss.of(square.lost)})
