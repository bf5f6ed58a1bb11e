"""Lineage of computed stages, for OpenLineage, where its provider for Airflow is installed and configured."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stagehold.airflow.telling.task_work import LineageData, StageLineage, StageWork
from stagehold.airflow.telling.untold import Untold, untold
from stagehold.lake.store.location import table_location
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, GateResult
from stagehold.run.planning.task import RegionTask
from stagehold.sources.source_files import SourceRoots
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    from stagehold.settings import Settings

log = logging.getLogger(__name__)
PROVIDER = "airflow.providers.openlineage"


def emit_lineage(
    work: StageWork, task: RegionTask, ledger: Ledger, settings: Settings, task_instance: Any
) -> Untold | None:
    """Send one event, and return why it could not be sent. Without the provider nothing is sent or imported."""
    if importlib.util.find_spec(PROVIDER) is None:
        return None
    try:
        from stagehold.airflow.telling.lineage_event import emit

        problem = emit(stage_lineage(work, task, ledger, settings), task_instance)
    except Exception as error:
        log.exception("no lineage of %s was sent; the task goes on", work.stage.name)
        problem = error
    return None if problem is None else untold(f"OpenLineage, of {work.stage.name}", problem)


def stage_lineage(work: StageWork, task: RegionTask, ledger: Ledger, settings: Settings) -> StageLineage:
    output = _address(work.stage, task, settings), work.verdicts
    inputs = tuple(_inputs(work.stage, task, ledger, settings))
    return StageLineage(work, task.request.interval, inputs, output)


def _inputs(stage: Stage, task: RegionTask, ledger: Ledger, settings: Settings) -> Iterator[LineageData]:
    """Tables and files; in place of an input that is not stored, what that input is made from."""
    if stage.source is not None:
        roots, path = SourceRoots(settings.production.lake_uri, settings.project), stage.source.path
        yield roots.address(path) if path else stage.source.url or stage.source.place, ()
    for producer in (task.pipeline.stage(edge.stage) for edge in stage.inputs):
        if producer.output.stored:
            yield _address(producer, task, settings), _verdicts(producer, task, ledger)
        else:
            yield from _inputs(producer, task, ledger, settings)


def _verdicts(stage: Stage, task: RegionTask, ledger: Ledger) -> tuple[GateResult, ...]:
    cell = Cell(task.pipeline.name, stage.id, task.request.interval)
    return ledger.gates.verdicts(cell) if stage.gate else ()


def _address(stage: Stage, task: RegionTask, settings: Settings) -> str:
    return table_location(settings.lake_uri, task.pipeline.name, stage, task.request.interval).uri
