"""`stagehold what-if`: what would run if something failed, were lost or changed. Needs no run, no Spark and no data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import explanation, print_document, print_table
from stagehold.cli.common.request import AsJson
from stagehold.errors import InvalidArgument, InvalidTopology, SpecProblem, StageholdError
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stagehold.model.records import PartitionRecord
    from stagehold.plan.imagined.what_if import Consequences
    from stagehold.plan.resume.decisions import ResumePlan
    from stagehold.plan.resume.plan_summary import Estimate, Seconds
    from stagehold.spec.pipeline import Pipeline

_OF_PIPELINES = "nothing: a pipeline says `early_cutoff` itself, and what is healed to equal data spares its readers"
RUNS_TIMED = 5  # a resumed run times only what it ran, so earlier ones fill in the rest

Name = Annotated[
    str | None, typer.Argument(metavar="PIPELINE", help="Name of the pipeline, as its YAML file declares it.")
]
Fail = Annotated[
    list[str] | None,
    typer.Option("--fail", metavar="STAGE[:PARTITION]", help="This failed; with --topology, a vertex. Repeatable."),
]
Lost = Annotated[
    list[str] | None,
    typer.Option(
        "--lost",
        metavar="STAGE:PARTITION",
        help="The data of this is gone; with --topology, a partition's. Repeatable.",
    ),
]
Changed = Annotated[
    list[str] | None, typer.Option("--changed", metavar="STAGE", help="The code of this stage changed. Repeatable.")
]
Graph = Annotated[
    Path | None, typer.Option("--topology", metavar="FILE", help="A graph as JSON instead of a pipeline.")
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing", metavar="PARTITION", help="With --topology: what the failure names as missing. Repeatable."
    ),
]

EarlyCutoff = Annotated[
    bool,
    typer.Option(
        "--early-cutoff",
        help="With --topology: spare what has finished and reads what was only lost, as a resume does. "
        "Default: Flink's rule, which restarts it.",
    ),
]


def what_if(
    pipeline: Name = None,
    fail: Fail = None,
    lost: Lost = None,
    changed: Changed = None,
    topology: Graph = None,
    missing: Missing = None,
    early_cutoff: EarlyCutoff = False,
    as_json: AsJson = False,
) -> None:
    """Show what would run if something failed, were lost or changed, as if all had been computed before."""
    if (pipeline is None) == (topology is None):
        raise InvalidArgument("PIPELINE", pipeline or "", "the name of a pipeline, or --topology FILE instead of it")
    if topology is not None:
        _refuse("--changed", changed, "nothing: a graph given with --topology has no code")
        found = _about_graph(topology, fail or (), lost or (), missing or (), early_cutoff=early_cutoff)
        _show_graph(topology, found, early_cutoff=early_cutoff, as_json=as_json)
    else:
        _refuse("--early-cutoff", ["given"] if early_cutoff else None, _OF_PIPELINES)
        _refuse("--missing", missing, "nothing: of a pipeline, --lost names what is missing")
        _about_pipeline(pipeline or "", fail or (), lost or (), changed or (), as_json=as_json)


def _refuse(option: str, given: Sequence[str] | None, allowed: str) -> None:
    if given:
        raise InvalidArgument(option, ", ".join(given), allowed)


def _about_pipeline(
    name: str, fail: Sequence[str], lost: Sequence[str], changed: Sequence[str], *, as_json: bool
) -> None:
    from stagehold.plan.imagined.what_if import hypothesis_of, imagined_run, what_if
    from stagehold.plan.resume.plan_summary import estimate
    from stagehold.spec.loading.loader import find_pipeline

    settings = load_settings()
    pipeline = find_pipeline(name, settings)
    plan, consequences = what_if(
        imagined_run(pipeline), hypothesis_of(pipeline, failed=fail, lost=lost, changed=changed)
    )
    cost = estimate(plan, _timed(pipeline, settings))
    if as_json:
        _print_json(pipeline, plan, consequences, cost)
    else:
        _print_table(name, plan, cost)
        if consequences.spared:
            typer.echo(_spared_text(consequences, early_cutoff=True))


def _about_graph(
    file: Path, failed: Sequence[str], lost: Sequence[str], missing: Sequence[str], *, early_cutoff: bool
) -> Consequences:
    from stagehold.plan.imagined.what_if import what_if_graph
    from stagehold.topology.file import parse_topology

    try:
        document = file.read_bytes()
    except OSError as error:
        raise InvalidTopology(
            str(file), [SpecProblem(0, "file", error.strerror or str(error), "a JSON document")]
        ) from error
    topology, states = parse_topology(document, file=str(file))
    return what_if_graph(topology, states, failed=failed, lost=lost, missing=missing, early_cutoff=early_cutoff)


def _show_graph(file: Path, found: Consequences, *, early_cutoff: bool, as_json: bool) -> None:
    if as_json:
        print_document({**_document(found), "early_cutoff": early_cutoff})
    else:
        print_table(
            f"What would restart in {file.name}",
            ("vertex", "why"),
            found.restart.items(),
        )
        typer.echo(f"{len(found.regions)} regions; may be deleted: {', '.join(found.releasable) or 'nothing'}")
        typer.echo(_spared_text(found, early_cutoff=early_cutoff))


def _spared_text(found: Consequences, *, early_cutoff: bool) -> str:
    """Which rule decided about what has finished and reads what is produced again."""
    if not early_cutoff:
        return (
            "By Flink's rule, what has finished restarts if what it read is produced again. --early-cutoff goes by a "
            "resume's: what was only lost comes out equal."
        )
    return f"Early cutoff spares: {', '.join(found.spared) or 'nothing'}"


def _document(found: Consequences) -> dict[str, Any]:
    restart, spared = (
        [{"id": vertex, "reason": reason} for vertex, reason in reasons.items()]
        for reasons in (found.restart, found.spared)
    )
    return {"regions": found.regions, "restart": restart, "releasable": found.releasable, "spared": spared}


def _print_json(pipeline: Pipeline, plan: ResumePlan, consequences: Consequences, cost: Estimate) -> None:
    from stagehold.plan.resume.plan_summary import explain

    summary = [asdict(line) for line in explain(plan)]
    rule = {"early_cutoff": pipeline.early_cutoff}
    document = {"pipeline": pipeline.name, **_document(consequences), **rule, "summary": summary, "cost": asdict(cost)}
    print_document(document)


def _print_table(name: str, plan: ResumePlan, cost: Estimate) -> None:
    explanation(f"What would run in {name}", plan).print()
    typer.echo(f"{cost.runs} partitions would run, {cost.saved} need not; {_seconds(cost)}")


def _seconds(cost: Estimate) -> str:
    if not (cost.run_seconds or cost.saved_seconds):
        return "how long that takes is not known before they have run once"
    known = f"about {cost.run_seconds:.1f} s of work, and {cost.saved_seconds:.1f} s saved"
    return f"{known}, not counting {', '.join(cost.unknown)}" if cost.unknown else known


def _timed(pipeline: Pipeline, settings: Settings) -> Seconds:
    """How long partitions took in the newest runs;
    nothing where there is no ledger to ask, since the question needs none.
    """
    from stagehold.plan.resume.plan_summary import recorded_seconds

    by_id = recorded_seconds(_history(pipeline.name, settings))
    return {stage.name: by_id[stage.id] for stage in pipeline.stages if stage.id in by_id}


def _history(pipeline: str, settings: Settings) -> Sequence[PartitionRecord]:
    """What the newest runs recorded, oldest first. A ledger that is not there is not made."""
    from stagehold.chronicle.chronicle import open_ledger

    kind, _, path = settings.ledger_url.partition(":///")
    if kind.startswith("sqlite") and not Path(path).is_file():
        return ()
    try:
        with open_ledger(settings) as ledger:
            runs = reversed(ledger.runs.recent(RUNS_TIMED, pipeline))
            return [record for run in runs for record in ledger.partitions.of_run(run.run_id)]
    except StageholdError:
        return ()
