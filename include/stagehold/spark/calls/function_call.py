"""A call of a stage's function: what it does beside building its frame, and what the names in that frame mean.

Over Spark Connect a name is looked up when a query runs, not when a frame is made. So before a plan is sent, whatever
its names stood for is put into it: a table by the name of a view becomes the view's own plan, and a text of SQL gets
the view's plan along with it, as `spark.sql(text, name=frame)` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

from stagehold.code.sql_tables import tables_in, view_name, views_in
from stagehold.code.sql_text import (
    GLOBAL,
    Intent,
    is_dynamic,
    names_in,
    statement,
    tokens,
    with_functions,
    with_views,
)
from stagehold.errors import StageContractBroken
from stagehold.model.keys.compute_key import ReadKind
from stagehold.spark.calls.request_effects import Habit, Touch, sql_of
from stagehold.spark.calls.session_state import SessionState
from stagehold.spark.connect import all_settings, copy_of, frame_of, kept_by_spark, parts_of, plan_id, plan_message

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pyspark.sql import DataFrame

PREFIX = "stagehold_view_"
GIVEN = "_pyspark_connect_temp_view"  # what pyspark calls frames that are handed to `spark.sql` by name
NOT_IN_PLANS = (Habit.SETS, Habit.LEARNS)  # what is planned meanwhile has to be computed meanwhile
_REFUSED = {
    Habit.WRITES: "its function {touch}, which would happen each time it is called, as it is several times for a "
    "partition. Return the frame, which is what gets published; a function that has to write says `effects: allowed`",
    Habit.NAMES: "a module {touch} at its top, where it would be a name for all stages. Do that in the stage "
    "function, whose names are its own",
    Habit.SETS: "a module {touch} at its top, where it would be so for all stages. Declare it with `spark:` of the "
    "stage or pipeline, which is in their keys",
}
_ASIDE = (
    "its script {touch}, which would happen again each time it is run. Have it write to the `${{output}}` of its "
    "`args`, which is published once its gate lets it; a script that has to write elsewhere says `effects: allowed`"
)
# One name is never given twice in a process: a plan may hold plans of earlier calls, and the server forgets each name
# that a part of a plan brought along once it has read that part.
_numbers = count(1)


_SET_BACK = (
    "its function {set}, makes a frame that it returns, and {back} before it returns. Spark computes the frame "
    "afterwards, without the setting. Leave it set, since it ends with the call anyway; or declare it with `spark:` of "
    "the stage; or end that frame with `.localCheckpoint()`, which computes it at once"
)
_HAS_ITS_ROWS = ("cached_remote_relation", "local_relation", "cached_local_relation", "chunked_cached_local_relation")


def any_setting(_: str) -> bool:
    """Treats every setting as one that can change results."""
    return True


class FunctionCall:
    """A call of a stage's function, while it runs and afterwards. If ``at_top``, the import of its modules instead.
    ``changes_results`` says whether a setting can change results. A script may write to the folder ``output``.
    """

    def __init__(
        self,
        stage: str,
        names: Names,
        state: SessionState,
        *,
        may_write: bool = False,
        output: str = "",
        changes_results: Callable[[str], bool] = any_setting,
        at_top: bool = False,
    ) -> None:
        self.touches: list[Touch] = []
        self.names = names
        self.at_once = False  # whether its frames have to be computed before it ends
        self._stage, self._state = stage, state
        self._may_write, self._output = may_write, output
        self._changes_results, self.is_at_top = changes_results, at_top
        self._refused: StageContractBroken | None = None
        # For each change of settings: the newest plan made before it, the settings until then, and what changed them.
        self._changes: list[tuple[int, Mapping[str, str], Touch]] = []

    @property
    def reads(self) -> Mapping[tuple[ReadKind, str], str]:
        """What the function reads beside its inputs, by kind and name, each with its line if that is known."""
        return self.names.reads

    def note(self, touch: Touch) -> None:
        """:raises StageContractBroken: it does what its stage does not allow, or a module does so at its top."""
        self.touches.append(touch)
        self.at_once |= touch.habit in NOT_IN_PLANS
        if self._refuses(touch):
            why = _ASIDE if self._output and touch.habit is Habit.WRITES else _REFUSED[touch.habit]
            self._refused = StageContractBroken(self._stage, why.format(touch=touch))
            raise self._refused

    def _refuses(self, touch: Touch) -> bool:
        if touch.habit is Habit.WRITES:
            own = self._output and (touch.subject == self._output or touch.subject.startswith(f"{self._output}/"))
            return not self._may_write and not own
        if not self.is_at_top:
            return False
        settings = touch.subject.split(", ") if touch.subject else []
        sets = touch.habit is Habit.SETS and (not settings or any(map(self._changes_results, settings)))
        return sets or touch.habit is Habit.NAMES

    def note_change(self, newest_plan: int, settings: Mapping[str, str]) -> None:
        """Note that the last touch replaced the settings under which the plans up to ``newest_plan`` were made."""
        self._changes.append((newest_plan, self._of_results(settings), self.touches[-1]))

    def _of_results(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        return {name: value for name, value in settings.items() if self._changes_results(name)}

    def _check_settings(self, message: Any, frame: DataFrame) -> None:
        """:raises StageContractBroken: part of the frame was made while a setting was in force that the function has
        since set back. Whoever moves a job over from a classic session expects that this part was planned by then.
        """
        if len(self._changes) < 2:
            return
        now, made = self._of_results(all_settings(frame.sparkSession)), set(_made(message))
        for (since, _, began), (until, settings, ended) in pairwise(self._changes):
            if settings != now and any(since < plan <= until for plan in made):
                self._refused = StageContractBroken(self._stage, _SET_BACK.format(set=began, back=ended))
                raise self._refused

    def check_top(self) -> None:
        """:raises StageContractBroken: what a module does at its top cannot hold for its own functions alone."""
        if self._state.took_names:
            taken = next(touch for touch in reversed(self.touches) if touch.habit is Habit.REGISTERS)
            self._refused = StageContractBroken(
                self._stage,
                f"a module {taken} at its top, and another function has that name. Register it in the stage function, "
                "where its name is that call's own",
            )
        if self._refused:
            raise self._refused

    def refuse(self) -> None:
        """:raises StageContractBroken: the function wrote, and went on when it was told that it may not."""
        if self._refused:
            raise self._refused

    def settled(self, bound: DataFrame, *, read_on: bool) -> DataFrame:
        """A frame in which names mean what they should; its rows, where that is not all that it depends on.

        :param read_on: other functions will be called with it, and may take the names of its functions.

        :raises StageContractBroken: the function wrote, and went on when it was told that it may not.
        """
        self.refuse()
        registers = any(touch.habit is Habit.REGISTERS for touch in self.touches)
        self.at_once |= self.names.late or (registers and (read_on or self._state.took_names))
        return kept_by_spark(bound, now=True) if self.at_once else bound

    def bound(self, frame: DataFrame) -> DataFrame:
        """The frame, with what its names mean now put in; the very same frame if there is nothing to put in.

        :raises StageContractBroken: it was made under a setting that the function has set back.
        """
        message = plan_message(frame)
        copy = copy_of(message)
        self.names.bind(copy)
        self._check_settings(copy, frame)
        if copy == message:
            return frame
        made = frame_of(copy, frame.sparkSession)
        self.names.closed.add(plan_id(made))
        return made


def _made(message: Any) -> Iterator[int]:
    """The ids of those plans in a message that are computed later."""
    if message.DESCRIPTOR.name == "Relation" and message.WhichOneof("rel_type") not in _HAS_ITS_ROWS:
        yield message.common.plan_id
    for part in parts_of(message):
        yield from _made(part)


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_GLOB, _ESCAPED = re.compile(r"([\\\[\]{}*?])"), r"\\\1"


class Names:
    """What names mean in one call. ``closed`` are the ids of plans whose names need no more binding: the inputs of the
    function, and what was bound before. ``packed`` turns a pickled Python function into what is sent in its place.
    Relative paths begin at the ``project``.
    """

    def __init__(
        self, closed: Collection[int], packed: Callable[[bytes], bytes] | None = None, project: str = ""
    ) -> None:
        self.closed, self._packed, self._project = set(closed), packed, project
        self.reads: dict[tuple[ReadKind, str], str] = {}  # what is read beside the inputs, with its line if it is known
        self.places: dict[int, str] = {}  # the line that made a plan, by the plan's id
        self.late = False  # whether a name was used that only the server can look up
        self._views: dict[str, Any] = {}  # the plan of each
        self._functions: dict[
            str, list[tuple[int, str, str]]
        ] = {}  # plans from an id on, what the name means, its name

    def give(self, name: str, relation: Any, *, is_global: bool = False) -> None:
        """From now on a name stands for this plan."""
        self._views[view_key(name, is_global=is_global)] = relation

    def take(self, name: str, *, is_global: bool = False) -> None:
        self._views.pop(view_key(name, is_global=is_global), None)

    def function(self, name: str, meaning: str, newest_plan: int) -> str:
        """The name under which a function is registered that gets a name now: that name, or a name of its own if plans
        up to ``newest_plan`` call another function by it.
        """
        versions = self._functions.setdefault(name.lower(), [])
        if not versions or versions[-1][1] != meaning:
            known = next((sent for _, known, sent in versions if known == meaning), None)
            sent = known or (f"{name}__{meaning[:8]}" if versions else name)
            versions.append((newest_plan, meaning, sent))
        return versions[-1][2]

    def lasts(self, plan: Any) -> bool:
        """Whether what is dropped belongs to everybody, as it is no view of the call's."""
        if not plan.HasField("command") or not plan.command.HasField("sql_command"):
            return False
        dropped = statement(sql_of(plan.command.sql_command))
        return dropped.drops and (dropped.name or "") not in self._views

    def view(self, identifier: str) -> Any | None:
        """The plan of a view, under an alias; None if it is no view of the call's."""
        from pyspark.sql.connect.proto import Relation, SubqueryAlias

        key = identifier_key(identifier)
        if key not in self._views:
            return None
        return Relation(subquery_alias=SubqueryAlias(input=self._views[key], alias=key.rpartition(".")[2]))

    def bind(self, message: Any, plan: int = 0) -> None:
        """Put into a message, in place, what its names mean: views now, functions when ``plan`` was made."""
        kind = message.DESCRIPTOR.name
        if kind == "Relation":
            self._bind_relation(message)
            return
        if self._packed and kind in ("PythonUDF", "PythonUDTF"):
            message.command = self._packed(message.command)
        elif kind in ("UnresolvedFunction", "CallFunction"):
            message.function_name = self._called(plan).get(message.function_name.lower(), message.function_name)
        elif kind == "ExpressionString":
            message.expression = with_functions(message.expression, self._called(plan))
        for part in parts_of(message):
            self.bind(part, plan)

    def _called(self, plan: int) -> dict[str, str]:
        """The names under which functions were sent when a plan was made, where a name has meant several functions."""
        found = {
            name: [sent for since, _, sent in versions if since < plan]
            for name, versions in self._functions.items()
            if len(versions) > 1
        }
        return {name: sent[-1] for name, sent in found.items() if sent}

    def _bind_relation(self, relation: Any) -> None:
        if relation.common.plan_id in self.closed:
            return
        kind = relation.WhichOneof("rel_type")
        if kind == "sql":
            self._bind_text(relation)
        elif kind == "with_relations" and relation.with_relations.root.HasField("sql"):
            for reference in relation.with_relations.references:
                self.bind(reference)
            self._bind_text(relation)
        elif kind == "read":
            self._bind_read(relation)
        elif kind:
            self.bind(getattr(relation, kind), relation.common.plan_id)

    def _bind_read(self, relation: Any) -> None:
        read = relation.read
        place = self.places.get(relation.common.plan_id, "")
        if read.HasField("data_source"):
            self.reads.update({(ReadKind.FILE, str(path)): place for path in read.data_source.paths})
            read.data_source.paths[:] = [self._from_project(str(path)) for path in read.data_source.paths]
            return
        name = str(read.named_table.unparsed_identifier)
        view = self.view(name)
        if view is None:
            self.reads[ReadKind.TABLE, name] = place
            return
        plan_id = relation.common.plan_id
        relation.CopyFrom(view)
        relation.common.plan_id = plan_id

    def _from_project(self, path: str) -> str:
        """A server would look for a relative path in a folder of its own. Spark takes every path for a glob."""
        relative = self._project and not path.startswith("/") and not _SCHEME.match(path)
        return f"{_GLOB.sub(_ESCAPED, self._project)}/{path}" if relative else path

    def _bind_text(self, relation: Any) -> None:
        """A query becomes one that is given the plans of the views which it names. Of what is no query, each name is
        looked up at once, by the server.
        """
        wrapped = relation.WhichOneof("rel_type") == "with_relations"
        text = str(relation.with_relations.root.sql.query if wrapped else relation.sql.query)
        if statement(text).intent is not Intent.QUERY:
            return
        self.late |= bool(self._views) and is_dynamic(text)
        self._note_tables(text)
        text = with_functions(text, self._called(relation.common.plan_id))
        (relation.with_relations.root if wrapped else relation).sql.query = text
        named = names_in(text) if self._views else frozenset()
        used = {name: f"{PREFIX}{next(_numbers)}" for name in self._views if name in named}
        if not used:
            return
        if not wrapped:
            _wrap(relation)
        self._refer(relation.with_relations, text, used)

    def _refer(self, wrapped: Any, text: str, used: Mapping[str, str]) -> None:
        from pyspark.sql.connect.proto import Relation, SubqueryAlias

        wrapped.root.sql.query = with_views(text, used)
        for name, alias in used.items():
            reference = SubqueryAlias(input=self._views[name], alias=alias)
            wrapped.references.append(Relation(subquery_alias=reference))

    def _note_tables(self, text: str) -> None:
        made = {*views_in(text), *self._views}
        for given, is_file, _ in tables_in(text):
            name = given or ""
            if is_file:
                self.reads.setdefault((ReadKind.FILE, name), "")
            elif name and view_name(name) not in made and not name.startswith(GIVEN):
                self.reads.setdefault((ReadKind.TABLE, name), "")


def _wrap(relation: Any) -> None:
    """Make a text of SQL the root of a plan, with other plans beside it."""
    root = copy_of(relation)
    plan_id = relation.common.plan_id
    relation.Clear()
    relation.common.plan_id = plan_id
    relation.with_relations.root.CopyFrom(root)
    relation.with_relations.root.ClearField("common")


def view_key(name: str, *, is_global: bool) -> str:
    plain = name.strip("`").replace("``", "`").lower()
    return f"{GLOBAL}.{plain}" if is_global else plain


def identifier_key(identifier: str) -> str:
    """The key of an identifier among the names of views: its parts without quotes, in lower case."""
    return ".".join(token.name for token in tokens(identifier) if token.name is not None)
