"""How much data is kept. It is summed over everything on record in a ledger, so it has a route of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagehold.airflow.overview.overview_responses import LedgerSize, PipelineSize, SizesSeen
from stagehold.ledger.ledger import Ledger

if TYPE_CHECKING:
    from stagehold.airflow.overview.visible_pipelines import VisiblePipeline


# The sums of a whole ledger, for any reader; all its pipelines; and the sums of each. A reader is shown a part of them.
LedgerSums = tuple[LedgerSize, frozenset[str], tuple[PipelineSize, ...]]


def ledger_sums(ledger: Ledger) -> LedgerSums:
    known = ledger.pipelines.known()
    size = LedgerSize(back_end=ledger.back_end, schema_version=ledger.schema_version, bytes=ledger.sizes.ledger_bytes())
    lake = sorted(ledger.sizes.lake(known).items())
    lines = tuple(PipelineSize(name=name, partitions=count, bytes=total) for name, (count, total) in lake)
    return size, known, lines


def sizes_seen(sums: Sequence[LedgerSums | None], visible: Sequence[VisiblePipeline]) -> SizesSeen:
    """The sizes that a reader may see who may see these pipelines."""
    named = {pipeline.name for pipeline in visible if pipeline.runs}
    made = [known for known in sums if known is not None]
    return SizesSeen(
        counted=len(made) == len(sums),
        ledgers=tuple(size if known <= named else _without_bytes(size) for size, known, _ in made),
        pipelines=tuple(line for *_, lines in made for line in lines if line.name in named),
    )


def _without_bytes(ledger: LedgerSize) -> LedgerSize:
    return ledger.model_copy(update={"bytes": None})
