"""Sees every request of one session while a function of a stage is called, and keeps its effects within that call.

A function may use Spark as it likes: ask, make views, register functions, set settings. What it did is recorded as
touches. In its frame, names of views mean what they meant when it used them. Where a plan alone cannot carry what the
function meant (settings, functions whose names are taken, the current schema), the frame is computed before the call
ends. After the call the session is as it was.

Not seen: what a function does with a session of its own, and what its Python functions do in Spark's workers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from grpc import StreamUnaryClientInterceptor, UnaryUnaryClientInterceptor  # type: ignore[import-untyped]

from stagehold.code.sql_text import SqlStatement, statement, with_functions
from stagehold.model.keys.compute_key import ReadKind, digest
from stagehold.spark.calls.function_call import FunctionCall, Names, any_setting
from stagehold.spark.calls.request_effects import (
    ANALYSES,
    Habit,
    Touch,
    changed_settings,
    habit_of_execution,
    sql_of,
    subject_of_execution,
)
from stagehold.spark.calls.session_state import SessionState
from stagehold.spark.calls.side_files import calling_line, files_opened, in_folder
from stagehold.spark.connect import (
    WITHOUT_CONSTRAINTS,
    all_settings,
    copy_of,
    frame_of,
    plan_id,
    put_settings,
    watch_client,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def settings_in_force(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Within the block, give the session these settings beside its own."""
    before = all_settings(spark) if settings else {}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        if settings:
            put_settings(spark, before)


def watch_of(spark: SparkSession, project: str) -> SessionWatch:
    """The session's watch, which is made when it is first asked for, and from now on looks at lines of ``project``."""
    session: Any = spark
    if getattr(session, "stagehold_watch", None) is None:
        session.stagehold_watch = SessionWatch(spark, project)
    watch = cast("SessionWatch", session.stagehold_watch)
    watch.project = project
    return watch


