"""What Airflow's Code tab shows of a pipeline: its file and its stage functions, in place of the DAG file that has one
line for all pipelines.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from airflow.sdk import DAG

from stagehold.code.project import functions, load_module
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

log = logging.getLogger(__name__)


class PipelineDag(DAG):
    """Airflow keeps the text of the file that a DAG says it comes from, and runs the file that it was loaded from,
    which is another field; so only the first can be named.
    """

    code_page: Path | None = None

    def validate(self) -> None:
        """Airflow calls it when it has noted the file that it loaded."""
        super().validate()  # type: ignore[no-untyped-call]
        if self.code_page is not None:
            self.fileloc = str(self.code_page)


def write_code_page(pipeline: Pipeline, settings: Settings) -> Path | None:
    """The file to show. None where it cannot be written: nobody's DAG may go because of that."""
    page = settings.home_path / "code" / f"{pipeline.name}.py"
    try:
        text = "\n".join(_sections(pipeline, Path(settings.project)))
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            _replace(page, text)
    except OSError:
        log.warning("The Code tab shows only the DAG file: %s cannot be written", page, exc_info=True)
        return None
    return page


def _replace(page: Path, text: str) -> None:
    """In one step: several processes parse DAGs."""
    page.parent.mkdir(parents=True, exist_ok=True)
    written = page.with_suffix(f".{os.getpid()}")
    written.write_text(text, encoding="utf-8")
    written.replace(page)


def _sections(pipeline: Pipeline, project: Path) -> Iterator[str]:
    yield f"# Pipeline {pipeline.name}: its file and its stage functions. Change those; this copy is only shown."
    if Path(pipeline.file).is_file():
        yield f"\n# {_shown(Path(pipeline.file), project)}\n"
        yield Path(pipeline.file).read_text(encoding="utf-8")
    for job in dict.fromkeys(stage.job for stage in pipeline.stages):
        yield from _function(job, project)


def _function(job: str, project: Path) -> Iterator[str]:
    module_name, _, name = job.partition(":")
    module = load_module(module_name, project)
    if module is None or name not in (known := functions(module)):
        return
    node = known[name]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = module.path.read_text(encoding="utf-8").splitlines()[first - 1 : node.end_lineno]
    yield f"\n# {_shown(module.path, project)}, line {first}\n"
    yield "\n".join(lines) + "\n"


def _shown(path: Path, project: Path) -> str:
    return str(path.relative_to(project)) if path.is_relative_to(project) else path.name
