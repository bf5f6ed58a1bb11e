"""The DAGs of a project, for a DAG file of one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from airflow.sdk import DAG

from stagehold.airflow.dag.compile import compile_folder
from stagehold.errors.base import StageholdError
from stagehold.errors.request_errors import InvalidArgument
from stagehold.settings import Settings, load_settings
from stagehold.spec.loading.loader import pipeline_files

REFUSED = "stagehold_invalid_files"
ALLOWED = "a folder with include/pipelines/*.yaml, or one with pipeline files; `stagehold init PATH` makes a project"


class PipelineFilesRefused(Exception):
    """The problems of pipeline files. Airflow shows the name of the class, a colon, and this text."""

    def __init__(self, problems: Sequence[StageholdError]) -> None:
        super().__init__(f"{len(problems)} pipeline file(s) cannot be used\n" + "\n".join(map(str, problems)))


class RefusedFiles(DAG):
    """A DAG in place of the pipeline files that cannot be used. Airflow asks each DAG whether it is valid: this one
    becomes an import error without a traceback, and the others of the same file stay.
    """

    problems: Sequence[StageholdError] = ()

    def validate(self) -> None:
        raise PipelineFilesRefused(self.problems)


def refused_files(settings: Settings, problems: Sequence[StageholdError]) -> RefusedFiles | None:
    """The DAG in place of the files with these problems, if there are any."""
    if not problems:
        return None
    refused = RefusedFiles(f"{REFUSED}_of_{Path(settings.project).name}", schedule=None)
    refused.problems = problems
    return refused


def project_dags(place: Path) -> Mapping[str, DAG]:
    """Compile each pipeline file and hand the DAGs to the Airflow that loads the calling file. Return them by name,
    without the DAG in place of bad files.

    :raises InvalidArgument: there is no pipeline file.
    """
    settings = load_settings(project=str(place))
    if not pipeline_files(settings):
        raise InvalidArgument("the path of stagehold.dags", str(place), ALLOWED)
    compiled = compile_folder(settings, str(place))
    for dag in compiled.dags:
        _hand_over(dag)
    refused = refused_files(settings, compiled.problems)
    if refused:
        _hand_over(refused)
    return {dag.dag_id: dag for dag in compiled.dags}


def _hand_over(dag: DAG) -> None:
    """Airflow registers a DAG that is used in a `with` block while it loads a file."""
    with dag:
        pass
