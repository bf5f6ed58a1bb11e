"""From a form without problems to the pipeline: every default is filled in here, once."""

from __future__ import annotations

from collections.abc import Mapping

from stagehold.model.execution_mode import StageExchange, output_types
from stagehold.model.key_groups import default_max_parallelism
from stagehold.model.spec import Exchange, Input, Output, OutputType, Pipeline, Source, Stage
from stagehold.model.spec_form import PipelineForm, StageForm
from stagehold.model.spec_graph import partition_counts


def resolve(form: PipelineForm, order: tuple[str, ...], file: str) -> Pipeline:
    """:param order: names of all stages, producers first"""
    counts = partition_counts(order, form.stages)
    stages = tuple(_stage(name, form, counts[name]) for name in order)
    rest = {name: getattr(form, name) for name in Pipeline.model_fields if name in PipelineForm.model_fields and name != "stages"}
    return Pipeline(name=form.pipeline or "", file=file, stages=stages, **rest)


def output_of(name: str, form: PipelineForm) -> Output:
    """A stage's output with its type chosen; one that nobody reads is stored."""
    output = form.stages[name].output
    if "type" in output.model_fields_set:
        return output
    return output.model_copy(update={"type": _chosen_types(form).get(name, OutputType.BLOCKING)})


def _chosen_types(form: PipelineForm) -> Mapping[str, OutputType]:
    exchanges = [
        StageExchange(producer, reader, edge.exchange) for reader, stage in form.stages.items() for producer, edge in stage.inputs.items()
    ]
    given = {name: stage.output.type for name, stage in form.stages.items() if "type" in stage.output.model_fields_set}
    gated = [name for name, stage in form.stages.items() if stage.gate is not None]
    return output_types(exchanges, form.execution_mode, given=given, stored=gated)


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
