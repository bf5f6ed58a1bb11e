"""What a change of a project computes again of all that is on record: each recorded interval is planned with the code
and suites of now, and with those of before; what only the first plan runs follows from the change.
"""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from stagehold.code.stage_code import code_parts
from stagehold.errors import InvalidArgument, InvalidSpec
from stagehold.lake.declared_columns import ColumnChange
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import NO_PARTITIONS, PartitionSet
from stagehold.plan.backfill.backfill_plan import BackfillPlan
from stagehold.plan.backfill.cells import BackfillCell
from stagehold.run.backfill.backfill_planning import plan_stale
from stagehold.run.planning.refusal import changed_columns
from stagehold.settings import Settings
from stagehold.spec.loading.loader import load_each_pipeline
from stagehold.spec.pipeline import Pipeline

Cells = Mapping[tuple[str, str], BackfillCell]  # by interval and stage
NOTHING = "nothing of it is on record, so nothing is computed again"


@dataclass(frozen=True)
class ChangedCell:
    """A stage of an interval of which partitions are computed, or judged, again. ``bytes`` are those of what is
    recorded of them.
    """

    pipeline: str
    interval: str
    stage: str
    partitions: PartitionSet
    of: int
    judged: int
    seconds: float
    bytes: int
    reasons: tuple[str, ...]
    code: tuple[str, ...]


@dataclass(frozen=True)
class ProjectChange:
    """``left_out`` says by pipeline, or pipeline and interval, why nothing is known of it."""

    cells: tuple[ChangedCell, ...] = ()
    columns: tuple[ColumnChange, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    intervals: int = field(default=0)

    @property
    def computed(self) -> tuple[ChangedCell, ...]:
        return tuple(cell for cell in self.cells if cell.partitions)

    @property
    def seconds(self) -> float:
        return sum(cell.seconds for cell in self.cells)

    @property
    def bytes(self) -> int:
        return sum(cell.bytes for cell in self.cells)


def project_change(ledger: Ledger, settings: Settings, before: Settings | None) -> ProjectChange:
    """What the project computes again that it would not have computed ``before``; without that, all it computes."""
    known = {each.name: each for each in _pipelines(before)} if before else {}
    found, columns, left_out, intervals = list[ChangedCell](), list[ColumnChange](), list[tuple[str, str]](), 0
    for pipeline in load_each_pipeline(settings):
        if isinstance(pipeline, InvalidSpec):
            left_out.append((Path(pipeline.file).name, str(pipeline)))
            continue
        keys = sorted(ledger.partitions.intervals(pipeline.name))
        columns.extend(changed_columns(pipeline, settings))
        if not keys:
            left_out.append((pipeline.name, NOTHING))
            continue
        intervals += len(keys)
        plan = plan_stale(keys, pipeline, ledger, settings)
        left_out.extend((f"{pipeline.name} {each.interval}", each.problem) for each in plan.intervals if each.problem)
        earlier = (
            _cells(plan_stale(keys, known[pipeline.name], ledger, settings, before)) if pipeline.name in known else {}
        )
        code = _changed_code(pipeline, known.get(pipeline.name), settings, before)
        found.extend(_changed(pipeline, plan, earlier, code, ledger))
    return ProjectChange(tuple(found), tuple(columns), tuple(left_out), intervals)


def _pipelines(settings: Settings) -> Iterator[Pipeline]:
    return (each for each in load_each_pipeline(settings) if isinstance(each, Pipeline))


def _cells(plan: BackfillPlan) -> Cells:
    return {(each.interval, cell.stage): cell for each in plan.intervals for cell in each.cells}


def _changed(
    pipeline: Pipeline, plan: BackfillPlan, before: Cells, code: Mapping[str, tuple[str, ...]], ledger: Ledger
) -> Iterator[ChangedCell]:
    ids = {stage.name: stage.id for stage in pipeline.stages}
    for each in plan.intervals:
        records = ledger.partitions.newest_of(pipeline.name, each.interval)
        for cell in each.cells:
            earlier = before.get((each.interval, cell.stage))
            partitions = cell.running - (earlier.running if earlier else NO_PARTITIONS)
            judged = _judged(cell) - (_judged(earlier) if earlier else 0)
            if not partitions and judged <= 0:
                continue
            yield ChangedCell(
                pipeline=pipeline.name,
                interval=each.interval,
                stage=cell.stage,
                partitions=partitions,
                of=cell.partitions,
                judged=max(judged, 0),
                seconds=cell.seconds * len(partitions) / len(cell.running) if partitions else 0.0,
                bytes=sum(one.bytes for one in records.get(ids[cell.stage], ()) if one.partition in partitions),
                reasons=tuple(reason.text for reason in cell.reasons if reason.runs or reason.judges),
                code=code.get(cell.stage, ()) if partitions else (),
            )


def _judged(cell: BackfillCell) -> int:
    return sum(reason.count for reason in cell.reasons if reason.judges)


def _changed_code(
    pipeline: Pipeline, earlier: Pipeline | None, settings: Settings, before: Settings | None
) -> dict[str, tuple[str, ...]]:
    """The parts of the project's code that changed, by stage."""
    if earlier is None or before is None:
        return {}
    jobs = {stage.name: stage.entries for stage in earlier.stages}
    found: dict[str, tuple[str, ...]] = {}
    for stage in pipeline.stages:
        now = code_parts(stage.entries, Path(settings.project))
        then = code_parts(jobs[stage.name], Path(before.project)) if stage.name in jobs else {}
        found[stage.name] = tuple(sorted(part for part in now.keys() | then.keys() if now.get(part) != then.get(part)))
    return found


@contextmanager
def project_at(commit: str, settings: Settings) -> Iterator[Settings]:
    """The settings with the project as it was at a commit, inside the block. Ledger and lake stay what they are.

    :raises InvalidArgument: the project is in no repository of git, or that has no such commit
    """
    top = Path(_git(["rev-parse", "--show-toplevel"], Path(settings.project), commit).decode().strip())
    found = _git(["rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}"], top, commit).decode().strip()
    archive = _git(["archive", "--format=tar", found], top, commit)
    with TemporaryDirectory(prefix="stagehold-base-") as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        yield replace(
            settings,
            project=_moved(settings.project, top, folder),
            pipelines=_moved(settings.pipelines, top, folder),
            suites=_moved(settings.suites, top, folder),
        )


def _moved(place: str, top: Path, folder: str) -> str:
    """A folder of the repository in a copy of that; one that is elsewhere as it is."""
    path, root = Path(place).resolve(), top.resolve()
    return str(Path(folder, path.relative_to(root))) if path.is_relative_to(root) else place


def _git(words: Sequence[str], folder: Path, commit: str) -> bytes:
    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True).stdout
    except FileNotFoundError as error:
        raise InvalidArgument("--base", commit, "nothing: there is no git on this machine") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        allowed = f"a commit, branch or tag of the project's repository; git says: {said[-1] if said else error}"
        raise InvalidArgument("--base", commit, allowed) from error
