"""Which type an output has that names none; and, as a table, what each type promises (`pipeline.OutputType`).

type                 consumed              re-consumable  bounded  persistent  released by
blocking             after it is finished  yes            no       no          scheduler
blocking_persistent  after it is finished  yes            no       yes         scheduler
pipelined            while it is produced  no             no       no          producer
pipelined_bounded    while it is produced  no             yes      no          producer

The type of an output that names none follows from the execution mode:

    mode                           forward    shuffle    of a branch that is joined again
    pipelined                      pipelined  pipelined  blocking
    pipelined_with_batch_fallback  pipelined  pipelined  blocking
    pipelined_forced               pipelined  pipelined  pipelined
    batch                          pipelined  blocking   blocking
    batch_forced                   blocking   blocking   blocking
    auto                           pipelined  pipelined  blocking

A shuffle is an exchange by key, to one partition (gather) or to all (broadcast). If it flows, each partition of the
reader needs all of the producer, so the reader is one wave. If several stages read a producer of which a shuffle flows,
it is `pipelined_bounded`: computed once for all of them.

What `pipelined_with_batch_fallback` and `auto` let flow has a stored form, too; the type stays what it is in that
(see `plan.restart.after_failure` and `plan.waves.worth`).

A branch that is joined again deadlocks when all of it flows: the join waits for one input before it reads the other, so
the producer of both cannot go on, and the awaited input never ends. One blocking exchange in the branch cures it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stagehold.model.graph import UnionFind, strong_components
from stagehold.spec.pipeline import Exchange, OutputType
from stagehold.spec.settings.output_settings import TypeReason
from stagehold.spec.settings.run_settings import ExecutionMode


@dataclass(frozen=True)
class StageExchange:
    """One stage's read of another's output."""

    producer: str
    reader: str
    exchange: Exchange


_FLOWS, _STAYS = OutputType.PIPELINED, OutputType.BLOCKING
# By mode, the type of a forward exchange, of a shuffle, and of one in a branch that is joined again.
_CHOICES: Mapping[ExecutionMode, tuple[OutputType, OutputType, OutputType]] = {
    ExecutionMode.PIPELINED: (_FLOWS, _FLOWS, _STAYS),
    ExecutionMode.PIPELINED_WITH_BATCH_FALLBACK: (_FLOWS, _FLOWS, _STAYS),
    ExecutionMode.PIPELINED_FORCED: (_FLOWS, _FLOWS, _FLOWS),
    ExecutionMode.BATCH: (_FLOWS, _STAYS, _STAYS),
    ExecutionMode.BATCH_FORCED: (_STAYS, _STAYS, _STAYS),
    ExecutionMode.AUTO: (_FLOWS, _FLOWS, _STAYS),
}


def exchange_types(exchanges: Sequence[StageExchange], mode: ExecutionMode) -> Mapping[StageExchange, OutputType]:
    """The type of every exchange, each looked at for itself. ``exchanges`` have no cycle."""
    (forward, shuffle, of_branch), joined_again = _CHOICES[mode], _joined_again(exchanges)
    by_exchange = {exchange: forward if exchange.exchange is Exchange.FORWARD else shuffle for exchange in exchanges}
    return {exchange: of_branch if exchange in joined_again else kind for exchange, kind in by_exchange.items()}


Chosen = tuple[OutputType, TypeReason]


def output_types(
    exchanges: Sequence[StageExchange],
    mode: ExecutionMode,
    *,
    given: Mapping[str, OutputType],
    stored: Mapping[str, TypeReason],
    split: Collection[str] = (),
) -> Mapping[str, Chosen]:
    """The type of every output, and why it has that: a stage that nobody reads is in no exchange, so not named here
    unless it is ``given``. An output has one type for all its readers, so it flows only if each of its exchanges may.

    :param given: types that the pipeline names; they stay as they are.
    :param stored: outputs that must be stored, with the reason.
    :param split: stages whose partitions several tasks have, of which none has all that a shuffle needs.
    """
    chosen: dict[str, Chosen] = {exchange.producer: (_FLOWS, TypeReason.MODE) for exchange in exchanges}
    joined_again = _joined_again(exchanges)
    for exchange, kind in exchange_types(exchanges, mode).items():
        if exchange.producer in stored:
            chosen[exchange.producer] = _STAYS, stored[exchange.producer]
        elif kind is _STAYS:
            alone = _CHOICES[mode][0 if exchange.exchange is Exchange.FORWARD else 1]
            branch = alone is _FLOWS and exchange in joined_again
            chosen[exchange.producer] = _STAYS, TypeReason.JOINED_AGAIN if branch else TypeReason.MODE
    chosen |= {name: (kind, TypeReason.DECLARED) for name, kind in given.items()}
    chosen |= dict.fromkeys(_shuffled_between_tasks(exchanges, chosen, split), (_STAYS, TypeReason.TASKS))
    if mode is not ExecutionMode.PIPELINED_FORCED:
        chosen |= dict.fromkeys(_deadlocks(exchanges, _types(chosen), given), (_STAYS, TypeReason.DEADLOCK))
    return chosen | dict.fromkeys(_read_again(exchanges, chosen), (OutputType.PIPELINED_BOUNDED, TypeReason.MODE))


def _types(chosen: Mapping[str, Chosen]) -> Mapping[str, OutputType]:
    return {name: kind for name, (kind, _) in chosen.items()}


def _shuffled_between_tasks(
    exchanges: Sequence[StageExchange], chosen: Mapping[str, Chosen], split: Collection[str]
) -> Iterator[str]:
    """Outputs that the mode would have shuffled in a region which several tasks share."""
    names = list(dict.fromkeys(name for exchange in exchanges for name in (exchange.producer, exchange.reader)))
    position = {name: index for index, name in enumerate(names)}
    regions = UnionFind(len(names))
    for exchange in exchanges:
        if not chosen[exchange.producer][0].stored:
            regions.join((position[exchange.producer], position[exchange.reader]))
    shared = {regions.find(position[name]) for name in split if name in position}
    for exchange in exchanges:
        flows = chosen[exchange.producer] == (_FLOWS, TypeReason.MODE) and exchange.exchange is not Exchange.FORWARD
        if flows and regions.find(position[exchange.producer]) in shared:
            yield exchange.producer


def _read_again(exchanges: Sequence[StageExchange], chosen: Mapping[str, Chosen]) -> Iterator[str]:
    """Outputs of which a shuffle flows, and that more than one stage reads."""
    for name, choice in chosen.items():
        read = [exchange.exchange for exchange in exchanges if exchange.producer == name]
        if choice == (_FLOWS, TypeReason.MODE) and len(read) > 1 and {*read} != {Exchange.FORWARD}:
            yield name


def _joined_again(exchanges: Sequence[StageExchange]) -> set[StageExchange]:
    """Exchanges of one producer from which the same stage is reached."""
    reached = {exchange: _reached(exchange.reader, exchanges) for exchange in exchanges}
    return {
        exchange
        for exchange in exchanges
        for other in exchanges
        if exchange.producer == other.producer
        and exchange.reader != other.reader
        and reached[exchange] & reached[other]
    }


def _reached(stage: str, exchanges: Sequence[StageExchange]) -> set[str]:
    found, rest = {stage}, [stage]
    while rest:
        producer = rest.pop()
        readers = {exchange.reader for exchange in exchanges if exchange.producer == producer} - found
        found |= readers
        rest.extend(readers)
    return found


def _deadlocks(
    exchanges: Sequence[StageExchange], types: Mapping[str, OutputType], given: Collection[str]
) -> Iterator[str]:
    """Outputs to store so that no region waits for another that waits for it, or for a stored output of its own.

    Branches of several producers that cross can bring that about. Such a region always has a stage with several
    readers: without one it would be a tree that flows into its last stage, and all that it stores would come after it.
    """
    types = dict(types)
    while (stage := _branching_where_waiting(exchanges, types, given)) is not None:
        types[stage] = _STAYS
        yield stage


def _branching_where_waiting(
    exchanges: Sequence[StageExchange], types: Mapping[str, OutputType], given: Collection[str]
) -> str | None:
    waiting = _stages_that_wait_for_themselves(exchanges, types)
    branching = (
        exchange.producer
        for exchange in exchanges
        if exchange.producer in waiting and not types[exchange.producer].stored and exchange.producer not in given
    )
    return next((stage for stage in branching if sum(exchange.producer == stage for exchange in exchanges) > 1), None)


def _stages_that_wait_for_themselves(exchanges: Sequence[StageExchange], types: Mapping[str, OutputType]) -> set[str]:
    """Stages of regions from which a stored output leads back into the same region."""
    names = list(dict.fromkeys(name for exchange in exchanges for name in (exchange.producer, exchange.reader)))
    position = {name: index for index, name in enumerate(names)}
    regions = UnionFind(len(names))
    stored = [exchange for exchange in exchanges if types[exchange.producer].stored]
    for exchange in exchanges:
        if not types[exchange.producer].stored:
            regions.join((position[exchange.producer], position[exchange.reader]))
    between = [
        (regions.find(position[exchange.producer]), regions.find(position[exchange.reader])) for exchange in stored
    ]
    successors: list[list[int]] = [[] for _ in names]
    for producer, reader in between:
        successors[producer].append(reader)
    waiting = {region for cycle in strong_components(successors) if len(cycle) > 1 for region in cycle}
    waiting |= {producer for producer, reader in between if producer == reader}
    return {name for name in names if regions.find(position[name]) in waiting}
