"""Which checkpoint a run begins with, by what its user wrote: looked for once, so that all of its tasks agree."""

from __future__ import annotations

from collections.abc import Callable

from stagehold.checkpoints.restore_sources import LATEST
from stagehold.lake.checkpoints.references import find_checkpoint
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Restore
from stagehold.run.equipment.workplace import Progress
from stagehold.run.planning.candidates import Candidates, Damaged


def manifest_named(reference: str, candidates: Candidates, progress: Progress, damaged: Damaged | None = None) -> str:
    """The address of the manifest that `latest` stands for, or whatever `find_checkpoint` knows.

    :param damaged: compares what `latest` may stand for with its fingerprints; None where nothing begins.

    :raises NoSnapshot: none of the candidates verifies.
    :raises UnknownCheckpoint: nothing is called so.
    """
    if reference != LATEST:
        return find_checkpoint(reference, candidates.lake_uri).address
    address, choice = candidates.latest(damaged)
    for source, why in choice.passed_over:
        progress(f"passed over {source}: {why}")
    return address


def settled(restore: Restore, find: Callable[[], str], ledger: Ledger) -> Restore:
    """The request with the checkpoint that it begins with.

    The first task of a run that gets here looks for it and notes what it found; whoever comes later, another task, a
    retry or a clear, takes what is noted, whatever the reference would stand for by then. Not the scheduler: `latest`
    reads manifests and lists files, of a lake that may be slow or away, and its loop starts everybody's tasks.
    """
    if restore.stage is not None or restore.snapshot is not None:
        return restore
    return ledger.restores.settle(restore, find())
