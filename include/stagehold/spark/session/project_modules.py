"""The project's modules, in this process and in the Python workers of an attempt's session; and which session they get
when they ask pyspark for one, in whatever thread: their attempt's.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stagehold.code.project import CompiledHere, code_folders, find_modules_of, is_of_project, read_sql, source_digest
from stagehold.code.project_archive import ProjectArchive, archive_of
from stagehold.code.sql_job import bound_values, is_sql, statements
from stagehold.code.sql_text import is_dynamic, names_in, with_arguments, with_views
from stagehold.code.unchanging_files import content_of
from stagehold.model.context import StageContext, StageFile, stage
from stagehold.spark.connect import take_active_session_from
from stagehold.spark.session.script_function import script_function
from stagehold.spark.session.worker import is_importing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from stagehold.spec.pipeline import Stage

# Innermost last, each with the thread that entered it.
_entered: list[tuple[int, SparkSession]] = []
# Sessions that a module got while it was imported, and may have kept.
_taken_by_modules: set[SparkSession] = set()
# The digest of each file of a project that this process has imported, by the module's name.
_imported: dict[str, str] = {}
# The names under which a session's workers have files.
_sent: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def send_project(spark: SparkSession, jobs: Iterable[str], project: Path) -> str:
    """Give the session's workers all that ``jobs`` reach of the project, as it is now; the archive's name.

    Artifacts belong to a session, so it is sent once for each; workers serve one session, so none of them has older
    code. This process imports anew what was edited since it did, and modules that took an earlier session.
    """
    _note_imported(project)  # a function may have imported more of it
    _unload_if_old(spark, project)
    archive = archive_of(jobs, project)
    send_archive(spark, archive)
    return archive.name


def send_archive(spark: SparkSession, archive: ProjectArchive) -> None:
    """Have the session's workers find the modules in the archive."""
    before = list(sys.path)
    with TemporaryDirectory(prefix="stagehold-") as folder:
        file = Path(folder) / archive.name
        file.write_bytes(archive.content())
        try:
            spark.addArtifacts(str(file), pyfile=True)
        finally:
            sys.path[:] = before  # pyspark puts the archive there, too


def stage_function(stage: Stage, project: Path, script_output: str) -> Callable[..., DataFrame]:
    """The function of a stage; of a script, one that runs it and has it write to ``script_output``."""
    if stage.is_script:
        find_modules_of(project)
        return script_function(stage, project, script_output)
    return load_function(stage.job, project)


def send_files(spark: SparkSession, files: Iterable[StageFile]) -> None:
    """Give the session's workers files of a stage, each content once."""
    sent = _sent.setdefault(spark, set())
    new = {file.shipped: file.path for file in files if file.shipped not in sent}
    if not new:
        return
    with TemporaryDirectory(prefix="stagehold-") as folder:
        copies = [shutil.copyfile(path, Path(folder, name)) for name, path in new.items()]
        spark.addArtifacts(*map(str, copies), file=True)
    sent.update(new)


def load_function(job: str, project: Path) -> Callable[..., DataFrame]:
    """What ``module:function`` names, as its file was when the session's code was sent, or later."""
    module, _, name = job.partition(":")
    if is_sql(module):
        return query_function(read_sql(module, project))
    find_modules_of(project)
    function = getattr(importlib.import_module(module), name)
    _note_imported(project)
    return function  # type: ignore[no-any-return]


def load_anew(reference: str, project: Path) -> Callable[..., Any]:
    """What ``module:name`` names, as its file is now, for whoever has no session that was sent anything older."""
    _note_imported(project)
    _unload_if_old(None, project)
    return load_function(reference, project)


