"""From a draft without problems to the pipeline: every default is filled in here, once."""

from __future__ import annotations

from stagehold.model.key_groups import default_max_parallelism
from stagehold.model.spec import Input, Pipeline, Stage
from stagehold.model.spec_draft import Draft
from stagehold.model.spec_failures import declared_failures
from stagehold.model.spec_form import PipelineForm
from stagehold.model.spec_graph import key_of
from stagehold.model.spec_source import Source

AS_WRITTEN = ("job", "uid", "gate", "per_wave", "on_code_change", "determinism", "max_parallel_tasks", "co_location", "params")


def resolve(draft: Draft, file: str) -> Pipeline:
    form = draft.form
    own = ("stages", "failures")
    rest = {name: getattr(form, name) for name in Pipeline.model_fields if name in PipelineForm.model_fields and name not in own}
    stages = tuple(_stage(name, draft) for name in draft.order)
    return Pipeline(name=form.pipeline or "", file=file, stages=stages, failures=declared_failures(form.failures), **rest)


def _stage(name: str, draft: Draft) -> Stage:
    stage, root = draft.stages[name], draft.auto.get(name)
    partitions = 1 if root else draft.counts[name]
    return Stage.model_validate(
        {
            **{field: getattr(stage, field) for field in AS_WRITTEN},
            "name": name,
            "source": None if stage.source is None else Source.model_validate(stage.source.model_dump(mode="json", exclude_none=True)),
            "inputs": tuple(Input(stage=producer, exchange=edge.exchange, key=edge.key) for producer, edge in stage.inputs.items()),
            "partitions": partitions,
            "auto_partitions": root == name,
            "max_parallelism": stage.max_parallelism
            or (root and draft.stages[root].max_parallelism)
            or default_max_parallelism(partitions or 1),
            "key": key_of(stage),
            "output": stage.output.model_copy(update={"type": draft.types[name]}),
        }
    )
