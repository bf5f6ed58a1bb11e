"""A topology and the states of its vertices, as a JSON document.

    {"vertices": ["a", {"id": "b", "state": "FINISHED", "co_location": "x"}],
     "partitions": [{"id": "p", "producer": "a", "type": "BLOCKING", "consumers": ["b"]}]}

A vertex without a state is running. Types and states are written in either case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from stagehold.errors import InvalidTopology, SpecProblem
from stagehold.model.records import AttemptState
from stagehold.spec.pipeline import OutputType
from stagehold.topology.build import DeclaredPartition, topology_of
from stagehold.topology.topology import Topology, Vertex

SHOWN_CHARACTERS = 60


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _named(value: Any) -> Any:
    return {"id": value} if isinstance(value, str) else value


Name = Annotated[str, Field(min_length=1)]


class _Form(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _VertexForm(_Form):
    id: Name
    state: Annotated[AttemptState, BeforeValidator(_lower)] = AttemptState.RUNNING
    co_location: Name | None = None


class _PartitionForm(_Form):
    id: Name
    producer: Name
    type: Annotated[OutputType, BeforeValidator(_lower)]
    consumers: tuple[Name, ...] = ()


class _TopologyForm(_Form):
    vertices: tuple[Annotated[_VertexForm, BeforeValidator(_named)], ...]
    partitions: tuple[_PartitionForm, ...] = ()


def parse_topology(document: bytes, *, file: str) -> tuple[Topology, Mapping[str, AttemptState]]:
    """What a document says of the graph and of the states of its vertices.

    :raises InvalidTopology: lists everything wrong with its shape, else everything wrong with its graph.
    """
    try:
        form = _TopologyForm.model_validate_json(document)
    except ValidationError as error:
        raise InvalidTopology(file, [_problem(detail) for detail in error.errors()]) from error
    vertices = [Vertex(vertex.id, vertex.id, co_location=vertex.co_location) for vertex in form.vertices]
    partitions = [DeclaredPartition(part.id, part.producer, part.type, part.consumers) for part in form.partitions]
    states = {vertex.id: vertex.state for vertex in form.vertices}
    return topology_of(vertices, partitions, file=file), states


def _problem(detail: ErrorDetails) -> SpecProblem:
    given = "nothing" if detail["type"] == "missing" else repr(detail["input"])
    shown = given if len(given) <= SHOWN_CHARACTERS else given[:SHOWN_CHARACTERS] + "..."
    return SpecProblem(0, _field(detail["loc"]) or "document", shown, _allowed(detail))


def _field(location: tuple[int | str, ...]) -> str:
    """``("partitions", 0, "type")`` as ``partitions[0].type``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _allowed(detail: ErrorDetails) -> str:
    known = {"extra_forbidden": "no such field here", "missing": "a value; it is required"}
    return known.get(detail["type"], detail["msg"].removeprefix("Input should be "))
