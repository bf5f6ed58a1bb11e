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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stagehold.errors import CommitContested, Fenced
from stagehold.lake.commit.delta_log import AT_ONCE, COMMIT_FILE, LOG_FOLDER, open_table
from stagehold.lake.commit.wave_commit import Claim, epoch_of
from stagehold.lake.store.columns import INTERVAL, PARTITION
from stagehold.lake.store.files import files_at, mounted_at
from stagehold.lake.store.location import OBJECT_STORE, TableLocation
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
    """Repeat ``step`` with a handle of now and the share's token in it, until nothing is left to do.

    Each try checks anew whether this attempt still may change the share; none is repeated blindly. Pauses of at most
    ``pause_seconds``, longer with each try, let other writers through.

    :raises Fenced: a newer attempt was here first.
    :raises CommitContested: others kept committing to the table.
    """
    reason: RetryReason = None
    for attempt in range(TRIES):
        seen = _seen_now(location.uri, claim)
        landed = seen.version_of(location.token)
        if claim.is_shut_out_by(landed):
            raise Fenced(location.token, claim.epoch, epoch_of(landed), told_by=location.uri)
        with naming_table(location.uri):
            reason = step(seen.table, landed)
        if reason is None:
            _keep(location.uri, claim, seen)
            return
        log.info("asking anew: token=%s epoch=%d: %s", location.token, claim.epoch, reason)
        time.sleep(random.uniform(0, pause_seconds * attempt))  # noqa: S311
    raise CommitContested(location.uri, TRIES, reason or "")


@dataclass
class _Seen:
    """A table as an attempt sees it: a handle with the tokens that were found in it, and those of commits of our own
    behind it.
    """

    table: DeltaTable
    found: dict[str, int] = field(default_factory=dict)
    own: dict[int, dict[str, int]] = field(default_factory=dict)

    def version_of(self, token: str) -> int:
        """As `DeltaTable.transaction_version`, which reads the whole log each time that it is asked."""
        if token not in self.found:
            self.found[token] = self.table.transaction_version(token) or 0
        return self.found[token]

    def follow(self, uri: str) -> bool:
        """Bring the handle up to now. False if its log does not simply go on, so that a new handle is needed."""
        before, files = self.table.version(), files_at(uri)
        if not self.own and _log_file(before) not in files.sizes(LOG_FOLDER):
            return False
        self.table.update_incremental()
        now = self.table.version()
        for version in range(before + 1, now + 1):
            self.found.update(self.own.pop(version, None) or _in_commit(files.read(_log_file(version))))
        return not self.own  # a log without a commit that landed was made anew


# The handles of this process, by their attempts. To open a table of a bucket takes three calls for each commit that its
# log has, and to follow it three for each that is new.
_KEPT: dict[tuple[object, ...], _Seen] = {}
MOST_KEPT = 16


def _name(uri: str, claim: Claim) -> tuple[object, ...]:
    return os.getpid(), os.environ.get("AWS_ENDPOINT_URL"), uri, claim


def _seen_now(uri: str, claim: Claim) -> _Seen:
    seen = _KEPT.pop(_name(uri, claim), None)  # whoever else asks meanwhile opens one of its own
    with suppress(Exception):  # whatever is wrong with it is said of a new one
        if seen and seen.follow(uri):
            return seen
    return _Seen(open_table(uri))


def _keep(uri: str, claim: Claim, seen: _Seen) -> None:
    if uri.startswith(OBJECT_STORE) and not mounted_at(uri):
        _KEPT[_name(uri, claim)] = seen
        for oldest in [*_KEPT][:-MOST_KEPT]:
            _KEPT.pop(oldest, None)


def note_landed(location: TableLocation, claim: Claim, version: int, token: int) -> None:
    """Have the attempt know of its own commit, which need not be read again."""
    if seen := _KEPT.get(_name(location.uri, claim)):
        seen.own[version] = {location.token: token}


def _log_file(version: int) -> str:
    return f"{LOG_FOLDER}/{version:020d}.json"


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
