"""Every mistake in a pipeline file: where it is reported, what it says, and that nothing else is reported with it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.spec.samples import MISTAKES, VALID, Project, edited

from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import build_pipeline, load_pipeline
from stagehold.spec.pipeline import Exchange, Output, OutputType, Pipeline
from stagehold.spec.settings.output_settings import CommitterKind, Evolution, OnForeignChange
from stagehold.spec.settings.restart import RestartStrategy
from stagehold.spec.settings.run_settings import CheckpointSettings, Failover, OnCancel, ScheduleMode


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_stage_has_its_own_policy_or_that_of_its_pipeline(project: Project) -> None:
    pipeline = project.load(
        edited(
            "early_cutoff: true => determinism: error",
            "gate: joined => gate: joined\n    determinism: off\\n    on_code_change: keep",
        )
    )
    assert [pipeline.determinism_of(pipeline.stage(name)) for name in ("orders", "joined")] == ["error", "off"]
    assert [pipeline.stage(name).on_code_change for name in ("orders", "joined")] == ["recompute", "keep"]


def test_a_valid_file_becomes_a_pipeline_with_every_field(project: Project) -> None:
    pipeline = project.load(VALID)
    assert (pipeline.name, pipeline.schedule, pipeline.params) == ("revenue", "0 2 * * *", {"segment": "BUILDING"})
    assert (pipeline.schedule_mode, pipeline.failover, pipeline.early_cutoff) == (
        ScheduleMode.EAGER,
        Failover.FULL,
        True,
    )
    assert pipeline.wave == timedelta(seconds=30)
    assert (pipeline.restart.strategy, pipeline.restart.initial) == (
        RestartStrategy.EXPONENTIAL_DELAY,
        timedelta(milliseconds=500),
    )
    assert [stage.name for stage in pipeline.stages] == ["orders", "lineitem", "joined", "cleaned", "top"]
    joined = pipeline.stage("joined")
    assert [(edge.stage, edge.exchange, edge.key) for edge in joined.inputs] == [
        ("orders", Exchange.KEYED, ("o_orderkey",)),
        ("lineitem", Exchange.KEYED, ("l_orderkey",)),
    ]
    assert (joined.id, pipeline.stage("cleaned").id) == ("joined", "cleaned_orders")
    assert joined.input("lineitem").key == ("l_orderkey",)
    assert [stage.name for stage in pipeline.readers("joined")] == ["cleaned"]
    assert (pipeline.stage("top").output.type, pipeline.stage("top").output.table) == (
        OutputType.BLOCKING_PERSISTENT,
        "marts.top",
    )
    assert all(type.stored for type in (OutputType.BLOCKING, OutputType.BLOCKING_PERSISTENT))
    assert not OutputType.PIPELINED.stored


def test_what_is_left_out_is_filled_in(project: Project) -> None:
    stages = {stage.name: stage for stage in project.load(VALID).stages}
    assert {name: stage.partitions for name, stage in stages.items()} == {
        "orders": 16,
        "lineitem": 4,
        "joined": 8,
        "cleaned": 8,
        "top": 1,
    }
    assert {name: stage.max_parallelism for name, stage in stages.items()}["joined"] == 64
    assert stages["orders"].max_parallelism == 128
    assert [name for name, stage in stages.items() if stage.max_parallelism_declared] == ["joined"]
    assert stages["joined"].key == ("o_orderkey",)
    assert stages["orders"].output.type is OutputType.BLOCKING


def test_a_pipeline_survives_its_own_json(project: Project) -> None:
    pipeline = project.load(VALID)
    assert '"wave":"30s"' in pipeline.model_dump_json()
    assert Pipeline.model_validate_json(pipeline.model_dump_json()) == pipeline


@pytest.mark.parametrize(("edit", "line", "field", "text"), MISTAKES, ids=[edit for edit, *_ in MISTAKES])
def test_a_mistake_is_reported_once_at_its_place(project: Project, edit: str, line: int, field: str, text: str) -> None:
    problems = project.problems(edited(edit))
    assert [problem[:2] for problem in problems] == [(line, field)], problems
    assert text in problems[0][2]


def test_all_mistakes_are_listed_at_once_by_line(project: Project) -> None:
    problems = project.problems(
        edited(
            "failover: full => failover: fully",
            "wave: 30s => wave: soon",
            "gate: joined => gate: nope",
            "top\n => tip\n",
        )
    )
    assert [(line, field) for line, field, _ in problems] == [
        (5, "wave"),
        (10, "failover"),
        (28, "stages.joined.gate"),
        (35, "stages.top.job"),
    ]


def test_the_error_shows_file_line_field_and_what_to_do(project: Project) -> None:
    with pytest.raises(InvalidSpec) as caught:
        project.load(edited("failover: full => failover: fully"))
    path = project.root / "revenue.yaml"
    assert f"{path}:10: failover: got 'fully'; allowed: region, full (did you mean full?)" in str(caught.value)
    assert str(caught.value.problems[0]).startswith("line 10: failover: got 'fully'")


@pytest.mark.parametrize(
    ("edit", "wave"),
    [
        ("wave: 30s => wave: 45s", timedelta(seconds=45)),
        ("wave: 30s => wave: auto", "auto"),
        ("wave: 30s\\n => ", timedelta(seconds=30)),
    ],
)
def test_a_wave_lasts_as_long_as_the_file_says(project: Project, edit: str, wave: timedelta | str) -> None:
    pipeline = project.load(edited(edit))
    assert pipeline.wave == wave
    assert Pipeline.model_validate_json(pipeline.model_dump_json()).wave == wave


def test_a_run_keeps_as_many_checkpoints_as_the_file_says(project: Project) -> None:
    assert project.load(VALID).checkpoint.retained == 1
    assert project.load(edited("wave: 30s => checkpoint: {retained: 3}")).checkpoint.retained == 3


def test_checkpoints_are_taken_as_often_as_the_file_says(project: Project) -> None:
    assert project.load(VALID).checkpoint.interval is None
    fields = "interval: 10ms, min_pause: 5s, timeout: 1min, max_concurrent: 2, tolerable_failures: unlimited"
    pipeline = project.load(edited(f"wave: 30s => checkpoint: {{{fields}, on_cancel: delete}}"))
    assert pipeline.checkpoint == CheckpointSettings(
        interval=timedelta(milliseconds=10),
        min_pause=timedelta(seconds=5),
        timeout=timedelta(minutes=1),
        max_concurrent=2,
        tolerable_failures="unlimited",
        on_cancel=OnCancel.DELETE,
    )
    assert Pipeline.model_validate_json(pipeline.model_dump_json()) == pipeline


@pytest.mark.parametrize(
    ("inputs", "cycles"),
    [
        ({"one": ["three"], "two": ["one"], "three": ["two"]}, ["one -> two -> three -> one"]),
        ({"one": ["one"]}, ["one -> one"]),
        (
            {"one": ["two"], "two": ["one"], "three": ["four"], "four": ["three"]},
            ["one -> two -> one", "three -> four -> three"],
        ),
    ],
)
def test_every_cycle_is_named(project: Project, inputs: dict[str, list[str]], cycles: list[str]) -> None:
    stages = {
        name: {"job": "work.jobs:anything", "inputs": {producer: "broadcast" for producer in producers}}
        for name, producers in inputs.items()
    }
    with pytest.raises(InvalidSpec) as caught:
        build_pipeline({"pipeline": "circular", "stages": stages}, project=project.root, suites=project.suites)
    assert {_rotated(problem.given.removeprefix("the cycle ")) for problem in caught.value.problems} == {
        _rotated(cycle) for cycle in cycles
    }


def _rotated(cycle: str) -> tuple[str, ...]:
    """A cycle told from its smallest name on, whichever stage it was told from."""
    names = cycle.split(" -> ")[:-1]
    start = names.index(min(names))
    return (*names[start:], *names[:start])


def small(**changes: dict[str, Any]) -> dict[str, Any]:
    """A pipeline of two stages made in Python; a keyword replaces fields of the stage of that name."""
    stages: dict[str, dict[str, Any]] = {
        "first": {"job": "work.jobs:orders", "source": {"kind": "parquet", "path": "raw/*.parquet", "splits": 2}},
        "second": {"job": "work.jobs:anything", "inputs": {"first": "forward"}},
    }
    return {"pipeline": "small", "stages": {name: stage | changes.get(name, {}) for name, stage in stages.items()}}


def test_a_pipeline_made_in_python_passes_the_same_checks(project: Project) -> None:
    pipeline = build_pipeline(small(), project=project.root, suites=project.suites)
    assert (pipeline.file, [stage.partitions for stage in pipeline.stages]) == ("<python>", [2, 2])
    with pytest.raises(InvalidSpec, match=r"<python>:0: stages.second.gate: got 'none'; allowed: a file none.yaml"):
        build_pipeline(small(second={"gate": "none"}), project=project.root, suites=project.suites)


def test_the_pipelined_modes_stream_what_flows_one_to_one_and_what_is_read_whole(project: Project) -> None:
    def first_output(mode: str = "pipelined", **changes: dict[str, Any]) -> OutputType:
        declaration = small(**changes) | {"execution_mode": mode}
        return build_pipeline(declaration, project=project.root, suites=project.suites).stage("first").output.type

    assert first_output() is OutputType.PIPELINED
    assert first_output(first={"gate": "joined"}) is OutputType.BLOCKING
    assert first_output(second={"inputs": {"first": "broadcast"}}) is OutputType.PIPELINED
    assert first_output("batch", second={"inputs": {"first": "broadcast"}}) is OutputType.BLOCKING
    assert first_output("batch_forced") is OutputType.BLOCKING


def test_only_what_its_mode_lets_flow_falls_back_to_a_table(project: Project) -> None:
    def first_output(**changes: Any) -> Output:
        declaration = small(**changes) | {"execution_mode": "pipelined_with_batch_fallback"}
        return build_pipeline(declaration, project=project.root, suites=project.suites).stage("first").output

    chosen, given = first_output(), first_output(first={"output": {"type": "pipelined"}})
    assert (chosen.type, chosen.falls_back, chosen.stored, chosen.may_have_table) == ("pipelined", True, False, True)
    assert (given.type, given.falls_back, given.stored, given.may_have_table) == ("pipelined", False, False, False)
    assert first_output(second={"inputs": {"first": "broadcast"}}).falls_back
    assert not first_output(first={"gate": "joined"}).falls_back
    with pytest.raises(InvalidSpec, match="falls_back"):
        first_output(first={"output": {"falls_back": True}})


@pytest.mark.parametrize("value", ["!!int ''", "!!float ''", "!!bool maybe", "!!timestamp soon"])
def test_a_tag_whose_text_is_none_of_its_kind_is_a_problem_of_its_field(tmp_path, value):
    file = tmp_path / "p.yaml"
    file.write_text(f"pipeline: p\nrun_timeout: {value}\n")
    with pytest.raises(InvalidSpec, match="run_timeout"):
        load_pipeline(file, project=tmp_path, suites=tmp_path)


@pytest.mark.parametrize(
    ("content", "line", "field", "given"),
    [
        (b"", 1, "file", "nothing"),
        (b"just text", 1, "file", "str"),
        (b"- a list", 1, "file", "seq"),
        (b"\xff\xfe\xfa", 1, "file", "codec can't decode"),
        (b"a: [\n  b", 2, "file", "while parsing a flow sequence"),
        (b"a: 1\n---\nb: 2\n", 2, "file", "expected a single document"),
        (b"a: \x01\n", 1, "file", "special characters are not allowed"),
        (b"[" * 5000, 1, "file", "nested too deeply"),
        (b"a: " + b"[" * 900 + b"]" * 900, 1, "file", "nested too deeply"),
        (b"[\n" * 200_000, 1, "file", "nested too deeply"),  # of which libyaml dies
        (b"a: " + b"- " * 100_000, 1, "file", "sequence entries are not allowed here"),
        (b"a:\n  " + b"- " * 100_000 + b"b", 1, "file", "nested too deeply"),
        (b"? " * 100_000 + b"b", 1, "file", "nested too deeply"),
        (b"pipeline: p\nstages: {}\n", 2, "stages", "a mapping"),
        (b"pipeline: p\n", 1, "stages", "nothing"),
        (b"pipeline: p\nstages: [a]\n", 2, "stages", "['a']"),
        (b"pipeline: p\nstages: {a: }\n", 2, "stages.a", "nothing"),
        (b"pipeline: p\nparams:\nstages: {a: }\n", 3, "stages.a", "nothing"),
    ],
)
def test_a_file_that_is_no_pipeline_is_one_problem(
    project: Project, content: bytes, line: int, field: str, given: str
) -> None:
    path = project.root / "odd.yaml"
    path.write_bytes(content)
    with pytest.raises(InvalidSpec) as caught:
        load_pipeline(path, project=project.root, suites=project.suites)
    assert [(problem.line, problem.field) for problem in caught.value.problems] == [(line, field)]
    assert given in caught.value.problems[0].given


def test_a_missing_file_is_a_problem_of_that_file(project: Project) -> None:
    with pytest.raises(InvalidSpec, match="No such file or directory"):
        load_pipeline(project.root / "none.yaml", project=project.root, suites=project.suites)


def test_names_that_yaml_takes_for_values_stay_names(project: Project) -> None:
    pipeline = project.load(edited("  top: =>   on:"))
    assert pipeline.stages[-1].name == "on"


@pytest.mark.parametrize("stage", yaml.safe_load(VALID)["stages"])
def test_a_stage_that_cannot_be_read_hides_no_mistake_elsewhere(project: Project, stage: str) -> None:
    declaration = yaml.safe_load(VALID)
    declaration["stages"][stage] = "nonsense"
    declaration["failover"] = "never"
    with pytest.raises(InvalidSpec) as caught:
        build_pipeline(declaration, project=project.root, suites=project.suites)
    assert {problem.field for problem in caught.value.problems} == {f"stages.{stage}", "failover"}


@pytest.mark.parametrize(("option", "given"), [("file_bytes: 1mb", "1048576"), ("committer: staged", "staged")])
def test_how_an_output_is_stored_is_asked_only_where_one_is(project: Project, option: str, given: str) -> None:
    problems = project.problems(edited(f"    per_wave: true =>     output: {{type: pipelined, {option}}}"))
    field = f"stages.cleaned.output.{option.partition(':')[0]}"
    assert (33, field, f"{given} | only where the type is blocking or blocking_persistent") in problems
    streaming = edited(
        "execution_mode: batch => execution_mode: pipelined",
        f"    per_wave: true =>     output: {{{option}}}",
        "inputs: {cleaned: gather} => inputs: {cleaned: forward}",
    )
    assert (33, field, f"{given} | only where the type is blocking or blocking_persistent") in project.problems(
        streaming
    )


def test_what_others_do_is_asked_only_of_a_published_table(project: Project) -> None:
    given = edited("    per_wave: true =>     output: {on_foreign_change: heal}")
    problem = (33, "stages.cleaned.output.on_foreign_change", "heal | only where the type is blocking_persistent")
    assert problem in project.problems(given)
    output = project.load(edited("marts.top => marts.top, on_foreign_change: keep")).stage("top").output
    assert output.on_foreign_change is OnForeignChange.KEEP
    assert project.load(VALID).stage("top").output.on_foreign_change is OnForeignChange.FAIL


def test_whether_columns_may_come_is_asked_only_of_a_published_table(project: Project) -> None:
    given = edited("    per_wave: true =>     output: {schema: fail}")
    problem = (33, "stages.cleaned.output.schema", "fail | only where the type is blocking_persistent")
    assert problem in project.problems(given)
    pipeline = project.load(edited("marts.top => marts.top, schema: fail"))
    assert pipeline.stage("top").output.evolution is Evolution.FAIL
    assert Pipeline.model_validate(pipeline.model_dump(mode="json")) == pipeline
    assert project.load(VALID).stage("top").output.evolution is Evolution.EVOLVE
    wrong = edited("marts.top => marts.top, evolution: fail")
    assert [problem[1] for problem in project.problems(wrong)] == ["stages.top.output.evolution"]


def test_how_an_output_is_stored_comes_through(project: Project) -> None:
    output = project.load(edited("marts.top => marts.top, committer: delta_spark, file_bytes: 1mb")).stage("top").output
    assert (output.committer, output.file_bytes, output.table) == (CommitterKind.DELTA_SPARK, 1 << 20, "marts.top")
    untouched = project.load(VALID).stage("joined").output
    assert (untouched.committer, untouched.file_bytes) == (CommitterKind.STAGED, 128 << 20)


def test_a_module_that_is_not_there_is_told_with_both_places_where_it_was_looked_for(tmp_path):
    project = Project(tmp_path)
    (problem,) = project.problems(edited("job: work.jobs:top => job: shop.jobs:top"))
    given = "'shop.jobs:top', but there is no shop/jobs.py"
    assert problem == (35, "stages.top.job", f"{given} | a module under {tmp_path} or its src/")
    (tmp_path / "src" / "shop").mkdir(parents=True)
    (tmp_path / "work" / "jobs.py").rename(tmp_path / "src" / "shop" / "jobs.py")
    assert project.load(VALID.replace("work.jobs:", "shop.jobs:")).stage("top").job == "shop.jobs:top"
