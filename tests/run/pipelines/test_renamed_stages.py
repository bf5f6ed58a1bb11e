"""A stage that says what it was called keeps its data, whatever it is called now: nothing is computed again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pytest
from tests.run.small_project import FILES, ROWS, SmallProject, values_of

from stagehold.errors import InvalidSpec, RecordsUnderName
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.plan.resume.decisions import Action
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.current_plan import current_plan
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.restoring import new_restore_of_snapshot
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.run_settings import MatchPolicy

pytestmark = pytest.mark.spark

JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def numbers(ctx, source):
    return source

@stage
def doubled(ctx, numbers):
    return numbers.select((2 * F.col("number")).alias("number"))

@stage
def halved(ctx, doubled):
    return doubled.select((F.col("number") / 2).cast("long").alias("number"))

@stage
def sums(ctx, halved):
    before = ctx.state.read("seen")
    own = halved.groupBy("number").agg(F.count("*").alias("times"))
    seen = before.unionByName(own)
    ctx.state.put("seen", seen.groupBy("number").agg(F.sum("times").alias("times")))
    return own
"""
DAYS = ("2026-11-20", "2026-11-21", "2026-11-22")
SOURCE = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "incremental": True, "splits": FILES}
SEEN = {"seen": {"kind": "keyed", "key": "number", "columns": {"number": "bigint", "times": "bigint"}}}
STORED = {"type": "blocking"}


def declared(**changes: Mapping[str, Any]) -> dict[str, Any]:
    """Four stages, of which `halved` is computed along; each change is a stage's new name, with fields beside it."""
    stages = {
        "numbers": {"source": SOURCE, "output": STORED},
        "doubled": {"inputs": {"numbers": {}}, "output": STORED},
        "halved": {"inputs": {"doubled": {}}, "output": {"type": "pipelined"}},
        "sums": {
            "inputs": {"halved": {"exchange": "keyed", "key": "number"}},
            "partitions": 2,
            "state": SEEN,
            "output": STORED,
        },
    }
    named = {old: str(change.get("name", old)) for old, change in changes.items()}
    made = {}
    for old, fields in stages.items():
        ends = {
            named.get(producer, producer): {**edge, "frame": producer} if producer in named else edge
            for producer, edge in fields.get("inputs", {}).items()
        }
        own = {name: value for name, value in changes.get(old, {}).items() if name != "name"}
        made[named.get(old, old)] = {"job": f"renaming:{old}", **fields, **({"inputs": ends} if ends else {}), **own}
    return made


@pytest.fixture(scope="module")
def project(tmp_path_factory, spark_remote) -> SmallProject:
    folder = tmp_path_factory.mktemp("homes") / "renaming"
    folder.mkdir()
    project = SmallProject.make(folder, spark_remote, JOBS)
    for uids in (False, True):
        started = made(project, uids=uids)
        for interval in DAYS[:2]:
            project.run(started, f"{started.name}-{interval}", interval)
    return project


def made(project: SmallProject, *, uids: bool = False, **changes: Mapping[str, Any]) -> Pipeline:
    """The pipeline as it was first, or changed; that ``uids`` are given to each stage from the first is another one."""
    first = {name: {"uid": f"{name}_1"} for name in ("numbers", "doubled", "halved", "sums")} if uids else {}
    return project.pipeline("of_uids" if uids else "of_names", declared(**{**first, **changes}), schedule="@daily")


def computed(project: SmallProject, pipeline: Pipeline, interval: str) -> list[str]:
    """The stages of which something would be computed."""
    plan = current_plan(RunRequest(pipeline, "later", interval, {}), project.settings)
    return sorted({each.stage for each in plan.decisions if each.action is not Action.REUSE and each.action.computes})


RENAMES = {
    "the source": {"numbers": {"name": "read", "was": "numbers"}},
    "one in the middle": {"doubled": {"name": "twice", "was": "doubled"}},
    "one that is computed along": {"halved": {"name": "half", "was": "halved"}},
    "one with state": {"sums": {"name": "totals", "was": "sums"}},
    "one twice": {"sums": {"name": "amounts", "was": ["totals", "sums"]}},
    "one that gained a uid": {"sums": {"uid": "s1", "was": "sums"}},
    "all at once": {
        name: {"name": f"{name}_now", "uid": f"{name}_id", "was": name}
        for name in ("numbers", "doubled", "halved", "sums")
    },
}
OF_UIDS = {
    "a source that lost its uid": {"numbers": {"was": "numbers_1"}},
    "one with state that lost its uid": {"sums": {"was": "sums_1"}},
    "one whose uid changed": {"doubled": {"uid": "doubled_2", "was": "doubled_1"}},
    "one that was renamed and lost its uid": {"sums": {"name": "totals", "was": "sums_1"}},
}


