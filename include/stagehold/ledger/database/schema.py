"""The ledger's tables. A change here needs a new file in `migrations/versions` and a new `SCHEMA_VERSION`.

Each comment says scope (what a row is about), lifetime (when it is written, whether it changes) and what NULL means.
"""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text, false
from sqlalchemy.schema import SchemaItem

from stagehold.ledger.database.column_types import (
    AsJson,
    AsPosition,
    CodeChoices,
    Counts,
    DataFiles,
    FreeText,
    StateParts,
    Texts,
    UtcTime,
    words,
)
from stagehold.model.backfill import BackfillChoice, OrderedInterval, PlannedCell, WorkOrder
from stagehold.model.checkpoint_records import Answer, CheckpointFailure, CheckpointState, CheckpointTrigger
from stagehold.model.choices import ClaimMode, Severity
from stagehold.model.pulse import Pulse
from stagehold.model.records import AttemptState, FailureClass, RunState
from stagehold.model.standing import PartitionState

SCHEMA_VERSION = "0020"
VERSION_TABLE = "ledger_version"

metadata = MetaData(naming_convention={"pk": "%(table_name)s_pkey", "ix": "%(table_name)s_by_%(column_0_N_name)s"})

_ROW_NUMBER = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER counts up by itself in SQLite


def _table(name: str, *parts: SchemaItem, comment: str) -> Table:
    return Table(name, metadata, *parts, comment=comment)


def _appended(name: str, *parts: SchemaItem, comment: str) -> Table:
    """A table whose rows are appended, and numbered in the order in which that is done."""
    number = Column("id", _ROW_NUMBER, primary_key=True)
    return Table(name, metadata, number, *parts, sqlite_autoincrement=True, comment=comment)


def _names(*columns: str, key: bool = False) -> tuple[Column[str], ...]:
    """Columns of names, which never are NULL."""
    return tuple(Column(column, String(250), primary_key=key, nullable=False) for column in columns)


