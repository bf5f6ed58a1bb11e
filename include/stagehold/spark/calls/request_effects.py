"""What a request of Spark Connect does beside planning, as far as the request shows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stagehold.code.sql_text import Intent, statement


class Habit(StrEnum):
    """What a function did while it was called, beside building its frame."""

    ASKS = "asks Spark for an answer"
    NAMES = "gives a name to a view"
    REGISTERS = "registers a function"
    KEEPS = "has Spark keep rows"
    SETS = "changes a setting of the session"
    LEARNS = "fits a model"
    WRITES = "writes"
    OTHER = "changes its session"


@dataclass(frozen=True)
class Touch:
    """Something that a function did: pyspark's word for it, what it acted on, and the project's line that did it."""

    habit: Habit
    call: str
    subject: str = ""
    place: str = ""

    def __str__(self) -> str:
        about = f" {self.subject}" if self.subject else ""
        at = f" at {self.place}" if self.place else ""
        return f"{self.habit}{about} (`{self.call}`{at})"


HABIT_OF = {
    Intent.ASKS: Habit.ASKS,
    Intent.NAMES: Habit.NAMES,
    Intent.KEEPS: Habit.KEEPS,
    Intent.SETS: Habit.SETS,
    Intent.WRITES: Habit.WRITES,
}
COMMANDS = {
    "register_function": Habit.REGISTERS,
    "register_table_function": Habit.REGISTERS,
    "register_data_source": Habit.REGISTERS,
    "create_dataframe_view": Habit.NAMES,
    "get_resources_command": Habit.ASKS,
    "checkpoint_command": Habit.ASKS,
    "ml_command": Habit.LEARNS,
    "streaming_query_listener_bus_command": Habit.OTHER,
    "streaming_query_manager_command": Habit.OTHER,
    "create_resource_profile_command": Habit.OTHER,
}
CATALOG = {
    "drop_temp_view": Habit.NAMES,
    "drop_global_temp_view": Habit.NAMES,
    "cache_table": Habit.KEEPS,
    "uncache_table": Habit.KEEPS,
    "clear_cache": Habit.KEEPS,
    "refresh_table": Habit.KEEPS,
    "refresh_by_path": Habit.KEEPS,
    "set_current_database": Habit.SETS,
    "set_current_catalog": Habit.SETS,
    "create_external_table": Habit.WRITES,
    "create_table": Habit.WRITES,
    "create_database": Habit.WRITES,
    "drop_database": Habit.WRITES,
    "drop_table": Habit.WRITES,
    "drop_view": Habit.WRITES,
    "recover_partitions": Habit.WRITES,
    "truncate_table": Habit.WRITES,
    "analyze_table": Habit.WRITES,
}
ANALYSES = {"persist": Habit.KEEPS, "unpersist": Habit.KEEPS, "input_files": Habit.ASKS}
NAMELESS = frozenset({"spark.app.name"})  # a setting that everybody sets, and that means nothing


def habit_of_execution(plan: Any) -> Habit | None:
    """What executing a plan does; None if it only hands back a plan, or if Python's garbage collection asks for it."""
    if not plan.HasField("command"):
        catalog = plan.root.catalog.WhichOneof("cat_type") if plan.root.HasField("catalog") else None
        return CATALOG.get(catalog, Habit.ASKS) if catalog else Habit.ASKS
    kind = plan.command.WhichOneof("command_type")
    if kind == "remove_cached_remote_relation_command":
        return None
    if kind == "sql_command":
        return HABIT_OF.get(statement(sql_of(plan.command.sql_command)).intent)
    if kind == "write_operation" and plan.command.write_operation.source == "noop":
        return Habit.ASKS
    return COMMANDS.get(kind, Habit.WRITES)


def sql_of(command: Any) -> str:
    """The text of a command of SQL."""
    relation = command.input.with_relations.root if command.input.HasField("with_relations") else command.input
    return str(relation.sql.query or command.sql)


def subject_of_execution(plan: Any) -> str:
    """What an execution acts on, in a word: a view, a function, a table, a path."""
    if not plan.HasField("command"):
        kind = plan.root.catalog.WhichOneof("cat_type") if plan.root.HasField("catalog") else None
        return _name_in(getattr(plan.root.catalog, kind)) if kind else ""
    kind = plan.command.WhichOneof("command_type")
    body = getattr(plan.command, kind)
    match kind:
        case "create_dataframe_view" | "register_data_source":
            return str(body.name)
        case "register_function" | "register_table_function":
            return str(body.function_name)
        case "sql_command":
            found = statement(sql_of(body))
            return found.name or ""
        case "write_operation":
            return str(body.path or body.table.table_name)
        case "write_operation_v2":
            return str(body.table_name)
        case "merge_into_table_command":
            return str(body.target_table_name)
    return ""


def _name_in(catalog: Any) -> str:
    for field in ("view_name", "table_name", "db_name", "catalog_name", "path"):
        if field in catalog.DESCRIPTOR.fields_by_name:
            return str(getattr(catalog, field))
    return ""


def changed_settings(operation: Any) -> tuple[str, ...]:
    """Names of the settings that a request changes."""
    kind = operation.WhichOneof("op_type")
    if kind == "set":
        names = [str(pair.key) for pair in operation.set.pairs]
    else:
        names = [str(key) for key in operation.unset.keys] if kind == "unset" else []
    return tuple(name for name in names if name not in NAMELESS)
