"""What a call changes in its session on the server, and how that is put back when the call ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from stagehold.code.sql_text import SqlStatement
from stagehold.spark.connect import all_settings, copy_of, execute, put_settings, remove_kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SessionState:
    """The state of one session. Registered functions stay, each under the name by which frames of earlier calls that
    are not computed yet may call it; everything else goes.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.views: set[tuple[str, bool]] = set()  # the call's, with whether each is global
        self.removed: list[str] = []  # rows that Spark keeps for frames which Python has forgotten, and plans may not
        self.dropped_at_end: list[SqlStatement] = []
        self._functions: dict[str, Any] = {}  # by name, the command that registered it first
        self._replaced: set[str] = set()
        self._settings: Mapping[str, str] | None = None
        self._schema: tuple[str, str] | None = None

    @property
    def took_names(self) -> bool:
        """Whether the call registered a function under the name of another one."""
        return bool(self._replaced)

    def note_function(self, name: str, command: Any) -> None:
        """Note that a function gets a name. Two functions from the same line are alike unless they captured different
        values.
        """
        known = self._functions.setdefault(name, copy_of(command))
        if known != command:
            self._replaced.add(name)

    def note_sql_function(self, made: SqlStatement) -> None:
        """Note that SQL gives a name to a function, or takes it away, while frames of earlier calls may call another
        function by it.
        """
        self.dropped_at_end.append(made)
        self._replaced |= {f"register_function {made.name}"} & self._functions.keys()

    def note_settings(self) -> None:
        if self._settings is None:
            self._settings = all_settings(self._spark)

    def set_meanwhile(self, settings: Mapping[str, str], instead_of: Collection[str]) -> None:
        self.note_settings()
        for name in set(instead_of) - settings.keys():
            self._spark.conf.unset(name)
        for name, value in settings.items():
            self._spark.conf.set(name, value)

    def note_schema(self) -> None:
        catalog = self._spark.catalog
        self._schema = self._schema or (catalog.currentCatalog(), catalog.currentDatabase())

    def put_back(self) -> None:
        """Restore the session to what it was before the call."""
        undone: list[Callable[[], None]] = [self._put_settings, self._put_schema, self._drop, self._put_functions]
        for undo in undone:
            undo()

    def forget_kept(self) -> None:
        for relation_id in self.removed:
            remove_kept(self._spark, relation_id)
        self.removed.clear()

    def _put_settings(self) -> None:
        if self._settings is not None:
            before, self._settings = self._settings, None
            put_settings(self._spark, before)

    def _put_schema(self) -> None:
        if self._schema is not None:
            (catalog, schema), self._schema = self._schema, None
            self._spark.catalog.setCurrentCatalog(catalog)
            self._spark.catalog.setCurrentDatabase(schema)

    def _put_functions(self) -> None:
        for name in self._replaced:
            execute(self._spark, self._functions[name])
        self._replaced.clear()

    def _drop(self) -> None:
        for name, is_global in self.views:
            drop = self._spark.catalog.dropGlobalTempView if is_global else self._spark.catalog.dropTempView
            drop(name.strip("`").replace("``", "`"))  # unlike those who make one, it takes a name as it is
        self.views.clear()
        for made in self.dropped_at_end:
            kind = "VARIABLE" if made.verb == "DECLARE" else "FUNCTION"
            self._spark.sql(f"DROP TEMPORARY {kind} IF EXISTS `{made.name}`")
        self.dropped_at_end.clear()
