"""Planning against a real ledger and a real folder lake, without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.lake.paper_table import INTERVAL, PaperTable
from tests.plan.resume.situations import forward
from tests.plan.split.test_partition_counts import keyed, stage

from stagehold.lake.store.location import TableLocation
from stagehold.ledger import Ledger
from stagehold.plan.resume.decisions import Action
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.source import Source

RAW = Stage(
    name="raw",
    job="jobs.x:raw",
    source=Source(kind="parquet", path="${lake}/raw/*.parquet", splits=2),
    partitions=2,
    max_parallelism=128,
)
PIPELINE = Pipeline(
    name="p", file="p.yaml", stages=(RAW, stage("joined", keyed("raw"), auto=True), stage("checked", forward("joined")))
)
REQUEST = RunRequest(PIPELINE, "run", INTERVAL, {})


def compute_raw(ledger: Ledger, settings: Settings, *partitions: int, megabytes: int = 40) -> None:
    """Publish and record partitions of the source; their recorded size is what is decided from."""
    table = PaperTable(
        TableLocation("raw", f"{settings.lake_uri}/tables/{partitions[0]}-{megabytes}", "raw", None)
    ).create()
    recorded = table.publish({partition: [("a", partition)] for partition in partitions})
    for record in recorded:
        path = Path(table.location.uri, record.files[0].path)
        with path.open("ab") as file:
            file.truncate(megabytes * 1024 * 1024)
    large = [
        replace(record, files=tuple(replace(file, bytes=megabytes * 1024 * 1024) for file in record.files))
        for record in recorded
    ]
    ledger.partitions.record(large, ledger.leases.acquire("raw", "me", 60))


def decide(ledger: Ledger, settings: Settings) -> list[tuple[int, int]]:
    return [
        (count.partitions, count.bytes) for count in IntervalView(REQUEST, ledger, settings).decide_counts(("joined",))
    ]


def actions(ledger: Ledger, settings: Settings, name: str) -> list[Action]:
    return [decision.action for decision in IntervalView.of_run(REQUEST, ledger, settings).plan.of(name)]


def test_a_number_is_decided_once_all_inputs_are_there_and_then_kept(settings: Settings, ledger: Ledger) -> None:
    compute_raw(ledger, settings, 0)
    assert decide(ledger, settings) == []
    assert len(actions(ledger, settings, "checked")) == 1
    compute_raw(ledger, settings, 1)
    assert decide(ledger, settings) == [(6, 80 * 1024 * 1024)]
    compute_raw(ledger, settings, 1, megabytes=400)
    assert decide(ledger, settings) == []
    assert actions(ledger, settings, "joined") == actions(ledger, settings, "checked") == [Action.RUN] * 6


def test_nothing_is_decided_by_looking(settings: Settings, ledger: Ledger) -> None:
    compute_raw(ledger, settings, 0, 1)
    assert len(IntervalView.of_run(REQUEST, ledger, settings).plan.of("joined")) == 1
    assert ledger.partition_counts.decided("p", INTERVAL) == {}


@pytest.mark.parametrize(
    "source",
    [
        Source(kind="parquet", path="side/*.parquet", splits=2),
        Source(kind="parquet", splits=(("side/a.parquet",), ("side/b.parquet",))),
    ],
)
def test_a_relative_source_is_the_projects_and_the_same_from_every_folder(
    settings: Settings, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, source: Source
) -> None:
    project, stages = Path(settings.project), (RAW.model_copy(update={"source": source}),)
    for name in ("side/a.parquet", "side/b.parquet", "elsewhere/side/a.parquet"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(b"")
    request = replace(REQUEST, pipeline=PIPELINE.model_copy(update={"stages": stages}))
    keys = []
    for folder in (project, project / "elsewhere"):
        monkeypatch.chdir(folder)
        splits = IntervalView(request, ledger, settings).sources.of(stages[0]).splits
        assert [[file.path for file in split.files] for split in splits] == [
            [str(project / "side" / name)] for name in ("a.parquet", "b.parquet")
        ]
        keys.append([str(decision.key) for decision in IntervalView.of_run(request, ledger, settings).plan.of("raw")])
    assert keys[0] == keys[1]