class SessionWatch:
    """The watch of one session; it does nothing between two calls."""

    def __init__(self, spark: SparkSession, project: str) -> None:
        self._spark, self.project = spark, project
        self._call: FunctionCall | None = None
        self._state = SessionState(spark)
        watch_client(spark, self, WatchInterceptor(self))

    @contextmanager
    def calling(
        self,
        stage: str,
        given: Collection[DataFrame],
        *,
        packed: Callable[[bytes], bytes] | None = None,
        may_write: bool = False,
        output: str = "",
        changes_results: Callable[[str], bool] = any_setting,
        at_top: bool = False,
    ) -> Iterator[FunctionCall]:
        """Watch a block in which the function of ``stage`` is called with the frames ``given``.

        :param packed: what is sent in the place of a pickled Python function.
        :param output: the folder that it writes to, if it is a script.
        """
        names = Names([plan_id(frame) for frame in given], packed, self.project)
        call = FunctionCall(
            stage,
            names,
            self._state,
            may_write=may_write,
            output=output,
            changes_results=changes_results,
            at_top=at_top,
        )
        with in_folder(self.project), files_opened(self.project) as opened:
            self._call = call
            try:
                yield call
            finally:
                self._call = None
                self._state.put_back()
        names.reads.update({(ReadKind.FILE, path): place for path, place in opened.items()})

    @contextmanager
    def importing(self, stage: str, changes_results: Callable[[str], bool]) -> Iterator[None]:
        """Watch a block in which modules of ``stage`` are imported. Functions that they register stay, settings end
        with it, and none of these may be one that ``changes_results``.

        :raises StageContractBroken: one does at its top what only a function may.
        """
        with self.calling(stage, (), changes_results=changes_results, at_top=True) as call:
            yield
            call.check_top()

    def set_meanwhile(self, settings: Mapping[str, str], instead_of: Collection[str]) -> None:
        """Replace these settings of the session until the call ends; its frames are computed before that."""
        if self._call:
            self._call.at_once = True
            self._aside(lambda: self._state.set_meanwhile(settings, instead_of))

    def forget_kept(self) -> None:
        """Make Spark drop the rows that it keeps for frames of earlier calls; those frames have been computed."""
        self._state.forget_kept()

    def close(self, frame: DataFrame) -> DataFrame:
        """Note that the names in the frame's plan already mean what they should."""
        if self._call:
            self._call.names.closed.add(plan_id(frame))
        return frame

    def view(self, identifier: str) -> DataFrame | None:
        """What a name stands for now; None if it is no view of the call's."""
        relation = self._call.names.view(identifier) if self._call else None
        return None if relation is None else self.close(frame_of(relation, self._spark))

    def note_reading(self, frame: DataFrame) -> None:
        """Note where a frame is made that reads something beside the inputs of the function."""
        if self._call:
            self._call.names.places[plan_id(frame)] = calling_line(self.project)[1]

    @property
    def is_calling(self) -> bool:
        return self._call is not None

    def on_execute_plan(self, request: Any) -> Any:
        """pyspark calls this before anything runs. `spark.sql` asks for the plan of its query in the same way."""
        call = self._call
        if call is None:
            return request
        bound = copy_of(request)
        call.names.bind(bound.plan)
        habit = habit_of_execution(request.plan)
        if habit is Habit.NAMES and call.names.lasts(request.plan):
            habit = Habit.WRITES
        if habit:
            subject = subject_of_execution(request.plan)
            call.note(Touch(habit, *self._asked_by(subject)))
            self._before(call, bound.plan, habit)
        if habit is Habit.KEEPS and bound.plan.HasField("root"):
            bound.plan.root.catalog.current_catalog.SetInParent()
        return bound

    def on_analysis(self, request: Any) -> Any:
        call = self._call
        if call is None:
            return request
        bound = copy_of(request)
        kind = request.WhichOneof("analyze")
        call.names.bind(getattr(bound, kind))
        if kind in ANALYSES:
            call.note(Touch(ANALYSES[kind], *self._asked_by("")))
        if kind in ("persist", "unpersist"):
            bound.spark_version.SetInParent()  # in its place: see `note_keeping`
        return bound

    def note_keeping(self) -> None:
        """Note that the function wants rows to be cached, or no longer cached. They are not cached: what Spark caches
        belongs to the whole server. Every later session with the same plan would find it, even after this session was
        killed and its Python functions are gone.
        """
        if self._call:
            self._call.note(Touch(Habit.KEEPS, *self._asked_by("")))

    def on_settings(self, operation: Any) -> None:
        changed = changed_settings(operation) if self._call else ()
        if self._call and changed:
            self._call.note(Touch(Habit.SETS, *self._asked_by(", ".join(changed))))
            self._note_change(self._call)

    def _note_change(self, call: FunctionCall) -> None:
        self._aside(self._state.note_settings)
        self._aside(lambda: call.note_change(self._newest_plan(), all_settings(self._spark)))

    def on_artifact(self, name: str) -> None:
        """Large literal frames are sent as artifacts of their own; that is no habit."""
        if self._call and not name.startswith("cache/"):
            self._call.note(Touch(Habit.OTHER, *self._asked_by(name)))

    def on_removal(self, relation_id: str) -> None:
        """Python has forgotten a frame whose rows Spark keeps; a plan that is not computed yet may still name them."""
        self._state.removed.append(relation_id)

    def _asked_by(self, subject: str) -> tuple[str, str, str]:
        called, place = calling_line(self.project)
        return called, subject, place

    def _before(self, call: FunctionCall, plan: Any, habit: Habit) -> None:
        """What must be known of the session before a command changes it, and what must hold while the command runs."""
        if habit is Habit.NAMES:
            self._name(call.names, plan)
        elif habit is Habit.REGISTERS:
            self._register(call.names, plan.command)
        elif habit is Habit.SETS:
            self._note_change(call)
            found = statement(sql_of(plan.command.sql_command)) if plan.HasField("command") else None
            if found is None or found.verb == "USE":
                self._aside(self._state.note_schema)
            elif found.name and found.verb != "SET":
                self._define(call.names, plan.command.sql_command, found)
        elif plan.HasField("command") and plan.command.HasField("checkpoint_command"):
            self._aside(lambda: self._state.set_meanwhile(WITHOUT_CONSTRAINTS, ()))

    def _register(self, names: Names, command: Any) -> None:
        """A name that another function of the call had is given to both, each for the plans made with it."""
        kind = command.WhichOneof("command_type")
        body = getattr(command, kind)
        if kind != "register_data_source" and not (self._call and self._call.is_at_top):
            body.function_name = names.function(body.function_name, digest((str(command),)), self._newest_plan())
        name = body.name if kind == "register_data_source" else body.function_name
        self._state.note_function(f"{kind} {name}".lower(), command)

    def _newest_plan(self) -> int:
        """The highest id of a plan so far: ids grow as plans are made."""
        return plan_id(self._spark.range(0))

    def _define(self, names: Names, command: Any, made: SqlStatement) -> None:
        """Note that SQL makes a variable or a function. A function's name is dealt with as in `_register`."""
        text, name = sql_of(command), made.name or ""
        if made.verb == "CREATE" and not made.drops:
            name = names.function(name, digest((text,)), self._newest_plan())
            if name != made.name:
                command.input.sql.query = with_functions(text, {made.name or "": name})
        self._state.note_sql_function(replace(made, name=name))

    def _name(self, names: Names, plan: Any) -> None:
        if plan.HasField("command") and plan.command.HasField("create_dataframe_view"):
            view = plan.command.create_dataframe_view
            names.give(view.name, view.input, is_global=view.is_global)
            self._state.views.add((view.name, view.is_global))
            return
        if plan.HasField("command"):
            names.take(statement(sql_of(plan.command.sql_command)).name or "")
            return
        for kind, is_global in (("drop_temp_view", False), ("drop_global_temp_view", True)):
            if plan.root.catalog.HasField(kind):
                names.take(getattr(plan.root.catalog, kind).view_name, is_global=is_global)

    def _aside(self, ask: Callable[[], None]) -> None:
        """Ask the session something that does not count as done by the function."""
        call, self._call = self._call, None
        try:
            ask()
        finally:
            self._call = call


class Unasked:
    """The answer to a request that was not sent."""

    def result(self) -> None:
        return None


class WatchInterceptor(UnaryUnaryClientInterceptor, StreamUnaryClientInterceptor):  # type: ignore[misc]
    """Shows the session's watch what a client asks besides executions; pyspark shows those by a hook of its own. The
    watch may replace a request by another one.
    """

    def __init__(self, watch: SessionWatch) -> None:
        self._watch = watch

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        kind = request.DESCRIPTOR.name
        if kind == "AnalyzePlanRequest":
            request = self._watch.on_analysis(request)
        elif kind == "ConfigRequest":
            self._watch.on_settings(request.operation)
        elif kind == "ExecutePlanRequest":  # how pyspark has the server forget rows that Python has forgotten
            self._watch.on_removal(request.plan.command.remove_cached_remote_relation_command.relation.relation_id)
            return Unasked()
        return continuation(details, request)

    def intercept_stream_unary(self, continuation: Any, details: Any, requests: Iterator[Any]) -> Any:
        return continuation(details, self._shown(requests))

    def _shown(self, requests: Iterator[Any]) -> Iterator[Any]:
        for request in requests:
            for artifact in (getattr(request, "batch", None) and request.batch.artifacts) or ():
                self._watch.on_artifact(artifact.name)
            if request.HasField("begin_chunk"):
                self._watch.on_artifact(request.begin_chunk.name)
            yield request
