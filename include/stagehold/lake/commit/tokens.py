"""Tokens: which attempt may still change a share of a table.

Every commit carries a token: the share of the partitions it writes, with a version that grows with epoch and wave and
names the attempt (`wave_commit.Claim`). The token is looked up in the same handle that commits, and Delta refuses a
commit when another one with its token landed after the handle was opened. So of all attempts that ever write a share,
only the newest can. When the partitions were cut into other shares before, a fence carries the tokens of all shares
that overlap: what counts is the partition.

After the loss of a ledger the names of tokens are unknown, and delta-rs finds a token by its name alone. So all tokens
of a log are read by ourselves: the newest checkpoint has one column for tokens, and of the commits after it only the
lines with tokens are read.
"""

from __future__ import annotations

import io
import json
import logging
import os
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stagehold.errors import CommitContested, Fenced
from stagehold.lake.commit.delta_log import AT_ONCE, COMMIT_FILE, LOG_FOLDER, open_table
from stagehold.lake.commit.wave_commit import Claim, epoch_of
from stagehold.lake.store.columns import INTERVAL, PARTITION
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import TableLocation
from stagehold.model.partition_set import Share, overlap

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

TRIES = 20  # intervals of one published table may commit at the same moment; each try lets one of them through
PAUSE_SECONDS = 0.05
OS_ERROR = re.compile(r"(?:\(os error |Os \{ code: )(\d+)")

RetryReason = str | None  # why to try again, None when there is nothing left to do

log = logging.getLogger(__name__)


def until_done(
    location: TableLocation,
    claim: Claim,
    step: Callable[[DeltaTable, int], RetryReason],
    pause_seconds: float = PAUSE_SECONDS,
) -> None:
    """Repeat ``step`` with a new handle and the share's token in it, until nothing is left to do.

    Each try checks anew whether this attempt still may change the share; none is repeated blindly. Pauses of at most
    ``pause_seconds``, longer with each try, let other writers through.

    :raises Fenced: a newer attempt was here first.
    :raises CommitContested: others kept committing to the table.
    """
    reason: RetryReason = None
    for attempt in range(TRIES):
        table = open_table(location.uri)
        landed = table.transaction_version(location.token) or 0
        if claim.is_shut_out_by(landed):
            raise Fenced(location.token, claim.epoch, epoch_of(landed), told_by=location.uri)
        with naming_table(location.uri):
            reason = step(table, landed)
        if reason is None:
            return
        log.info("asking anew: token=%s epoch=%d: %s", location.token, claim.epoch, reason)
        time.sleep(random.uniform(0, pause_seconds * attempt))  # noqa: S311
    raise CommitContested(location.uri, TRIES, reason or "")


@contextmanager
def naming_table(table: str) -> Iterator[None]:
    """Raise errors of the system as such: delta-rs names them only in its text, and seldom names the file."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (OSError, DeltaError) as error:
        said = OS_ERROR.search(str(error))
        if said is None:
            raise
        raise OSError(int(said[1]), os.strerror(int(said[1])), table) from error


def tokens_to_raise(table: DeltaTable, locations: Iterable[TableLocation], claim: Claim) -> dict[str, int]:
    """The tokens that are below the attempt's fence, and the version of the fence. Tokens never go back, so a higher
    one stays.
    """
    return {
        location.token: claim.fence
        for location in locations
        if (table.transaction_version(location.token) or 0) < claim.fence
    }


def by_delta_rs(write: Callable[[], object]) -> RetryReason:
    """Commit through delta-rs; None if the commit landed for certain, else why the log has to be read."""
    from deltalake.exceptions import CommitFailedError

    try:
        write()
    except CommitFailedError as error:
        return str(error)
    return None


def token_properties(versions: Mapping[str, int], metadata: str | None = None) -> CommitProperties:
    """The properties of a commit by delta-rs; ``versions`` are those of its tokens."""
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        custom_metadata={"userMetadata": metadata} if metadata else None,
        app_transactions=[Transaction(token, version) for token, version in versions.items()],
    )


def partition_columns(location: TableLocation) -> list[str]:
    return [PARTITION] if location.interval is None else [INTERVAL, PARTITION]


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
