"""Errors: a checkpoint of a run cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stagehold.errors.base import StageholdError, Terminal, Transient


class CheckpointError(StageholdError):
    """A checkpoint cannot be used; nothing was restored from it."""


class RestoreRefused(CheckpointError, Terminal):
    """A checkpoint does not fit the pipeline; lists every problem found, not only the first."""

    def __init__(
        self, *, snapshot: str, pipeline: str, problems: Sequence[str], hints: Sequence[str], flag: str | None
    ) -> None:
        self.snapshot, self.pipeline, self.problems, self.hints, self.flag = (
            snapshot,
            pipeline,
            tuple(problems),
            tuple(hints),
            flag,
        )
        lines = "\n".join(f"  {line}" for line in (*self.problems, *self.hints))
        way_out = f" or, to leave behind what no stage takes, add {flag}," if flag else ""
        super().__init__(
            f"{snapshot} does not fit pipeline {pipeline}: {len(self.problems)} problem(s). Nothing was restored and "
            f"nothing was changed.\n{lines}\nMend the pipeline{way_out} and run the command again."
        )


class NoSnapshot(CheckpointError, Terminal):
    """There is nothing that a run could begin with; or what there is ``instead`` of the first, which does not verify,
    would do, and the pipeline does not want it.
    """

    def __init__(self, pipeline: str, interval: str, refused: Sequence[str], instead: str | None = None) -> None:
        self.pipeline, self.interval, self.refused = pipeline, interval, tuple(refused)
        lines = "".join(f"\n  {line}" for line in self.refused)
        why = "it has no checkpoint or savepoint."
        if instead:
            why = f"the pipeline says `restore: strict`, and others than the {instead} do not verify:{lines}"
        elif refused:
            why = f"none of its checkpoints and savepoints verifies:{lines}"
        super().__init__(
            f"No run of {pipeline} for {interval} can begin with the latest one, since {why}\nNothing was started. "
            "Name one by its path, or leave --restore out: a run reuses what its interval has anyway. With "
            "`latest_or_none` a run begins so where there is none."
        )


class CheckpointCorrupt(CheckpointError, Terminal):
    """A stored checkpoint cannot be read; going on with an older one could lose what was committed since."""

    def __init__(self, checkpoint: int, reason: str, way_out: str = "Mend or delete it") -> None:
        self.checkpoint, self.reason = checkpoint, reason
        super().__init__(
            f"Checkpoint {checkpoint} cannot be read: {reason}. Nothing was restored and nothing was deleted. "
            f"{way_out}, then run `stagehold resume`."
        )


class CheckpointTooNew(CheckpointCorrupt):
    """A newer Stagehold wrote the checkpoint."""

    def __init__(self, checkpoint: int, file: str, version: int, known: int) -> None:
        self.file, self.version = file, version
        reason = f"{file} has format version {version}, and this Stagehold knows {known}"
        super().__init__(checkpoint, reason, way_out="Install the Stagehold that wrote it")


class CheckpointNumberTaken(CheckpointError, Terminal):
    """Somebody else wrote another checkpoint of the run under the same number first."""

    def __init__(self, checkpoint: int, file: str) -> None:
        self.checkpoint, self.file = checkpoint, file
        super().__init__(
            f"Checkpoint {checkpoint} was not written: {file} is there already and says something else. That one is "
            "untouched, and counts. Two coordinators may be at work; `stagehold status` shows the run's attempts."
        )


class CheckpointOvertaken(CheckpointError, Transient):
    """What a checkpoint consists of was discarded while it was being written."""

    def __init__(self, checkpoint: int, gone: str) -> None:
        self.checkpoint, self.gone = checkpoint, gone
        super().__init__(
            f"Checkpoint {checkpoint} was withdrawn: {gone} was discarded while it was being written. Other "
            "checkpoints are untouched; the next one is written as usual. `stagehold status` shows the run."
        )


class CheckpointsFailed(CheckpointError, Transient):
    """More checkpoints of a run failed in a row than its pipeline tolerates."""

    def __init__(self, checkpoint: int, reason: str, text: str, tolerable: int | str) -> None:
        self.checkpoint, self.reason, self.tolerable = checkpoint, reason, tolerable
        super().__init__(
            f"Checkpoint {checkpoint} failed ({reason.replace('_', ' ')}: {text}), and the pipeline tolerates "
            f"{tolerable} in a row. What is consumable still is, and the restart strategy decides whether the run goes "
            "on. If it happens again, raise checkpoint.timeout or checkpoint.tolerable_failures, which may be "
            "`unlimited`."
        )


class NoticeFailed(CheckpointError, Transient):
    """A function that is to know of a complete checkpoint raised an error."""

    def __init__(self, checkpoint: int, run_id: str, stage: str, function: str, error: Exception) -> None:
        self.checkpoint, self.run_id, self.stage, self.function = checkpoint, run_id, stage, function
        super().__init__(
            f"Checkpoint {checkpoint} of run {run_id} is complete, and on_complete of {stage} ({function}) raised "
            f"{type(error).__name__}: {error}\nWhat is consumable still is, and so is the checkpoint. The function "
            "is called again while the run goes on, and by whoever takes up the run. When its cause is mended, call "
            f"`stagehold resume {run_id}`."
        )


class CheckpointStoreClosed(CheckpointError, Terminal):
    """A checkpoint was completed after the run had ended and its checkpoints were cleaned up."""

    def __init__(self, checkpoint: int) -> None:
        self.checkpoint = checkpoint
        super().__init__(
            f"Checkpoint {checkpoint} came after its run had ended, so it was not kept. Nothing is lost. `stagehold "
            "status` shows the run."
        )


class SavepointError(CheckpointError):
    """A savepoint cannot be made, found or read."""


class BadSavepointName(SavepointError, Terminal):
    """What was given cannot be the name of a savepoint."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"No savepoint can be called {name!r}. Allowed are letters, digits, `.`, `_` and `-`, 100 at most, and the "
            "first one is a letter or a digit. Nothing was changed; give another name."
        )


