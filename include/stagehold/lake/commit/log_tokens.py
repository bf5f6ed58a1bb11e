"""All tokens in the log of a table. delta-rs finds a token by its name, but after the loss of a ledger the names are
unknown.

So we read the log ourselves: the newest checkpoint has one column for tokens, and of the commits after it only the
lines with tokens are read.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from stagehold.lake.commit.delta_log import AT_ONCE, COMMIT_FILE, LOG_FOLDER
from stagehold.lake.commit.wave_commit import epoch_of
from stagehold.lake.store.files import files_at
from stagehold.model.partition_set import Share, overlap

CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint(\..+)?\.parquet")
TOKEN_LINE = b'{"txn"'


def tokens_of(uri: str) -> Mapping[str, int]:
    """Every token with its version; none without a log. Tokens never expire."""
    files = files_at(uri)
    names = list(files.sizes(LOG_FOLDER))
    checkpoints = {name: int(match[1]) for name in names if (match := CHECKPOINT.fullmatch(name))}
    newest = max(checkpoints.values(), default=-1)
    checkpoint = [name for name, version in checkpoints.items() if version == newest]
    commits = [name for name in sorted(names) if (match := COMMIT_FILE.fullmatch(name)) and int(match[1]) > newest]
    found: dict[str, int] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        contents = zip((*checkpoint, *commits), pool.map(files.read, (*checkpoint, *commits)), strict=True)
        for name, content in contents:
            found.update(_in_checkpoint(content) if name in checkpoint else _in_commit(content))
    return found


def newest_epoch(tokens: Mapping[str, int], cell: str, share: Share | None = None) -> int:
    """The highest epoch that worked on partitions of ``share`` of the cell, however they were cut; 0 if there is
    none.
    """
    return max((epoch_of(version) for token, version in tokens.items() if _is_of(token, cell, share)), default=0)


def _is_of(token: str, cell: str, share: Share | None) -> bool:
    part, mark, whole = token.partition("@")
    if token == cell:
        return True
    cut = Share.parse(part) if mark else None
    return cut is not None and whole == cell and overlap(cut, share)


def _in_checkpoint(content: bytes) -> Iterator[tuple[str, int]]:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    rows: Iterable[dict[str, Any] | None] = pq.read_table(io.BytesIO(content), columns=["txn"])["txn"].to_pylist()
    return ((row["appId"], row["version"]) for row in rows if row)


def _in_commit(content: bytes) -> Iterator[tuple[str, int]]:
    tokens = (json.loads(line)["txn"] for line in content.splitlines() if line.startswith(TOKEN_LINE))
    return ((token["appId"], token["version"]) for token in tokens)
