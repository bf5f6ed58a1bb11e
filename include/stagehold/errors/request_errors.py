"""Errors: what was asked for cannot be done; ask otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stagehold.errors.base import StageholdError, Terminal, Transient, first_of


class RequestError(StageholdError):
    """Somebody asked for what cannot be done; nothing was changed."""


class InvalidSetting(RequestError, Terminal):
    """A setting's value is outside what is allowed."""

    def __init__(self, name: str, given: str, allowed: str) -> None:
        self.name, self.given, self.allowed = name, given, allowed
        super().__init__(
            f"Setting {name} is {given!r}; allowed: {allowed}. Change it in the environment and run the command again."
        )


class InvalidArgument(RequestError, Terminal):
    """An argument or option of a command has a value outside what is allowed."""

    def __init__(self, name: str, given: str, allowed: str) -> None:
        self.name, self.given, self.allowed = name, given, allowed
        super().__init__(
            f"{name} is {given!r}; allowed: {allowed}. Nothing was done. Run the command again with another value."
        )


class InvalidParameter(RequestError, Terminal):
    """A run was given a parameter that its pipeline does not declare, or a value of another type than the default's."""

    def __init__(self, name: str, given: str, allowed: str) -> None:
        self.name, self.given, self.allowed = name, given, allowed
        super().__init__(
            f"Parameter {name} is {given!r}; allowed: {allowed}. Nothing was run. Give it another value, or leave it "
            "out to run with the default."
        )


class SecretsUnusable(RequestError, Terminal):
    """Secrets that a pipeline declares are nowhere to be found, or not kept as they have to be.

    :param problems: what is wrong with each, by name; never its value.
    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        lines = "".join(f"\n  {name} {problem}" for name, problem in self.problems.items())
        super().__init__(
            f"Secrets that the pipeline declares cannot be used, so nothing was computed:{lines}\nThen run it again."
        )


class InvalidInterval(RequestError, Terminal):
    """An interval that was asked for does not exist, or may be several of the schedule's."""

    def __init__(self, given: str, problem: str, allowed: str) -> None:
        self.given, self.problem, self.allowed = given, problem, allowed
        super().__init__(
            f"Interval {given!r} {problem}; allowed: {allowed}. Nothing was done. Ask again with one of these."
        )


class IntervalNeeded(RequestError, Terminal):
    """An interval was to be deleted, and a later one goes on with the state that it keeps."""

    def __init__(self, pipeline: str, interval: str, stage: str, later: Sequence[str]) -> None:
        self.pipeline, self.interval, self.stage, self.later = pipeline, interval, stage, tuple(later)
        super().__init__(
            f"{first_of(self.later)} went on with what stage {stage} keeps of {interval}, so {interval} cannot be "
            "deleted alone. Nothing was deleted. Delete the later intervals with it: "
            f"`stagehold intervals delete {pipeline} {' '.join((interval, *self.later[:3]))}"
            f"{' ...' if self.later[3:] else ''}`."
        )


class IntervalPinned(RequestError, Terminal):
    """An interval was to be deleted that somebody pinned; ``pin`` says who, when and why."""

    def __init__(self, pipeline: str, interval: str, pin: str) -> None:
        self.pipeline, self.interval, self.pin = pipeline, interval, pin
        super().__init__(
            f"{interval} of {pipeline} is pinned {pin.rstrip('.')}. Nothing was deleted. "
            f"`stagehold intervals unpin {pipeline} {interval}` lets it go."
        )


class ProductionMissing(RequestError, Terminal):
    """A sandbox reads production's lake, and there is none."""

    def __init__(self, sandbox: str, lake: str) -> None:
        self.sandbox, self.lake = sandbox, lake
        super().__init__(
            f"There is no lake at {lake}, so sandbox {sandbox} has nothing to read. Nothing was made. STAGEHOLD_LAKE "
            "and STAGEHOLD_HOME say where production's lake is: set them as production has them, then run the command "
            "again."
        )


class UnknownName(RequestError, Terminal):
    """A name that was asked for does not exist."""

    def __init__(self, kind: str, given: str, known: Sequence[str]) -> None:
        self.kind, self.given, self.known = kind, given, tuple(known)
        super().__init__(f"There is no {kind} {given!r}. Known: {', '.join(self.known) or 'none'}.")


class NoRunStopped(UnknownName):
    """No run has stopped. One whose process was killed a moment ago counts as going on until its lease ends."""

    def __init__(self, going_on: Sequence[str], lease_seconds: int) -> None:
        self.kind, self.given, self.known = "run", "newest", tuple(going_on)
        held = (
            f"{self.known[0]} counts as going on: its lease was renewed in the last {lease_seconds} seconds. If "
            f"it was killed, `stagehold resume {self.known[0]}` waits until the lease ends, and goes on from there."
            if going_on
            else "`stagehold status` lists the newest, and `stagehold run PIPELINE` starts one."
        )
        RequestError.__init__(self, f"There is no run that failed or was stopped. {held}")


class UnknownCheckpoint(RequestError, Terminal):
    """What was named is no checkpoint or savepoint of the lake."""

    def __init__(self, reference: str, lake: str, runs: Sequence[str], forms: str) -> None:
        self.reference, self.lake, self.runs, self.forms = reference, lake, tuple(runs), forms
        known = f"Newest runs with one: {', '.join(self.runs)}." if runs else "No run has left one there."
        super().__init__(
            f"There is no checkpoint {reference!r} in lake {lake}. {known} A checkpoint is named by {forms}. Another "
            "lake is named by --lake."
        )


