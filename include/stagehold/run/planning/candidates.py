"""Finds what a run may begin with: the newest that can be read and has its data, or the one that was named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stagehold.checkpoints.restore_sources import Choice, Origin, RestoreSource, choose
from stagehold.errors import CheckpointCorrupt, NoSnapshot
from stagehold.lake.available import missing_files
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.savepoints import Savepoints
from stagehold.lake.checkpoints.stored import StoredCheckpoints
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import PartitionState


@dataclass(frozen=True)
class Candidates:
    """Checkpoints and savepoints of one interval of a pipeline, for a run of it."""

    pipeline: str
    interval: str
    run_id: str
    lake_uri: str
    ledger: Ledger

    def latest(self) -> tuple[str, Choice]:
        """The address of the first manifest that verifies, and those before it that do not, each with the reason: this
        run's newest first, then other runs', then savepoints. One verifies if it can be read and its files are there.

        :raises NoSnapshot: none does, or there is none.
        """
        found = {source: stored for source, stored in self._found()}
        choice = choose(found, lambda source: _problem(found[source], source.checkpoint))
        if choice.source is None:
            raise NoSnapshot(self.pipeline, self.interval, [f"{source}: {why}" for source, why in choice.passed_over])
        return found[choice.source].address(choice.source.checkpoint), choice

    def _found(self) -> Iterator[tuple[RestoreSource, StoredCheckpoints]]:
        for one in self.ledger.checkpoints.of_interval(self.pipeline, self.interval):
            if one.kept and not one.savepoint:
                origin = Origin.OWN if one.run_id == self.run_id else Origin.OTHER_RUN
                place = CheckpointedRun(one.pipeline, one.interval, one.run_id)
                source = RestoreSource(origin, one.number, one.run_id, one.triggered_at)
                yield source, StoredCheckpoints(self.lake_uri, place)
        savepoints = Savepoints(self.lake_uri)
        for named in savepoints.all():
            if (named.pipeline, named.interval) == (self.pipeline, self.interval):
                source = RestoreSource(Origin.SAVEPOINT, named.number, named.run_id, named.created_at)
                yield source, savepoints.stored(named)


def _problem(stored: StoredCheckpoints, number: int) -> str | None:
    """Why it does not verify. Content is compared with fingerprints when it is taken over, as the pipeline's `verify`
    says.
    """
    try:
        stages = stored.read_checkpoint(number).stages
    except CheckpointCorrupt as error:
        return error.reason
    gone: Mapping[str, frozenset[int]] = {
        stage.shape.name: missing_files([one for one in stage.partitions if one.state is PartitionState.CONSUMABLE])
        for stage in stages
    }
    told = [f"{len(partitions)} partitions of {stage}" for stage, partitions in gone.items() if partitions]
    return f"the data of {' and '.join(told)} is gone" if told else None