def query_function(text: str) -> Callable[..., DataFrame]:
    """A function that runs the statements of ``text``. One query is made of its frames alone, as a function's frame is;
    several find them as views, which are names and let each partition be called by itself.
    """
    *before, last = statements(text)

    @stage
    def query(ctx: StageContext, **frames: DataFrame) -> DataFrame:
        spark = next(iter(frames.values())).sparkSession
        values = bound_values(ctx, text)
        if not before and not is_dynamic(last.text):
            return _one_query(spark, with_arguments(last.in_its_line, values), frames)
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        for statement in before:
            spark.sql(with_arguments(statement.in_its_line, values))
        return spark.sql(with_arguments(last.in_its_line, values))

    return query


def _one_query(spark: SparkSession, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """pyspark takes frames by names in braces, so the text's own are doubled."""
    used = {name: f"frame_{number}" for number, name in enumerate(frames) if name in names_in(text)}
    if not used:
        return spark.sql(text)
    given: Any = {other: frames[name] for name, other in used.items()}
    own = text.replace("{", "{{").replace("}", "}}")
    return spark.sql(with_views(own, {name: f"{{{other}}}" for name, other in used.items()}), **given)


def _unload_if_old(spark: SparkSession | None, project: Path) -> None:
    """A process may outlive an edit, and a session that a module keeps, and come to another project with modules of the
    same names. Modules hold on to each other, so all go when one has to.
    """
    if _are_of_another(project):
        own = [*map(str, code_folders(project))]
        sys.path[:] = [*own, *(place for place in sys.path if place not in own)]
    elif not (spark and forget_taken(spark)) and all(
        _digest_now(name) == digest for name, digest in _imported.copy().items()
    ):
        return
    for name in _imported.copy():  # other threads load functions meanwhile
        sys.modules.pop(name, None)
    _imported.clear()
    importlib.invalidate_caches()


def _are_of_another(project: Path) -> bool:
    files = (getattr(sys.modules.get(name), "__file__", None) for name in _imported.copy())
    return any(file and not file.startswith(f"{project}/") for file in files)


def _note_imported(project: Path) -> None:
    """Note what modules that were imported meanwhile are made of, also those that functions of an earlier project have
    imported when they were called. That is asked for every call of a function, of a thousand modules, so paths are
    compared as texts.
    """
    own = str(project)
    for name, module in sys.modules.copy().items():  # in one step, since other threads import meanwhile
        if name in _imported:
            continue
        loader, file = getattr(module, "__loader__", None), getattr(module, "__file__", None)
        compiled = loader.digest if isinstance(loader, CompiledHere) else None
        if compiled is None and file and is_of_project(file, own):
            compiled = _digest_now(name)  # somebody else has imported it
        if compiled is not None:
            _imported[name] = compiled


def _digest_now(name: str) -> str | None:
    """Of what is in a module's file; None for a file that is gone."""
    file = getattr(sys.modules.get(name), "__file__", None)
    try:
        return source_digest(content_of(Path(file))) if file else None
    except OSError:
        return None


@contextmanager
def as_active(spark: SparkSession) -> Iterator[None]:
    """Have ``spark`` be the active session in the block: `SparkSession.builder.getOrCreate()`, `getActiveSession()` and
    `active()` give it.

    Threads that the block starts get it, too; so does every other thread that has entered no session itself.
    """
    take_active_session_from(_active_session)
    entry = (threading.get_ident(), spark)
    _entered.append(entry)
    try:
        yield
    finally:
        _entered.remove(entry)


def forget_taken(spark: SparkSession) -> bool:
    """Whether a module took another session than ``spark`` when it was imported; that is forgotten now."""
    others = _taken_by_modules - {spark}
    _taken_by_modules.difference_update(others)
    return bool(others)


def _active_session() -> SparkSession | None:
    thread, entered = threading.get_ident(), _entered.copy()
    found = [spark for entering, spark in entered if entering == thread] or [spark for _, spark in entered]
    if not found:
        return None
    if found[-1] not in _taken_by_modules and is_importing():
        _taken_by_modules.add(found[-1])
    return found[-1]
