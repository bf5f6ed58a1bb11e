"""Shows people what gates had set aside, in a table of its own."""

from __future__ import annotations

from stagehold.lake.quarantine import bring_up_to_date, quarantine_uri
from stagehold.run.delivery.wave import StageTask
from stagehold.run.equipment.workplace import Workplace


def show_quarantined(task: StageTask, workplace: Workplace) -> None:
    """Bring the stage's quarantine table up to date for the interval, also if its gate sets nothing aside any more or
    there is none. If that cannot be done it is told: the rows are kept with their partitions all the same.
    """
    from deltalake.exceptions import DeltaError

    uri = quarantine_uri(workplace.settings.lake_uri, task.cell.pipeline, task.stage)
    try:
        records = workplace.ledger.partitions.newest(task.cell)
        changed = bring_up_to_date(uri, task.cell.interval, records, task.stage.partitions)
    except (DeltaError, OSError) as error:
        text = f"{uri} does not show what was set aside of {task.stage.name} for {task.cell.interval}: {error}"
        workplace.warn(task.attempt.run_id, "quarantine", task.stage.name, text)
        return
    if changed:
        workplace.progress(f"{task.stage.name}: {uri} shows the rows that are set aside now")