class QueryRefused(RequestError, Terminal):
    """A statement over a checkpoint could do more than read its partitions, or DuckDB does not understand it."""

    def __init__(self, reason: str, views: Sequence[str]) -> None:
        self.reason, self.views = reason, tuple(views)
        known = f" There is {', '.join(self.views)}." if views else ""
        super().__init__(
            f"The statement was refused: {reason.rstrip('. ')}. Nothing was changed.{known} Ask with one SELECT over "
            "the checkpoint's stages and states."
        )


class ForeignDag(RequestError, Terminal):
    """An Airflow DAG was asked about that is not a Stagehold pipeline."""

    def __init__(self, dag_id: str) -> None:
        self.dag_id = dag_id
        super().__init__(
            f"{dag_id} is not a Stagehold pipeline: none of its tasks is a region. Use Airflow's own "
            "Grid and Graph for it."
        )


class SeveralPipelines(RequestError, Terminal):
    """Something was to be changed of a DAG with several pipelines, and it was not said of which."""

    def __init__(self, dag_id: str, places: Sequence[str]) -> None:
        self.dag_id, self.places = dag_id, tuple(places)
        super().__init__(
            f"The DAG {dag_id} has several pipelines, and nothing was changed. Name one of them: {', '.join(places)}."
        )


class FolderInUse(RequestError, Terminal):
    """A project was to be written over files that are there."""

    def __init__(self, folder: str, taken: Sequence[str]) -> None:
        self.folder, self.taken = folder, tuple(taken)
        super().__init__(
            f"In {folder} there are files that a new project has, too: {first_of(self.taken)}. Nothing was written. "
            "Name another folder: stagehold init PATH"
        )


class NothingToAccept(RequestError, Terminal):
    """Data of other code was to be accepted, and there is none, or the present code is not known."""

    def __init__(self, stage: str, reason: str) -> None:
        self.stage, self.reason = stage, reason
        super().__init__(
            f"There is nothing to accept for {stage}: {reason}. Nothing was recorded. "
            "`stagehold plan` shows what a run would reuse, and why."
        )


class NothingToWaive(RequestError, Terminal):
    """A gate's refusal was to be waived, and there is none, or it is not clear which one was meant."""

    def __init__(self, stage: str, problem: str, offered: Sequence[str]) -> None:
        self.stage, self.problem, self.offered = stage, problem, tuple(offered)
        lines = "".join(f"\n  {stage}{expectation}" for expectation in self.offered)
        refused = f" It refuses:{lines}\n" if lines else " It refuses nothing. "
        super().__init__(
            f"Nothing was waived of {stage}: {problem}.{refused}`stagehold gates RUN --failed` shows what each "
            "partition does not meet."
        )


class BackfillRefused(RequestError, Terminal):
    """A backfill that would run nothing, or that cannot be run as it was asked for."""

    def __init__(self, pipeline: str, why: str) -> None:
        self.pipeline, self.why = pipeline, why
        super().__init__(f"The backfill of {pipeline} was not started, and nothing was changed. {why}")


class BackfillChanged(RequestError, Terminal):
    """Between the look at a plan and the word to carry it out, something changed."""

    def __init__(self, pipeline: str, difference: str) -> None:
        self.pipeline, self.difference = pipeline, difference
        super().__init__(
            f"The backfill of {pipeline} was not started, and nothing was changed: {difference}. Look at the plan "
            "again."
        )


class RestoreUnderWay(RequestError, Terminal):
    """Stages were to be computed once more while the run still takes over what it begins with."""

    def __init__(self, run: str, snapshot: str) -> None:
        self.run, self.snapshot = run, snapshot
        super().__init__(
            f"{run} has not taken over all of {snapshot} yet, with which it begins, so nothing can be computed once "
            "more. Nothing was cleared. Resume it first."
        )


class NothingToResume(RequestError, Terminal):
    """A resume was asked for, but no task of the run could do anything."""

    def __init__(self, run: str, why: str) -> None:
        self.run, self.why = run, why
        super().__init__(f"There is nothing to resume in {run}: {why}")


class ResumeUnderWay(RequestError, Transient):
    """Another resume of the run is being carried out. Of several at once, only the first is."""

    def __init__(self, run: str, by: str) -> None:
        self.run, self.by = run, by
        super().__init__(
            f"{run} is being resumed at this moment by {by}. Nothing was cleared by this call. Look at the run again."
        )


class RunStillActive(RequestError, Transient):
    """A resume was asked for while the run still goes on."""

    def __init__(self, run: str, state: str) -> None:
        self.run, self.state = run, state
        super().__init__(f"{run} is still {state}. Wait for it to end, or mark it failed, then resume it.")


class RunNotUnderWay(RequestError, Terminal):
    """A run was to be stopped that goes on no more."""

    def __init__(self, run_id: str, state: str) -> None:
        self.run_id, self.state = run_id, state
        super().__init__(
            f"Run {run_id} is {state}, so there is nothing to stop. `stagehold status` lists the runs that go on."
        )


class RunIdTaken(RequestError, Terminal):
    """Run ids are unique in the whole ledger; Airflow's are not, so a launcher has to add the pipeline's name."""

    def __init__(self, run_id: str, taken_by: str, wanted_by: str) -> None:
        self.run_id, self.taken_by, self.wanted_by = run_id, taken_by, wanted_by
        super().__init__(
            f"Run id {run_id!r} belongs to {taken_by}, so it cannot be given to {wanted_by}. Nothing was changed. "
            f"Start the run under another id; `stagehold status {run_id}` shows the one that has it."
        )
