"""Which files are behind the views of a checkpoint: one for each stage and one for each of its states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint, OpenedStage
from stagehold.model.records import DataFile, PartitionRecord

DATA = "main"  # the schema of the stages' own views


@dataclass(frozen=True)
class StoredFile:
    """A file of a partition, in its table."""

    partition: int
    table: str
    path: str
    bytes: int

    @property
    def address(self) -> str:
        return f"{self.table}/{self.path}"


@dataclass(frozen=True)
class View:
    """``stage`` is whose rows they are. Without files there is nothing that says which columns it has. Of columns that
    are ``masked`` nobody sees a value, whatever is asked of it.
    """

    schema: str
    name: str
    stage: str
    files: tuple[StoredFile, ...] = field(repr=False)
    masked: tuple[str, ...] = ()

    def __str__(self) -> str:
        own = identifier(self.name)
        return own if self.schema == DATA else f"{identifier(self.schema)}.{own}"


def identifier(name: str) -> str:
    """``name`` as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def view_names(opened: OpenedCheckpoint) -> Mapping[tuple[str, str], OpenedStage]:
    """The stage behind each view, by schema and name."""
    own = {(DATA, stage.name): stage for stage in opened.stages}
    return own | {(stage.name, state.name): stage for stage in opened.stages for state in stage.manifest.states}


def views_of(opened: OpenedCheckpoint, wanted: Collection[tuple[str, str]]) -> list[View]:
    """The files of consumable partitions behind the ``wanted`` ones."""
    names = view_names(opened)
    stages = {names[name].name: names[name] for name in wanted}
    records = {name: consumable(opened, stage) for name, stage in stages.items()}
    return [_view(*name, names[name].name, records[names[name].name]) for name in wanted]


def set_aside_view(schema: str, name: str, records: Iterable[PartitionRecord], masked: tuple[str, ...] = ()) -> View:
    """Rows of these partitions that their gate had set aside."""
    files = _files(records, lambda record: record.set_aside.files if record.set_aside else ())
    return View(schema, name, schema, files, masked)


def data_view(schema: str, stage: str, records: Iterable[PartitionRecord], masked: tuple[str, ...] = ()) -> View:
    """The data of these partitions."""
    return View(schema, stage, stage, _files(records, lambda record: record.files), masked)


def consumable(opened: OpenedCheckpoint, stage: OpenedStage) -> list[PartitionRecord]:
    every = (partition.record for partition in opened.records(stage))
    return [record for record in every if record.state.readable]


def _view(schema: str, name: str, stage: str, records: Iterable[PartitionRecord]) -> View:
    def kept(record: PartitionRecord) -> tuple[DataFile, ...]:
        return tuple(file for part in record.kept if part.name == name for file in part.files)

    return View(schema, name, stage, _files(records, (lambda record: record.files) if schema == DATA else kept))


def _files(
    records: Iterable[PartitionRecord], of: Callable[[PartitionRecord], Iterable[DataFile]]
) -> tuple[StoredFile, ...]:
    return tuple(
        StoredFile(record.partition, record.table, file.path, file.bytes) for record in records for file in of(record)
    )
