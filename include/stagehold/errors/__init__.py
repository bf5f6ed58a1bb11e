"""What can go wrong, and what is there to do then?

Every error that Stagehold raises on purpose, by what is to be mended.

    StageholdError
    +-- Terminal                     trying again unchanged cannot help
    +-- Transient                    trying again may succeed
    +-- RequestError                 what was asked for cannot be done; ask otherwise
    |   +-- InvalidSetting           a setting has a value outside its allowed ones
    |   +-- InvalidArgument          an argument of a command says something impossible
    |   +-- InvalidParameter         a run was given a parameter or value that its pipeline does not have
    |   +-- SecretsUnusable          secrets that a pipeline declares are not found, or not kept as they have to be
    |   +-- IntervalNeeded           an interval that a later one goes on from cannot be deleted alone
    |   +-- IntervalPinned           an interval that somebody pinned cannot be deleted
    |   +-- InvalidInterval          an interval that does not exist, or that may be several
    |   +-- ProductionMissing        a sandbox has no production to read
    |   +-- UnknownName              a pipeline, stage, run or partition that does not exist
    |   |   +-- NoRunStopped         no run has failed or was stopped
    |   +-- UnknownCheckpoint        what was named is no checkpoint of the lake
    |   +-- QueryRefused             a statement over a checkpoint may not be carried out, or cannot be
    |   +-- ForeignDag               a DAG that has no Stagehold regions
    |   +-- SeveralPipelines         a DAG that has several pipelines, where one is meant
    |   +-- FolderInUse              files are where a new project was to be written
    |   +-- NothingToAccept          code was to be accepted, and no recorded data is of other code
    |   +-- NothingToWaive           a gate refuses nothing of what somebody wanted to waive
    |   +-- BackfillRefused          a backfill that would run nothing, or cannot be run as it is asked for
    |   +-- BackfillChanged          other cells of a backfill would run than were shown
    |   +-- RestoreUnderWay          stages were to be computed once more before the run has what it begins with
    |   +-- NothingToResume          a resume was asked for, and there is nothing it could run
    |   +-- ResumeUnderWay ~         somebody else resumes the run at this moment
    |   +-- RunStillActive ~         a resume was asked for while the run goes on
    |   +-- RunNotUnderWay           a run was to be stopped that goes on no more
    |   +-- RunIdTaken               a run id names the run of another pipeline or interval
    +-- SpecError                    a pipeline, or its code, cannot be run as it is written
    |   +-- InvalidSpec              a pipeline file says something impossible
    |   +-- CodeUnusable             the code of a pipeline is sure to fail as soon as it is imported
    |   +-- RegionCycle              regions of a pipeline wait for each other
    |   +-- InvalidTopology          a graph of vertices and partitions says something impossible
    |   +-- ImpossibleKeyGroups      key groups were asked for by numbers that cannot be
    |   +-- ScheduleRefused          a schedule mode cannot run with these slots or exchanges
    |   +-- CommitterRefused         a lake where commits by delta-spark would get lost
    +-- StageError                   a stage cannot be computed or published as its author wrote it
    |   +-- StageFailed              a stage's query or data failed; what caused it says whether another try can help
    |   |   +-- FunctionFailed       a stage's own Python code raised an error
    |   +-- StageContractBroken      a stage function returned something the runner cannot commit
    |   +-- ColumnsNotAsDeclared     the columns of a stage's output are not those that it declares
    |   +-- KeyTypesUnlike           keys that are equal to Spark could be in different partitions of a keyed stage
    |   +-- KeyMayBeNull             an outer join leaves a stage's key empty in some rows
    |   +-- StrayKey                 a stage gave a row the key of another partition than it computed
    |   +-- UndeclaredRead           a stage reads what it does not declare, and its pipeline forbids that
    |   +-- NotDeterministic         a stage may give other data from the same input, and its pipeline forbids that
    |   +-- CameOutDifferent         a partition was computed again from the same inputs and code, and is another one
    +-- SourceError                  what a stage should read is not there, or not as it was
    |   +-- SourceMissing            a source path matches no file
    |   +-- ReadChanged ~            a file that a stage declares to read has changed while it was computed
    |   +-- ReadMissing              a file or table is not there that a stage declares to read beside its inputs
    |   +-- SourceUnusable           a source cannot be read as it is declared
    |   +-- SplitsUnlisted           a source in Python raised when it was asked for its splits
    |   +-- SourceChanged            something that a source has read is not what it was
    |   +-- SourceLost               rows that an interval took of a table are found nowhere any more
    |   +-- PositionTaken            a restore needs what another interval has taken of a source
    |   +-- RetakeRefused            an interval cannot take the files of its source anew
    +-- GateError                    a gate did not say yes, so partitions were not published
    |   +-- GateBlocked              a gate said no; the data has to change first
    |   +-- RowsUnaccounted          rows that were set aside and the others are not as many as there were
    |   +-- GateErrored              a gate could not be judged, so it said neither yes nor no
    |   +-- SuiteModuleUnusable      a module that defines expectations of a suite cannot be imported
    |   +-- DocsNotWritten           pages of what gates said could not be written
    |   +-- NothingJudged            no gate has judged anything that pages could be made of
    +-- LakeError                    a table of the lake does not take or does not have the data
    |   +-- TableSchemaConflict      a published table cannot take the columns a stage now has
    |   +-- TableChanged             somebody else removed rows from a published table
    |   +-- TableUnreadable ~        the log of a table cannot be read
    |   +-- CopyRefused              a file is where another one was to be copied to
    |   +-- CatalogTaken             the catalog of Spark's server has another table under a published one's name
    |   +-- CommitContested ~        other commits to a table kept getting in first
    |   +-- PartitionDataMissing ~   recorded data is gone from the lake
    +-- StorageError                 a place where something is kept does not take it or give it back
    |   +-- StorageUnusable ~        a disk is full or broken, or a folder or bucket may not be written
    +-- LedgerError                  the ledger cannot be used, or not for this
    |   +-- LedgerTooNew             a newer Stagehold has migrated the ledger
    |   +-- LedgerUnavailable ~      the ledger's database does not answer, or is locked for too long
    |   |   +-- LedgerCrowded ~      more write the ledger's file at once than it can take
    |   +-- LedgerLost               the ledger knows nothing of an interval that the lake's tables know
    |   +-- RecordsUnderName         what is on record of a stage is under another of its names
    |   +-- LedgerBehind             the ledger does not know what intervals have read, and the lake cannot tell
    |   +-- IllegalTransition        a run or attempt was told to leave a state in a way that does not exist
    +-- LeaseError                   work on a region is somebody else's, or may be
    |   +-- LeaseHeld ~              another attempt is working on the same region now
    |   +-- LeaseLost ~              the lease ended before it could be renewed
    |   +-- LeaseNotFreed            somebody else's work on a region was waited for, as long as is allowed
    |   +-- Fenced                   a newer attempt owns this work
    +-- CheckpointError              a checkpoint of a run cannot be used
    |   +-- RestoreRefused           a checkpoint does not fit the pipeline it should be restored into
    |   +-- NoSnapshot               there is nothing that a run could begin with
    |   +-- CheckpointCorrupt        a stored checkpoint cannot be read
    |   |   +-- CheckpointTooNew     a newer Stagehold wrote it
    |   +-- CheckpointNumberTaken    somebody else wrote a checkpoint under the same number first
    |   +-- CheckpointOvertaken ~    what a checkpoint consists of was discarded while it was being written
    |   +-- CheckpointsFailed ~      more checkpoints failed in a row than the pipeline tolerates
    |   +-- NoticeFailed ~           a function that is to know of a complete checkpoint raised an error
    |   +-- CheckpointStoreClosed    a checkpoint came after its run had ended
    |   +-- SavepointError           a savepoint cannot be made, found or read
    |   |   +-- BadSavepointName     no savepoint can be called so
    |   |   +-- SavepointTaken       there is another savepoint of that name
    |   |   +-- SavepointInUse       a run began with a savepoint and still needs it
    |   |   +-- SavepointUnreadable  the file that stands for a savepoint is not what was written
    |   |   +-- SavepointFailed      a savepoint that was asked for was not made
    |   |   +-- NothingToSave        nothing is left of a run
    |   |   +-- RollbackIncomplete   going back to a savepoint means computing
    |   |   +-- NothingToPromote     a sandbox has no finished run of an interval
    |   |   +-- PromotionComputes    production would compute what a sandbox has again
    |   |   +-- ExportUnusable       what should be imported is not what was exported
    |   +-- RunSuspended             a run was stopped with a savepoint
    +-- RunError                     a region of a run does not start, or not to its end
    |   +-- RestartRefused           the restart strategy allows no further attempt
    |   +-- ProcessTerminated ~      the process of an attempt was told to end, and nobody had asked for that
    |   +-- ProcessLost ~            the process of one of several attempts side by side ended without a word
    |   +-- ProcessFailed            such a process ended with an error that is not Stagehold's
    |   +-- EarlierMissing           an interval that keeps state for this one has not run
    |   +-- InputsNeverCame          what an eager task reads was waited for in vain
    |   +-- InputsNotReady ~         a region was started before what it reads was computed
    +-- SparkError                   Spark is not there, or does not answer
    |   +-- SparkUnavailable ~       no Spark Connect server answers
    |   +-- SparkMisconfigured       a Spark server elsewhere has another host, port, token or TLS than was set
    |   +-- CallStalled ~            a call to Spark made no progress for too long
    |   +-- SessionClosed ~          the server closed this attempt's Spark session
    |   +-- VersionsDiffer           the Spark server has another version of Spark or Delta than this process
    |   +-- ServerInUse              runs use the Spark server whose place `stagehold up` wants
    |   +-- JavaMissing              no Java that can run Spark
    |   +-- JarsUnusable             JARs that Spark needs are not there or not the pinned ones
    +-- ServiceError                 the services of this machine are not as they should be
        +-- ToolMissing              a program that is needed is not installed
        +-- PackageMissing           a Python package is not installed that an extra of Stagehold's brings
        +-- PortTaken                something else listens where a service wants to
        +-- AlreadyUp                another supervisor runs the services of this home
        +-- AirflowRefused           Airflow's API did not do what it was asked for
        +-- AirflowSilent ~          nobody answers where Airflow should be
        +-- AirflowMisconfigured     an Airflow has another host, port, TLS or credentials than was set
        +-- KnownSecrets             containers that others can reach have passwords that everybody knows
        +-- NotInTime                something that was waited for did not happen
        +-- ServicesFailed           a local service cannot be started, or ends again and again
        +-- DemoFailed               the demo's run did not end as it should

Each error is Terminal besides its family; those marked ~ are Transient; of StageFailed, what caused it says whether
another try can help.

Each class takes facts, keeps them as attributes and writes the text itself: what happened, what is safe, what happens
next, and last the command to run.

A name is `stagehold.errors:Name` wherever it is written down: in the failure rules of pipelines and of the library, and
in what is recorded. So every class says that it is of this module, and may move between those below it.
"""

from __future__ import annotations

from stagehold.errors.base import *
from stagehold.errors.checkpoint_errors import *
from stagehold.errors.gate_errors import *
from stagehold.errors.lake_errors import *
from stagehold.errors.ledger_errors import *
from stagehold.errors.request_errors import *
from stagehold.errors.run_errors import *
from stagehold.errors.service_errors import *
from stagehold.errors.source_errors import *
from stagehold.errors.spark_errors import *
from stagehold.errors.spec_errors import *
from stagehold.errors.stage_errors import *

for _kind in [kind for kind in globals().values() if isinstance(kind, type) and kind.__module__.startswith(__name__)]:
    _kind.__module__ = __name__
