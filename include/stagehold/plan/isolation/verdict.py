"""The verdict on a keyed stage: one call for a whole wave, one for each partition, or none at all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from stagehold.plan.isolation.flow import Flow, FlowReader
from stagehold.plan.isolation.tree import GivenInput, Unreadable, analyzed, parse_tree

NOT_UNDERSTOOD = "its plan, which has a form that is not known"


@dataclass(frozen=True)
class NullableKey:
    """An output column that should tell a row's partition, and is null in rows that an outer join adds.

    ``alternatives`` are columns of which the first that is not null is the key.
    """

    column: str
    alternatives: tuple[str, ...]

    @property
    def expression(self) -> str:
        return f'F.coalesce({", ".join(self.alternatives)}).alias("{self.column}")'


@dataclass(frozen=True)
class Isolation:
    """What shows in the plan of a keyed stage's function.

    ``blame`` are operators that may give other rows for several partitions than for each of them; with any of them,
    every partition needs a call of its own. ``nullable`` are key columns with which no call gives rows that belong to
    its partition.
    """

    blame: tuple[str, ...] = ()
    nullable: tuple[NullableKey, ...] = ()

    @property
    def together(self) -> bool:
        return not self.blame


def separate_calls_text(stage: str, isolation: Isolation) -> str:
    """Why a stage's function is called more often than once in a wave."""
    first, *others = isolation.blame
    more = f" (and {len(others)} more)" if others else ""
    return (
        f"{stage} is called for each partition by itself, which is slower: nothing shows that partitions are kept "
        f"apart by {first}{more}"
    )


def habits_text(stage: str, habits: Sequence[str]) -> str:
    """Why the function of a stage that is not keyed is called more often than its plan asks for."""
    first, *others = habits
    more = f" (and {len(others)} more)" if others else ""
    return f"{stage} is called for each partition by itself, which is slower: {first}{more}"


def isolation_of(
    explained: str,
    inputs: Sequence[GivenInput],
    key: Sequence[str],
    columns: Sequence[str],
    functions: Collection[str] = (),
) -> Isolation:
    """Judge what `explain(extended)` says of the function's frame.

    :param key: the output columns that tell a row's partition, out of all its ``columns``.
    :param functions: the Python functions that are known to see rows one by one, or those of one group.
    """
    reader = FlowReader(inputs, len(key))
    try:
        flow = reader.read(parse_tree(analyzed(explained)))
        others = tuple(
            f"the Python function {name}"
            for name in sorted(reader.attributes.functions(reader.texts).difference(functions))
        )
        return _judge(replace(flow, blame=(*flow.blame, *others)), reader, key, columns)
    except (Unreadable, ValueError, KeyError, IndexError, StopIteration):
        return Isolation((NOT_UNDERSTOOD,))


def _judge(flow: Flow, reader: FlowReader, key: Sequence[str], columns: Sequence[str]) -> Isolation:
    if flow.key is None:
        return Isolation((*flow.blame, "its output, which is the same for every partition"))
    if flow.outputs is None or len(flow.outputs) != len(columns):
        return Isolation((*flow.blame, f"its output column {' and '.join(key)}, which nothing shows to be the key"))
    attributes = dict(zip(columns, flow.outputs, strict=True))
    blame, nullable = list(flow.blame), list[NullableKey]()
    for column, carriers in zip(key, flow.key, strict=True):
        attribute = attributes[column]
        if carriers.determined_by(frozenset({attribute})):
            continue
        if attribute in carriers.members:
            nullable.append(NullableKey(column, reader.attributes.alternatives_of(attribute)))
        blame.append(f"its output column {column}, which nothing shows to be the key")
    return Isolation(tuple(dict.fromkeys(blame)), tuple(nullable))