@pytest.mark.parametrize("interval", DAYS[:2])
@pytest.mark.parametrize(
    ("uids", "changes"),
    [*((False, change) for change in RENAMES.values()), *((True, change) for change in OF_UIDS.values())],
    ids=[*RENAMES, *OF_UIDS],
)
def test_nothing_is_computed_again(project, uids, changes, interval):
    assert computed(project, made(project, uids=uids, **changes), interval) == []


def test_without_it_a_renamed_stage_begins_anew(project):
    anew = made(project, sums={"name": "totals"})
    assert computed(project, anew, DAYS[1]) == ["halved", "totals"]


def test_records_under_another_of_its_names_are_told_with_the_line_that_keeps_them(project):
    with pytest.raises(RecordsUnderName, match="Write `was: sums`"):
        computed(project, made(project, sums={"uid": "s1"}), DAYS[1])
    with pytest.raises(RecordsUnderName, match=r"Write `was: \[old, sums\]`"):
        computed(project, made(project, sums={"uid": "s1", "was": ["sums", "old"]}), DAYS[1])
    # What a younger name has counts for nothing while the oldest has all.
    assert computed(project, made(project, sums={"name": "totals", "was": ["younger", "sums"]}), DAYS[1]) == []


def test_a_renamed_stage_goes_on_with_its_source_and_its_state(project):
    renamed = made(
        project,
        numbers={"name": "read", "was": "numbers"},
        sums={"name": "totals", "uid": "s1", "was": "sums"},
    )
    project.write_source(FILES, 5)
    before = {name: len(records) for name, records in project.records(renamed, DAYS[1]).items()}
    done = run_locally(RunRequest(renamed, "third", DAYS[2], {}), project.settings, print)
    assert done
    records = project.records(renamed, DAYS[2])
    assert sorted(records) == ["doubled", "numbers", "sums"], "records stay under the oldest name"
    values = [value for record in records["numbers"] for value in values_of(record, "number")]
    assert sorted(values) == list(range(FILES * 5, FILES * 5 + 5)), "the source goes on behind what was taken"
    assert {name: len(found) for name, found in project.records(renamed, DAYS[1]).items()} == before
    states = [part for record in records["sums"] for part in record.kept]
    assert states, "its state goes on"


def test_stages_that_say_nothing_go_on_from_a_checkpoint_by_their_places_if_the_pipeline_says_so(project):
    """With what was computed; then their source behind what it had taken, and their state with what it had."""
    names = {name: {"name": f"{name}_now"} for name in ("numbers", "doubled", "halved", "sums")}
    renamed = made(project, **names).model_copy(update={"match": MatchPolicy.STRUCTURE})
    taken = CheckpointedRun("of_names", DAYS[0], f"of_names-{DAYS[0]}")
    manifest = StoredCheckpoints(project.settings.lake_uri, taken).address(1)
    restore = new_restore_of_snapshot("by place", manifest, allow_non_restored=False)
    done = run_locally(RunRequest(renamed, "by place", DAYS[0], {}, restore), project.settings, print)
    assert (done.reused, done.computed) == (4 + 4 + 2, 0)
    project.write_source(FILES, 5)
    records = project.run(renamed, "the next", DAYS[1])
    values = [value for record in records["numbers_now"] for value in values_of(record, "number")]
    assert sorted(values) == list(range(FILES * 5, FILES * 5 + 5))
    kept = [f"{each.table}/{file.path}" for each in records["sums_now"] for part in each.kept for file in part.files]
    ((times,),) = duckdb.sql(f"SELECT sum(times)::BIGINT FROM read_parquet({kept})").fetchall()
    assert times == FILES * ROWS + 5


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"sums": {"name": "totals", "was": "doubled"}}, "a past of its own; the stage doubled is or was called so"),
        (
            {"sums": {"was": "before"}, "doubled": {"was": "before"}},
            "stages.doubled.was: got 'before'; allowed: a past of its own; the stage sums is or was called so"
            "|stages.sums.was: got 'before'; allowed: a past of its own; the stage doubled is or was called so",
        ),
        ({"sums": {"uid": "s"}, "doubled": {"was": "s"}}, "stages.doubled.was"),
        ({"sums": {"was": "Not-A-Name"}}, "stages.sums.was: got 'Not-A-Name'; allowed: lower-case"),
        ({"sums": {"was": 3}}, "stages.sums.was"),
    ],
)
def test_a_past_that_cannot_be_is_refused_with_both_stages(project, changes, told):
    with pytest.raises(InvalidSpec, match=told):
        made(project, **changes)


def test_two_inputs_under_one_name_are_refused(project):
    stages = declared()
    stages["sums"]["inputs"] = {
        "halved": {"exchange": "keyed", "key": "number", "frame": "x"},
        "doubled": {"exchange": "keyed", "key": "number", "frame": "x"},
    }
    with pytest.raises(InvalidSpec, match=r"the input halved is given as x, too"):
        project.pipeline("of_names", stages, schedule="@daily")
