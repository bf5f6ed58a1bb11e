"""Which consumer reads which partition, by index: Flink's two distribution patterns.

A block is a range of producers and a range of consumers, all of which read all of those producers' partitions. Either
pattern is a list of blocks that share no producer and no consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from stagehold.spec.pipeline import Exchange

Block = tuple[range, range]


def all_to_all(producers: int, consumers: int) -> Iterator[Block]:
    """Every consumer reads every partition."""
    yield range(producers), range(consumers)


def pointwise(producers: int, consumers: int) -> Iterator[Block]:
    """Neighbouring indices meet; equal counts give index i to index i.

    With at least as many producers, consumer k reads partitions [floor(k*S/T), floor((k+1)*S/T)). With fewer, producer
    p feeds consumers [ceil(p*T/S), ceil((p+1)*T/S)).
    """
    if producers >= consumers:
        for consumer in range(consumers):
            yield (
                range(consumer * producers // consumers, (consumer + 1) * producers // consumers),
                range(consumer, consumer + 1),
            )
    else:
        for producer in range(producers):
            yield (
                range(producer, producer + 1),
                range(_ceil(producer * consumers, producers), _ceil((producer + 1) * consumers, producers)),
            )


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


# A keyed reader takes some rows of every partition; broadcast and gather take all of them.
PATTERNS: Mapping[Exchange, Callable[[int, int], Iterator[Block]]] = {
    Exchange.FORWARD: pointwise,
    Exchange.KEYED: all_to_all,
    Exchange.BROADCAST: all_to_all,
    Exchange.GATHER: all_to_all,
}
