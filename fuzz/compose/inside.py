"""What is known of an interval where the ledger and the bucket can be reached: in a container, which is given this file
as `python - INTERVAL`. It prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from stagehold.chronicle.chronicle import open_ledger
from stagehold.local.demo.demo_run import PIPELINE, RESULT, expected_top_orders, published_top_orders
from stagehold.local.demo.sample import SCALE, make_sample
from stagehold.model.records import PartitionRecord
from stagehold.settings import Settings, load_settings


def known(interval: str) -> dict[str, object]:
    """``twice`` are partitions that were recorded as readable by more than one attempt."""
    settings = load_settings()
    with open_ledger(settings) as ledger:
        records = ledger.partitions.of_interval(PIPELINE, interval)
    return {
        "same": any(record.cell.stage == RESULT for record in records) and _is_answer(settings, interval),
        "partitions": len({(record.cell.stage, record.partition) for record in records}),
        "attempts": len({record.attempt_id for record in records}),
        "twice": recorded_twice(records),
    }


def _is_answer(settings: Settings, interval: str) -> bool:
    with TemporaryDirectory() as folder:
        make_sample(Path(folder), SCALE)  # the same rows each time, whoever makes them
        expected = expected_top_orders(Path(folder))
    return len(expected) == 10 and published_top_orders(settings, interval) == expected


def recorded_twice(records: Iterable[PartitionRecord]) -> list[str]:
    counts = Counter((record.cell.stage, record.partition) for record in records if record.state.readable)
    return [f"{stage} {partition}" for (stage, partition), count in sorted(counts.items()) if count > 1]


if __name__ == "__main__":
    print(json.dumps(known(sys.argv[1])))
