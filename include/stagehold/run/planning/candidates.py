"""Finds the checkpoint or savepoint that a run may begin with: the newest one that can be read and has its data, or the
one that was named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from stagehold.checkpoints.checkpoint import SnapshotKind, StageSnapshot
from stagehold.checkpoints.restore_sources import (
    LATEST,
    LATEST_OR_NONE,
    NOTHING,
    Origin,
    PassedOver,
    RestoreSource,
    choose,
)
from stagehold.errors import CheckpointCorrupt, NoSnapshot
from stagehold.lake.available import missing_files
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.references import find_checkpoint
from stagehold.lake.checkpoints.savepoints import Savepoints
from stagehold.lake.checkpoints.stored_checkpoints import MANIFEST, StoredCheckpoints
from stagehold.lake.local_copies import PutBack
from stagehold.lake.store.files import FileFacts, files_at
from stagehold.lake.store.location import CHECKPOINTS, lake_root, path_safe
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Restore
from stagehold.plan.determinism.verification import NO_MATCH
from stagehold.run.equipment.workplace import Progress
from stagehold.spec.settings.run_settings import RestorePolicy

Damaged = Callable[[Sequence[StageSnapshot]], Mapping[str, Sequence[int]]]  # partitions by stage


class Candidates:
    """Checkpoints and savepoints of one interval of a pipeline, for a run of it.

    ``policy`` is the pipeline's, ``put_back`` is asked for what a run is about to look for. Without a ``ledger`` they
    are found in the lake alone: in production's, for a run in a sandbox.
    """

    def __init__(
        self,
        pipeline: str,
        interval: str,
        run_id: str,
        lake_uri: str,
        ledger: Ledger | None,
        policy: RestorePolicy = RestorePolicy.FALL_BACK,
        put_back: PutBack = lambda _: None,
    ) -> None:
        self.put_back = put_back
        self.pipeline, self.interval, self.run_id, self.policy = pipeline, interval, run_id, policy
        self.lake_uri, self.ledger = lake_uri, ledger

    def latest(self, damaged: Damaged | None = None) -> tuple[str, PassedOver]:
        """The address of the first manifest that verifies, and those before it that do not, each with the reason: this
        run's newest first, then other runs', then savepoints. A checkpoint verifies if it can be read, its files are
        there, and the data that is compared equals its record.

        :param damaged: compares data with its fingerprints; None if no run begins, so that nothing is read.
        :raises NoSnapshot: no checkpoint verifies, or there is none; or the first does not, where the pipeline says
            `restore: strict`.
        """
        found = dict((*self._checkpoints(), *self._savepoints()))
        chosen, passed_over = choose(found, lambda source: self._problem(found[source], damaged))
        if chosen is None or (passed_over and self.policy is RestorePolicy.STRICT):
            refused = [f"{source}: {why}" for source, why in passed_over]
            raise NoSnapshot(self.pipeline, self.interval, refused, instead=str(chosen) if chosen else None)
        return found[chosen], passed_over

    def _checkpoints(self) -> Iterator[tuple[RestoreSource, str]]:
        """Checkpoints with the addresses of their manifests."""
        return self._in_lake() if self.ledger is None else self._kept_by(self.ledger)

    def _kept_by(self, ledger: Ledger) -> Iterator[tuple[RestoreSource, str]]:
        for record in ledger.checkpoints.of_interval(self.pipeline, self.interval):
            if record.kept and not record.savepoint:
                origin = Origin.OWN if record.run_id == self.run_id else Origin.OTHER_RUN
                place = CheckpointedRun(record.pipeline, record.interval, record.run_id)
                source = RestoreSource(origin, record.number, record.run_id, record.triggered_at)
                yield source, StoredCheckpoints(self.lake_uri, place).address(record.number)

    def _in_lake(self) -> Iterator[tuple[RestoreSource, str]]:
        folder = "/".join((lake_root(self.lake_uri), CHECKPOINTS, path_safe(self.pipeline), path_safe(self.interval)))
        for run in files_at(folder).folders(""):
            for name, file in files_at(f"{folder}/{run}").facts("").items():
                if match := MANIFEST.fullmatch(name):
                    yield from _source(f"{folder}/{run}/{name}", int(match[1]), run, file)

    def _savepoints(self) -> Iterator[tuple[RestoreSource, str]]:
        savepoints = Savepoints(self.lake_uri)
        for named in savepoints.all():
            if (named.pipeline, named.interval) == (self.pipeline, self.interval):
                source = RestoreSource(Origin.SAVEPOINT, named.number, named.run_id, named.created_at)
                yield source, savepoints.stored(named).address(named.number)

    def _problem(self, address: str, damaged: Damaged | None) -> str | None:
        """Why the checkpoint does not verify; None if it does."""
        try:
            stored, number = StoredCheckpoints.holding(address)
            stages = stored.read_checkpoint(number).stages
        except CheckpointCorrupt as error:
            return error.reason
        if damaged:
            self.put_back([record for stage in stages for record in stage.partitions if record.state.readable])
        return _unverified(stages, damaged)


def _source(address: str, number: int, run: str, file: FileFacts) -> Iterator[tuple[RestoreSource, str]]:
    """A checkpoint of a run, from its manifest. One that cannot be read is returned as well, to be passed over."""
    try:
        manifest = StoredCheckpoints.holding(address)[0].read_manifest(number)
    except CheckpointCorrupt:
        yield RestoreSource(Origin.OTHER_RUN, number, run, file.modified), address
    else:
        if manifest.kind is not SnapshotKind.SAVEPOINT:
            yield RestoreSource(Origin.OTHER_RUN, number, manifest.run.run_id, manifest.taken_at), address


def _unverified(stages: Sequence[StageSnapshot], damaged: Damaged | None) -> str | None:
    """Why what a checkpoint has does not verify; None if it does."""
    gone: Mapping[str, frozenset[int]] = {
        stage.shape.name: missing_files([record for record in stage.partitions if record.state.readable])
        for stage in stages
    }
    told = [f"{len(partitions)} partitions of {stage}" for stage, partitions in gone.items() if partitions]
    if told:
        return f"the data of {' and '.join(told)} is gone"
    differs = damaged(stages) if damaged else {}
    which = (f"{stage}[{PartitionSet(partitions)}]" for stage, partitions in differs.items())
    return f"{' and '.join(which)}: {NO_MATCH}" if differs else None


def manifest_named(reference: str, candidates: Candidates, progress: Progress, damaged: Damaged | None = None) -> str:
    """The address of the manifest that `latest` stands for, or of any other that `find_checkpoint` finds; `NOTHING` for
    `latest_or_none` where there is none.

    :param damaged: compares data for `latest` with its fingerprints; None if no run begins.
    :raises NoSnapshot: none of the candidates verifies.
    :raises UnknownCheckpoint: there is no checkpoint of that name.
    """
    if reference not in (LATEST, LATEST_OR_NONE):
        stored, number = find_checkpoint(reference, candidates.lake_uri)
        return stored.address(number)
    try:
        address, passed_over = candidates.latest(damaged)
    except NoSnapshot as none:
        if reference == LATEST or none.refused:
            raise
        progress(f"there is no checkpoint of {candidates.interval} yet, so the run begins with what the interval has")
        return NOTHING
    for source, why in passed_over:
        progress(f"passed over {source}: {why}")
    return address


def settled(restore: Restore, find: Callable[[], str], ledger: Ledger) -> Restore:
    """The request with the checkpoint that it begins with.

    The first task of a run that gets here finds it and records it. Later ones, another task, a retry or a clear, take
    the recorded one, whatever the reference would stand for by then. The scheduler does not do this: `latest` reads
    manifests and lists files of a lake that may be slow or away, and the scheduler's loop starts everybody's tasks.
    """
    if restore.stage is not None or restore.snapshot is not None:
        return restore
    return ledger.restores.settle(restore, find())