runs = _table(
    "runs",
    Column("run_id", String(250), primary_key=True),
    *_names("pipeline", "interval"),
    Column("launcher", String(32), nullable=False),
    Column("state", words(RunState), nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("params", JSON, nullable=False),
    Column("cancel_asked_at", UtcTime),
    Index(None, "pipeline", "interval", "started_at"),
    Index(None, "started_at"),
    comment=(
        "Scope: one pipeline for one interval. Lifetime: written when the run is first asked for; state and ended_at "
        "are compared and set, cancel_asked_at is set by whoever asks and taken back when the run begins anew, all "
        "else stays. NULL: ended_at, the run has not ended; cancel_asked_at, nobody asked."
    ),
)

attempts = _table(
    "attempts",
    Column("attempt_id", String(500), primary_key=True),
    *_names("run_id", "pipeline", "interval", "region"),
    Column("epoch", BigInteger, nullable=False),
    Column("state", words(AttemptState), nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("failure", FreeText),
    Column("failure_class", words(FailureClass)),
    Column("failure_rule", FreeText),
    Column("share", String(64)),
    Column("restore", String(100)),
    Column("labels", JSON, nullable=False, server_default="{}"),
    Index(None, "run_id"),
    Index(None, "pipeline", "interval", "region", "epoch"),
    comment=(
        "Scope: one try of a region, or of one share of its partitions, in a run. Lifetime: written when the try is "
        "made; epoch and started_at are set once more when it has its lease, state is compared and set, all else is "
        "set when it ends. Epoch 0: it has no lease yet, or ended before it had one. NULL: ended_at, it waits, works "
        "or died without a word; failure, failure_class, failure_rule, it did not fail; share, all partitions; "
        "restore, it works for no restore."
    ),
)

transitions = _appended(
    "transitions",
    Column("run_id", String(250), nullable=False),
    Column("attempt_id", String(500)),
    Column("before", String(32)),
    Column("after", String(32), nullable=False),
    Column("event", String(32)),
    Column("recorded_at", UtcTime, nullable=False),
    Index(None, "run_id", "id"),
    comment=(
        "Scope: one change of the state of a run, or of one of its attempts. Lifetime: appended with the change, in "
        "one transaction, never rewritten; what changed before schema 0005 is missing. NULL: attempt_id, it is the "
        "run's own; before, event, a life begins here: of a run that is asked for, the first time or again after it "
        "had ended, or of an attempt."
    ),
)

leases = _table(
    "leases",
    Column("name", String(750), primary_key=True),
    Column("holder", String(500), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("taken_at", UtcTime),
    Column("renewed_at", UtcTime),
    Column("pulse", AsJson(Pulse)),
    comment=(
        "Scope: the right to work on one region of one interval, or to resume one run. Lifetime: written at the "
        "first acquisition and kept for ever, since the epoch must never repeat; a released lease has expired. "
        "taken_at is of this epoch, renewed_at and pulse are of the last heartbeat. NULL: taken_at, renewed_at, it was "
        "taken before schema 0016; pulse, its holder computes nothing, or has not begun to."
    ),
)

partitions = _appended(
    "partitions",
    *_names("pipeline", "interval", "stage"),
    Column("partition", Integer, nullable=False),
    Column("state", words(PartitionState), nullable=False),
    Column("run_id", String(250), nullable=False),
    Column("attempt_id", String(500), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("wave", Integer, nullable=False),
    Column("table_uri", Text, nullable=False),
    Column("version", BigInteger),
    Column("files", DataFiles, nullable=False),
    Column("rows", BigInteger, nullable=False),
    *_names("fingerprint", "compute_key"),
    Column("recorded_at", UtcTime, nullable=False),
    Column("reason", FreeText),
    Column("seconds", Float),
    Column("unexplained", Boolean, nullable=False, server_default=false()),
    Column("kept", StateParts),
    Column("judged", String(250), nullable=False, server_default=""),
    Column("refused", Texts),
    Column("counted", Counts),
    Column("storing", Float),
    Index(None, "pipeline", "interval", "stage", "partition", "id"),
    Index(None, "run_id"),
    comment=(
        "Scope: one partition of one stage for one interval, as one attempt left it. Lifetime: appended, never "
        "rewritten; the row with the highest id counts. NULL: version, nothing was published (its gate refused "
        "or held it); reason, there is nothing to explain; seconds, its share of its wave's time was not measured (an "
        "adopted commit); kept, its stage keeps no state; refused, it meets every critical expectation; counted, its "
        "function counts nothing, or it was recorded before schema 0018; storing, as seconds, or it was recorded "
        "before schema 0020."
    ),
)

gate_results = _appended(
    "gate_results",
    *_names("pipeline", "interval", "stage"),
    Column("partition", Integer, nullable=False),
    Column("attempt_id", String(500), nullable=False),
    Column("suite", String(250), nullable=False),
    Column("expectation", FreeText, nullable=False),
    Column("passed", Boolean, nullable=False),
    Column("observed", FreeText, nullable=False),
    Column("recorded_at", UtcTime, nullable=False),
    Column("severity", words(Severity), nullable=False, server_default="critical"),
    Column("configuration", FreeText, nullable=False, server_default=""),
    Column("result", FreeText, nullable=False, server_default=""),
    Index(None, "pipeline", "interval", "stage", "partition", "id"),
    comment=(
        "Scope: what one expectation said about one partition in one attempt. Lifetime: appended, never rewritten; "
        "those of the attempt that judged the partition last count. configuration and result are JSON of Great "
        "Expectations, empty before schema 0011. No column is ever NULL."
    ),
)

events = _appended(
    "events",
    Column("run_id", String(250), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("subject", String(500), nullable=False),
    Column("text", FreeText, nullable=False),
    Column("recorded_at", UtcTime, nullable=False),
    Index(None, "run_id", "id"),
    comment=(
        "Scope: one line of a run's history, for people; nothing is decided from it. Lifetime: appended, never "
        "rewritten. No column is ever NULL."
    ),
)

positions = _appended(
    "positions",
    *_names("pipeline", "interval", "stage", "run_id"),
    Column("position", AsPosition, nullable=False),
    Column("recorded_at", UtcTime, nullable=False),
    Index(None, "pipeline", "stage", "id"),
    Index(None, "run_id"),
    comment=(
        "Scope: what one interval reads of a source, as a run of it found it. Lifetime: appended, never rewritten; "
        "of an interval the row with the highest id counts. Of an incremental source an interval has one row, unless "
        "it was told to take its files anew; the row that counts does so for all other intervals at once. "
        "No column is ever NULL."
    ),
)

partition_counts = _table(
    "partition_counts",
    *_names("pipeline", "interval", "stage", key=True),
    Column("partitions", Integer, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("recorded_at", UtcTime, nullable=False),
    comment=(
        "Scope: into how many partitions a stage with `partitions: auto` is cut for one interval, and the bytes that "
        "decided it. Lifetime: written once, before the first partition, and kept. No column is ever NULL."
    ),
)

acceptances = _appended(
    "acceptances",
    Column("pipeline", String(250), nullable=False),
    Column("interval", String(250)),
    Column("stage", String(250), nullable=False),
    Column("recorded_code", String(64), nullable=False),
    Column("accepted_code", String(64), nullable=False),
    Column("accepted_by", String(250), nullable=False),
    Column("reason", FreeText, nullable=False),
    Column("recorded_at", UtcTime, nullable=False),
    Column("part", String(64), nullable=False, server_default="code"),
    Index(None, "pipeline", "stage", "id"),
    comment=(
        "Scope: somebody's word that data made by one version of a stage's code, or with another part of its key, is "
        "as good as another's. "
        "Lifetime: appended, never rewritten. NULL: interval, it holds for every interval."
    ),
)

waivers = _appended(
    "waivers",
    *_names("pipeline", "interval", "stage"),
    Column("partition", Integer, nullable=False),
    Column("expectation", FreeText, nullable=False),
    *_names("fingerprint", "waived_by"),
    Column("reason", FreeText, nullable=False),
    Column("recorded_at", UtcTime, nullable=False),
    Column("until", UtcTime),
    Index(None, "pipeline", "interval", "stage", "id"),
    comment=(
        "Scope: somebody's word that data of one partition may be read though it does not meet an expectation. "
        "Lifetime: appended, never rewritten; of one expectation and the same data the row with the highest id counts. "
        "NULL: until, it holds for ever."
    ),
)

pins = _appended(
    "pins",
    *_names("pipeline", "interval"),
    Column("pinned", Boolean, nullable=False),
    Column("said_by", String(250), nullable=False),
    Column("reason", FreeText, nullable=False),
    Column("recorded_at", UtcTime, nullable=False),
    Index(None, "pipeline", "interval", "id"),
    comment=(
        "Scope: somebody's word that an interval keeps its outputs, or does so no more. Lifetime: appended, never "
        "rewritten; of an interval the row with the highest id counts. No column is ever NULL."
    ),
)

stage_verdicts = _appended(
    "stage_verdicts",
    *_names("pipeline", "interval", "stage", "fingerprint", "judged"),
    Column("attempt_id", String(500), nullable=False),
    Column("recorded_at", UtcTime, nullable=False),
    Column("refused", Texts),
    Column("reason", FreeText),
    Index(None, "pipeline", "interval", "stage", "id"),
    comment=(
        "Scope: what a gate said of all partitions of one stage for one interval together. Lifetime: appended, never "
        "rewritten; of the same data and expectations the row with the highest id counts. NULL: refused, it meets "
        "every critical expectation; reason, there is nothing to explain."
    ),
)

restores = _table(
    "restores",
    Column("run_id", String(250), primary_key=True),
    Column("identity", String(100), primary_key=True),
    Column("stage", String(250)),
    Column("requested_at", UtcTime, nullable=False),
    Column("life", UtcTime),
    Column("fulfilled_at", UtcTime),
    Column("snapshot", Text),
    Column("allow_non_restored", Boolean, nullable=False, server_default=false()),
    Column("as_recorded", Boolean, nullable=False, server_default=false()),
    Column("code_choices", CodeChoices),
    Column("claim_mode", words(ClaimMode), nullable=False, server_default=ClaimMode.NO_CLAIM),
    Column("work_order", AsJson(WorkOrder)),
    comment=(
        "Scope: one request that a run computes a stage, by its name, and all that read it anew, or begins with a "
        "checkpoint or savepoint, by the address of its manifest, or does what it is told; a backfill may ask a run "
        "that was asked before. "
        "Lifetime: written when it is asked; life is set when Airflow starts the run "
        "for it again, snapshot and fulfilled_at once. NULL: stage, it begins with a snapshot; snapshot, it computes a "
        "stage anew, or, if there is no stage, no task has looked yet which checkpoint is meant (it is empty where "
        "there was none, and none was needed); life, a command asks, "
        "not Airflow; fulfilled_at, something that was asked for is not there yet; code_choices, nobody decided about "
        "changed code; work_order, nobody told it what to do."
    ),
)

backfills = _table(
    "backfills",
    Column("backfill_id", String(32), primary_key=True),
    *_names("pipeline", "asked_by"),
    Column("requested_at", UtcTime, nullable=False),
    Column("choice", AsJson(BackfillChoice), nullable=False),
    Column("intervals", AsJson(tuple[OrderedInterval, ...]), nullable=False),
    Column("cells", AsJson(tuple[PlannedCell, ...]), nullable=False),
    Index(None, "pipeline", "requested_at"),
    comment=(
        "Scope: one backfill of a pipeline: what was chosen, what the run of each interval is told to do, and which "
        "cells were planned then. Lifetime: written when it is started, never rewritten. NULL: nothing."
    ),
)

checkpoints = _table(
    "checkpoints",
    Column("run_id", String(250), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    *_names("pipeline", "interval"),
    Column("trigger", words(CheckpointTrigger), nullable=False),
    Column("state", words(CheckpointState), nullable=False),
    Column("triggered_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("failure", FreeText),
    Column("reason", words(CheckpointFailure, 64)),
    Column("fails_run", Boolean, nullable=False, server_default=false()),
    Column("bytes_written", BigInteger, nullable=False),
    Column("bytes_referenced", BigInteger, nullable=False),
    Column("discarded_at", UtcTime),
    Column("covers", BigInteger),
    Column("savepoint", String(250)),
    Column("untold", Boolean, nullable=False, server_default=false()),
    Index(None, "pipeline", "interval"),
    comment=(
        "Scope: one numbered checkpoint or savepoint of a run. Lifetime: written when it is triggered, which spends "
        "its number; state, ended_at, failure, reason, fails_run, bytes and covers are set when it ends, discarded_at "
        "when its manifest is deleted; untold is set when it ends, and taken back when all know who have a part in it. "
        "covers is the highest id in `partitions` that it has. NULL: ended_at, it is in progress, or who took it died; "
        "failure, reason, it did not fail, or no word of Flink's says why; discarded_at, its manifest is in the lake, "
        "if it was completed; covers, it is not known to which row it goes, as after a ledger was rebuilt, whose rows "
        "have other ids; savepoint, it is a checkpoint."
    ),
)

acknowledgements = _table(
    "acknowledgements",
    Column("run_id", String(250), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt_id", String(500), primary_key=True),
    Column("region", String(250), nullable=False),
    Column("share", String(64)),
    Column("asked_at", UtcTime, nullable=False),
    Column("answered_at", UtcTime),
    Column("answer", words(Answer)),
    Column("reason", words(CheckpointFailure, 64)),
    comment=(
        "Scope: one attempt's part in one checkpoint of its run. Lifetime: written when the attempt is asked, set once "
        "more when it answers, or when it has finished. NULL: share, all partitions; answered_at, answer, it has not "
        "answered, and never will once the checkpoint has ended; reason, it did not decline."
    ),
)

savepoint_requests = _table(
    "savepoint_requests",
    Column("name", String(250), primary_key=True),
    Column("run_id", String(250), nullable=False),
    Column("stop", Boolean, nullable=False),
    Column("requested_by", String(250), nullable=False),
    Column("reason", FreeText, nullable=False),
    Column("requested_at", UtcTime, nullable=False),
    Column("settled_at", UtcTime),
    Column("failure", FreeText),
    Index(None, "run_id"),
    comment=(
        "Scope: somebody's wish for a savepoint with this name, handed to whoever coordinates the run. Lifetime: "
        "written when it is asked for, set once more when it is settled, written anew when the name is asked for "
        "again. What was made stands in the lake. NULL: settled_at, nobody has served it yet; failure, it was made, "
        "or is not settled."
    ),
)
