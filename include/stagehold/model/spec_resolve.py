"""From a form without problems to the pipeline: every default is filled in here, once."""

from __future__ import annotations

from collections.abc import Sequence

from stagehold.model.key_groups import default_max_parallelism
from stagehold.model.spec import Exchange, ExecutionMode, Input, Output, OutputType, Pipeline, Source, Stage
from stagehold.model.spec_form import PipelineForm, StageForm
from stagehold.model.spec_graph import partition_counts


def resolve(form: PipelineForm, order: tuple[str, ...], file: str) -> Pipeline:
    """:param order: names of all stages, producers first"""
    counts = partition_counts(order, form.stages)
    stages = tuple(_stage(name, form, counts[name]) for name in order)
    rest = {name: getattr(form, name) for name in Pipeline.model_fields if name in PipelineForm.model_fields and name != "stages"}
    return Pipeline(name=form.pipeline or "", file=file, stages=stages, **rest)


def default_output(mode: ExecutionMode, gated: bool, read_by: Sequence[Exchange]) -> OutputType:
    """The type of an output that names none. Only what every reader takes partition by partition can flow unstored."""
    flows = mode not in (ExecutionMode.BATCH, ExecutionMode.BATCH_FORCED)
    one_to_one = bool(read_by) and set(read_by) == {Exchange.FORWARD}
    return OutputType.PIPELINED if flows and one_to_one and not gated else OutputType.BLOCKING


def output_of(name: str, form: PipelineForm) -> Output:
    """A stage's output with its type chosen."""
    stage = form.stages[name]
    if "type" in stage.output.model_fields_set:
        return stage.output
    read_by = [reader.inputs[name].exchange for reader in form.stages.values() if name in reader.inputs]
    return stage.output.model_copy(update={"type": default_output(form.execution_mode, stage.gate is not None, read_by)})


def key_of(stage: StageForm) -> tuple[str, ...]:
    """Output columns that tell a row's partition; by default the columns of the first keyed input."""
    return stage.key or next((edge.key for edge in stage.inputs.values() if edge.exchange is Exchange.KEYED), ())


def _stage(name: str, form: PipelineForm, partitions: int | None) -> Stage:
    stage = form.stages[name]
    return Stage.model_validate(
        {
            **{field: getattr(stage, field) for field in ("job", "uid", "gate", "per_wave", "params")},
            "name": name,
            "source": None if stage.source is None else Source(**stage.source.model_dump()),
            "inputs": tuple(Input(stage=producer, exchange=edge.exchange, key=edge.key) for producer, edge in stage.inputs.items()),
            "partitions": partitions,
            "max_parallelism": stage.max_parallelism or default_max_parallelism(partitions or 1),
            "key": key_of(stage),
            "output": output_of(name, form),
        }
    )
