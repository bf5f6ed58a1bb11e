"""Lineage in the words of OpenLineage. Imported only when it is sent, and only where its provider is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

import attr
from airflow.providers.openlineage import conf
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from airflow.providers.openlineage.plugins.macros import lineage_job_name, lineage_job_namespace, lineage_run_id
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    RunFacet,
    data_quality_assertions_dataset,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
)
from openlineage.client.uuid import generate_static_uuid

from stagehold.airflow.telling.task_work import StageLineage
from stagehold.model.choices import Severity
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import GateResult

PRODUCER = "urn:stagehold"
SEVERITIES = {Severity.CRITICAL: "error", Severity.WARNING: "warn", Severity.INFO: "info"}


@attr.define
class StageRunFacet(RunFacet):  # type: ignore[misc]
    """Facts about a run of a stage: how many of its ``partitions`` were ``computed``, and in how many waves."""

    interval: str
    partitions: int
    computed: int
    waves: int


class NotingClient:
    """The provider's client, which keeps the error that its transport raises: the provider only logs it."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.problem: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def emit(self, event: RunEvent) -> None:
        try:
            self._client.emit(event)
        except Exception as error:
            self.problem = error
            raise


def emit(lineage: StageLineage, task_instance: Any) -> Exception | None:
    """Send it by the provider's own transport, with its redaction. What the transport raised, which the provider logs.
    Of one that sends later, nobody knows.
    """
    if conf.is_disabled():
        return None
    client = NotingClient(OpenLineageAdapter().get_or_create_openlineage_client())
    OpenLineageAdapter(client=client).emit(event_of(lineage, task_instance))
    return client.problem


def event_of(lineage: StageLineage, task_instance: Any) -> RunEvent:
    """An event with a run of its own for each stage and moment, whose parent is the run that the provider reports for
    the task.
    """
    now = datetime.now(UTC)
    stage, namespace, name = lineage.work.stage.name, lineage_job_namespace(), lineage_job_name(task_instance)
    parent_id = lineage_run_id(task_instance)
    parent = parent_run.ParentRunFacet(
        run=parent_run.Run(runId=parent_id), job=parent_run.Job(namespace=namespace, name=name), producer=PRODUCER
    )
    facets = {"parent": parent, "stagehold": _stage_facet(lineage)}
    kind = job_type_job.JobTypeJobFacet("BATCH", "STAGEHOLD", "STAGE", producer=PRODUCER)
    return RunEvent(
        eventTime=now.isoformat(),
        eventType=RunState.COMPLETE,
        producer=PRODUCER,
        run=Run(runId=str(generate_static_uuid(now, f"{parent_id}/{stage}".encode())), facets=facets),
        job=Job(namespace=namespace, name=f"{name}.{stage}", facets={"jobType": kind}),
        inputs=[_input(*data) for data in lineage.inputs],
        outputs=[_output(lineage)],
    )


def _stage_facet(lineage: StageLineage) -> StageRunFacet:
    work = lineage.work
    facts = (lineage.interval, len(work.records), len(work.computed), work.waves)
    return StageRunFacet(*facts, producer=PRODUCER)  # type: ignore[call-arg]


def _input(uri: str, verdicts: Iterable[GateResult]) -> InputDataset:
    namespace, name = _name(uri)
    return InputDataset(namespace=namespace, name=name, inputFacets=_quality(verdicts))


def _output(lineage: StageLineage) -> OutputDataset:
    uri, verdicts = lineage.output
    namespace, name = _name(uri)
    records = lineage.work.records
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=sum(one.rows for one in records),
        size=sum(one.bytes for one in records),
        fileCount=sum(len(one.files) for one in records),
        producer=PRODUCER,
    )
    return OutputDataset(
        namespace=namespace,
        name=name,
        facets=_quality(verdicts),
        outputFacets={"outputStatistics": statistics},
    )


def _name(uri: str) -> tuple[str, str]:
    """Namespace and name, as OpenLineage spells them for files, object stores and databases."""
    if "://" not in uri:
        return "file", uri
    parts = urlsplit(uri.removeprefix("jdbc:"))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", parts.path.lstrip("/")


def _quality(verdicts: Iterable[GateResult]) -> dict[str, Any]:
    found = list(_assertions(verdicts))
    facet = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(found, producer=PRODUCER)
    return {"dataQualityAssertions": facet} if found else {}


def _assertions(verdicts: Iterable[GateResult]) -> Iterator[data_quality_assertions_dataset.Assertion]:
    """One assertion for each expectation, over all partitions."""
    ordered = sorted(verdicts, key=lambda one: (one.expectation, one.severity, one.passed, one.partition))
    for (expectation, severity), some in groupby(ordered, key=lambda one: (one.expectation, one.severity)):
        failed = [one for one in some if not one.passed]
        yield data_quality_assertions_dataset.Assertion(
            assertion=expectation,
            success=not failed,
            severity=SEVERITIES[severity],
            actual=failed[0].observed if failed else None,
            description=f"not met by partition(s) {PartitionSet(one.partition for one in failed)}" if failed else None,
        )
