"""How much data is kept. It is summed over everything on record in a ledger, so it has a route of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagehold.airflow.overview.overview_responses import LedgerSize, PipelineSize, SizesSeen
from stagehold.ledger.ledger import Ledger

if TYPE_CHECKING:
    from stagehold.airflow.overview.visible_pipelines import VisiblePipeline


@dataclass(frozen=True)
class LedgerSums:
    """The sums of a whole ledger, for any reader; each reader is shown a part of them."""

    ledger: LedgerSize
    pipelines: frozenset[str]
    lake: tuple[PipelineSize, ...]


def ledger_sums(ledger: Ledger) -> LedgerSums:
    known = ledger.pipelines.known()
    size = LedgerSize(back_end=ledger.back_end, schema_version=ledger.schema_version, bytes=ledger.sizes.ledger_bytes())
    lake = sorted(ledger.sizes.lake(known).items())
    lines = tuple(PipelineSize(name=name, partitions=count, bytes=total) for name, (count, total) in lake)
    return LedgerSums(size, known, lines)


def sizes_seen(sums: Sequence[LedgerSums | None], visible: Sequence[VisiblePipeline]) -> SizesSeen:
    """The sizes that a reader may see who may see these pipelines."""
    named = {one.name for one in visible if one.runs}
    made = [one for one in sums if one is not None]
    return SizesSeen(
        counted=len(made) == len(sums),
        ledgers=tuple(one.ledger if one.pipelines <= named else _without_bytes(one.ledger) for one in made),
        pipelines=tuple(line for one in made for line in one.lake if line.name in named),
    )


def _without_bytes(ledger: LedgerSize) -> LedgerSize:
    return ledger.model_copy(update={"bytes": None})
