"""From a draft without problems to the pipeline: every default is filled in here, once."""

from __future__ import annotations

from stagehold.model.keys.key_groups import default_max_parallelism
from stagehold.spec.checks.failures import declared_failures
from stagehold.spec.checks.notifiers import declared_notifiers
from stagehold.spec.draft import Draft
from stagehold.spec.graph import key_of
from stagehold.spec.pipeline import Input, Output, OutputForm, OutputType, Pipeline, Stage, StageSettings
from stagehold.spec.settings.run_settings import ExecutionMode, RunSettings
from stagehold.spec.settings.source import Source


def resolve(draft: Draft, file: str) -> Pipeline:
    form = draft.form
    return Pipeline(
        name=form.pipeline or "",
        file=file,
        stages=tuple(_stage(name, draft) for name in draft.order),
        failures=declared_failures(form.failures),
        on_failure=declared_notifiers(form.on_failure),
        on_gate_warning=declared_notifiers(form.on_gate_warning),
        on_resume=declared_notifiers(form.on_resume),
        **{name: getattr(form, name) for name in RunSettings.model_fields},
    )


def _stage(name: str, draft: Draft) -> Stage:
    stage, root = draft.stages[name], draft.auto.get(name)
    partitions = 1 if root else draft.counts[name]
    return Stage.model_validate(
        {
            **{field: getattr(stage, field) for field in StageSettings.model_fields},
            "name": name,
            "job": stage.job,
            "source": None
            if stage.source is None
            else Source.model_validate(stage.source.model_dump(mode="json", exclude_unset=True)),
            "inputs": tuple(
                Input(stage=producer, exchange=edge.exchange, key=edge.key) for producer, edge in stage.inputs.items()
            ),
            "partitions": partitions,
            "auto_partitions": root == name,
            "max_parallelism": stage.max_parallelism
            or (root and draft.stages[root].max_parallelism)
            or default_max_parallelism(partitions or 1),
            "max_parallelism_declared": stage.max_parallelism is not None,
            "key": key_of(stage),
            "output": _output(stage.output, draft.types[name], draft.form.execution_mode),
        }
    )


def _output(form: OutputForm, kind: OutputType, mode: ExecutionMode) -> Output:
    written = {field: getattr(form, field) for field in OutputForm.model_fields}
    chosen = "type" not in form.model_fields_set and mode is ExecutionMode.PIPELINED_WITH_BATCH_FALLBACK
    return Output.model_validate({**written, "type": kind, "falls_back": chosen and not kind.stored})
