"""What people are told of each exchange: its form, the reason, and what a kill costs."""

from __future__ import annotations

import pytest

from stagehold.plan.split.exchange_forms import exchange_forms
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.settings.output_settings import TypeReason

SOURCE = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": 4}
CHAIN = {
    "a": {"source": SOURCE},
    "b": {"inputs": {"a": "forward"}},
    "c": {"inputs": {"b": {"exchange": "keyed", "key": "k"}}, "partitions": 2},
    "d": {"inputs": {"c": "gather"}},
}
DIAMOND = {
    "a": {"source": SOURCE},
    "b": {"inputs": {"a": "forward"}},
    "c": {"inputs": {"a": {"exchange": "keyed", "key": "k"}}, "partitions": 4},
    "d": {"inputs": {"b": {"exchange": "keyed", "key": "k"}, "c": "forward"}, "partitions": 4},
}


@pytest.fixture
def forms(tmp_path):
    (tmp_path / "jobs.py").write_text("\n".join(f"def {name}(ctx, *given, **more): ..." for name in "abcd"))

    def made(stages, mode, **changes):
        declared = {name: {"job": f"jobs:{name}", **fields, **changes.get(name, {})} for name, fields in stages.items()}
        declaration = {"pipeline": "p", "execution_mode": mode, "stages": declared}
        found = exchange_forms(build_pipeline(declaration, project=tmp_path, suites=tmp_path))
        return {f"{form.producer}-{form.reader}": form for form in found}

    return made


def shown(forms):
    return " ".join(f"{edge}:{'stored' if form.type.stored else 'along'}" for edge, form in forms.items())


MODES = [
    (CHAIN, "pipelined", "a-b:along b-c:along c-d:along"),
    (CHAIN, "pipelined_with_batch_fallback", "a-b:along b-c:along c-d:along"),
    (CHAIN, "pipelined_forced", "a-b:along b-c:along c-d:along"),
    (CHAIN, "batch", "a-b:along b-c:stored c-d:stored"),
    (CHAIN, "batch_forced", "a-b:stored b-c:stored c-d:stored"),
    (DIAMOND, "pipelined", "a-b:stored a-c:stored b-d:along c-d:along"),
    (DIAMOND, "pipelined_forced", "a-b:along a-c:along b-d:along c-d:along"),
    (DIAMOND, "batch", "a-b:stored a-c:stored b-d:stored c-d:along"),
]


@pytest.mark.parametrize(("stages", "mode", "expected"), MODES)
def test_each_mode_means_what_it_says(forms, stages, mode, expected):
    assert shown(forms(stages, mode)) == expected


def test_a_chain_of_shuffles_costs_all_of_its_last_stage_and_says_so(forms):
    told = forms(CHAIN, "pipelined")
    assert {form.cost_of_kill.partition(",")[0] for form in told.values()} == {"all of d"}
    assert told["b-c"].cost_of_kill == "all of d, with all of b"
    assert told["b-c"].reason == "execution_mode: pipelined"


def test_what_is_read_forward_costs_a_wave_and_what_is_stored_nothing(forms):
    told = forms(CHAIN, "batch")
    assert told["a-b"].cost_of_kill == "the wave of b under way, with its part of a"
    assert told["b-c"].cost_of_kill == "nothing of b that is consumable"


def test_a_diamond_is_stored_where_it_parts_and_says_why(forms):
    told = forms(DIAMOND, "pipelined")
    assert told["a-b"].why is told["a-c"].why is TypeReason.JOINED_AGAIN
    assert told["a-b"].reason == "its branches meet again, and could wait for each other"


STORED = [
    ("b", {"output": {"type": "blocking"}}, TypeReason.DECLARED),
    ("b", {"output": {"columns": {"k": {"type": "int"}}}}, TypeReason.COLUMNS),
    ("c", {"partitions": "auto"}, TypeReason.AUTO),
    ("c", {"max_parallel_tasks": 2}, TypeReason.TASKS),
    ("a", {"max_parallel_tasks": 2}, TypeReason.TASKS),
]


@pytest.mark.parametrize(("stage", "change", "why"), STORED)
@pytest.mark.parametrize("mode", ["pipelined", "pipelined_forced"])
def test_what_cannot_flow_is_stored_with_its_reason(forms, stage, change, why, mode):
    told = forms(CHAIN, mode, **{stage: change})["b-c"]
    assert (told.type.stored, told.why) == (True, why)


def test_what_several_stages_read_is_kept_while_the_task_runs(forms):
    stages = {**CHAIN, "d": {"inputs": {"b": "gather"}}}
    told = forms(stages, "pipelined")
    assert told["b-c"].form == told["b-d"].form == "kept while the task runs"