class SavepointTaken(SavepointError, Terminal):
    """There is another savepoint of that name."""

    def __init__(self, name: str, whose: str) -> None:
        self.name = name
        super().__init__(
            f"There is a savepoint {name} already, {whose}. It is untouched. Give another name, or dispose of that one "
            f"with `stagehold savepoint dispose {name}`."
        )


class SavepointInUse(SavepointError, Terminal):
    """A run that goes on has not taken over all of the savepoint that it began with."""

    def __init__(self, name: str, runs: Sequence[str]) -> None:
        self.name, self.runs = name, tuple(runs)
        super().__init__(
            f"Savepoint {name} is needed by {', '.join(self.runs)}, which began with it and goes on. Nothing was "
            "deleted. Wait until the run has ended, or cancel it, then run the command again."
        )


class SavepointUnreadable(SavepointError, Terminal):
    """The file that stands for a savepoint is not what Stagehold wrote."""

    def __init__(self, file: str, reason: str) -> None:
        self.file = file
        super().__init__(
            f"{file} cannot be read as a savepoint: {reason}. Nothing is deleted while nobody knows what it needs. Put "
            "the file back, or delete it if the savepoint is not needed, then run the command again."
        )


class SavepointFailed(SavepointError, Terminal):
    """A savepoint that was asked for was not made."""

    def __init__(self, name: str, run_id: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(
            f"Savepoint {name} of run {run_id} was not made: {reason}. The run goes on as if nobody had asked. Run the "
            "command again."
        )


class NothingToSave(SavepointError, Terminal):
    """Nothing is left of a run that a savepoint could be made of."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"A newer run of its interval has replaced what run {run_id} left, and no checkpoint of it is kept. "
            "Nothing was changed. `stagehold status` lists the runs; name the newest of the interval."
        )


class ExportUnusable(SavepointError, Terminal):
    """What should be imported is not what an export made."""

    def __init__(self, source: str, reason: str) -> None:
        self.source, self.reason = source, reason
        super().__init__(
            f"{source} cannot be imported: {reason}. No savepoint was made of it. Run `stagehold savepoint export` to "
            "the same place once more, which copies what is not there, then run the command again."
        )


class RollbackIncomplete(SavepointError, Terminal):
    """A savepoint does not have all of its interval, so going back to it means computing."""

    def __init__(self, savepoint: str, missing: Mapping[str, int]) -> None:
        self.savepoint, self.missing = savepoint, dict(missing)
        named = ", ".join(f"{count} partitions of {stage}" for stage, count in self.missing.items())
        super().__init__(
            f"Savepoint {savepoint} cannot be put back as it is: it lacks {named}, or their data is gone. Nothing was "
            f"changed. `stagehold run PIPELINE --restore {savepoint}` takes over what it has and computes the rest."
        )


class NothingToPromote(SavepointError, Terminal):
    """A sandbox has nothing of an interval that could be what production has."""

    def __init__(self, sandbox: str, pipeline: str, interval: str, run_id: str | None, state: str | None) -> None:
        self.sandbox, self.pipeline, self.interval, self.run_id, self.state = sandbox, pipeline, interval, run_id, state
        what = f"its run {run_id} is {state}" if run_id else "no run of it was made there"
        super().__init__(
            f"Sandbox {sandbox} has nothing of {pipeline} for {interval} to promote: {what}. Nothing was changed. "
            f"`stagehold run {pipeline} --interval {interval} --sandbox {sandbox}` makes it."
        )


class PromotionComputes(SavepointError, Terminal):
    """What a sandbox has was made from something else than production would make it from now."""

    def __init__(
        self, sandbox: str, pipeline: str, interval: str, counts: Mapping[str, int], why: Mapping[str, str]
    ) -> None:
        self.sandbox, self.pipeline, self.interval = sandbox, pipeline, interval
        self.counts, self.why = dict(counts), dict(why)
        named = "".join(f"\n  {stage}: {count} partitions, {why[stage]}" for stage, count in counts.items())
        super().__init__(
            f"What sandbox {sandbox} has of {pipeline} for {interval} is not what production would have now, so it "
            f"would be computed again:{named}\nNothing was changed. `stagehold run {pipeline} --interval {interval} "
            f"--sandbox {sandbox}` tries what is there now; then promote it."
        )


class RunSuspended(CheckpointError, Terminal):
    """The run was suspended, with a savepoint or without one."""

    def __init__(self, run_id: str, savepoint: str | None = None) -> None:
        self.run_id, self.savepoint = run_id, savepoint
        super().__init__(
            f"Run {run_id} was suspended{f' with savepoint {savepoint}' if savepoint else ''}. What is consumable is "
            f"kept. `stagehold resume {run_id}` goes on from there."
        )
