"""Files below one folder or object-store prefix. The rest of the lake never asks which of the two it has."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from http import HTTPStatus
from pathlib import Path
from random import uniform
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

from stagehold.lake.store.location import OBJECT_STORE

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema

KEYS_PER_DELETE = 1000  # S3's limit
CALL = "stagehold-call"  # in an object's metadata: which call made it
CREATE_TRIES = 10  # S3 refuses one of two requests for the same object at the same moment, even if the other one fails


@dataclass(frozen=True)
class FileFacts:
    """A file as it is now; ``version`` is a text that differs after every change of the content, and may also differ
    without one.

    ``modified`` is by the clock of the store.
    """

    bytes: int
    version: str
    modified: datetime


class Files(Protocol):
    """Paths are relative to the root and use ``/``. A folder that does not exist has no files, which is no error."""

    def sizes(self, folder: str) -> Mapping[str, int]:
        """Bytes of every file in ``folder``, at any depth, by path."""

    def folders(self, folder: str) -> Collection[str]:
        """Names of the folders right in ``folder``."""

    def names(self) -> Collection[str]:
        """Names of the files right in the root."""

    def facts(self, path: str) -> Mapping[str, FileFacts]:
        """The file at ``path``, or every file in it at any depth, by path; an empty ``path`` is the root."""

    def tail(self, path: str, length: int) -> bytes:
        """The last ``length`` bytes of a file, or all of it if it is shorter."""

    def read(self, path: str) -> bytes:
        """A whole file.

        :raises FileNotFoundError: there is none.
        """

    def create(self, path: str, content: bytes) -> bool:
        """Make a file, whole or not at all; False if there is one of another call, which stays as it is."""

    def delete(self, folder: str) -> None:
        """Remove every file in ``folder``."""

    def remove(self, paths: Collection[str]) -> None:
        """Remove these files; one that is gone already is no error."""


class FolderFiles:
    """Files in a folder of this machine."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._beginning = len(str(self._root / "_")) - 1  # of a path, up to its name below the root

    def sizes(self, folder: str) -> Mapping[str, int]:
        """A plan asks this of each stage, and a stage may have thousands of files: no object is made of each."""
        beginning = self._beginning
        sizes: dict[str, int] = {}
        for entry in _files_in(str(self._root / folder)):
            with suppress(FileNotFoundError):  # it has vanished since its folder was listed
                sizes[entry.path[beginning:]] = entry.stat().st_size
        return sizes

    def folders(self, folder: str) -> Collection[str]:
        place = self._root / folder
        return [entry.name for entry in place.iterdir() if entry.is_dir()] if place.is_dir() else []

    def names(self) -> Collection[str]:
        return [entry.name for entry in self._root.iterdir() if entry.is_file()] if self._root.is_dir() else []

    def facts(self, path: str) -> Mapping[str, FileFacts]:
        place = str(self._root / path)
        if Path(place).is_file():
            return dict(self._described(place))
        walked = os.walk(place, followlinks=True)
        return dict(found for parent, _, names in walked for name in names for found in self._described(parent, name))

    def tail(self, path: str, length: int) -> bytes:
        with (self._root / path).open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - length, 0))
            return file.read()

    def read(self, path: str) -> bytes:
        return (self._root / path).read_bytes()

    def create(self, path: str, content: bytes) -> bool:
        place = self._root / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:  # a file stands there, which is told of the folders above in other words
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place.parent)) from error
        draft = place.with_name(f".{place.name}.{uuid4().hex}")
        try:
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            place.hardlink_to(draft)  # unlike a rename, it replaces nothing
        except FileExistsError:
            return False
        except OSError as error:  # of a disk that is full, the system names no file
            raise OSError(error.errno, error.strerror, str(place)) from error
        finally:
            draft.unlink(missing_ok=True)
        return True

    def delete(self, folder: str) -> None:
        shutil.rmtree(self._root / folder, ignore_errors=True)

    def remove(self, paths: Collection[str]) -> None:
        for path in paths:
            (self._root / path).unlink(missing_ok=True)

    def _described(self, *parts: str) -> Iterator[tuple[str, FileFacts]]:
        """The file's facts, of thousands of files; nothing if it has vanished since its folder was listed."""
        with suppress(FileNotFoundError):
            path = "/".join(parts)
            status = os.stat(path)  # noqa: PTH116 - no object is made of each
            yield (
                path[self._beginning :],
                FileFacts(status.st_size, str(status.st_mtime_ns), datetime.fromtimestamp(status.st_mtime, UTC)),
            )


def _files_in(folder: str) -> Iterator[os.DirEntry[str]]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir():
                yield entry
            elif not entry.is_symlink():
                yield from _files_in(entry.path)


class ObjectFiles:
    """Files under a prefix of an S3 bucket; address and keys come from the AWS_ variables, as for every AWS client."""

    def __init__(self, uri: str, keys_per_delete: int = KEYS_PER_DELETE) -> None:
        self._keys_per_delete = keys_per_delete
        self._bucket, _, prefix = uri.removeprefix(OBJECT_STORE).partition("/")
        self._root = f"{prefix.rstrip('/')}/" if prefix else ""

    def sizes(self, folder: str) -> Mapping[str, int]:
        return {entry["Key"].removeprefix(self._root): entry["Size"] for entry in self._entries(f"{folder}/")}

    def folders(self, folder: str) -> Collection[str]:
        prefix = f"{self._root}{folder}/" if folder else self._root
        found = (entry for page in self._right_in(prefix) for entry in page.get("CommonPrefixes", ()))
        return [entry["Prefix"].removeprefix(prefix).rstrip("/") for entry in found]

    def names(self) -> Collection[str]:
        found = (entry for page in self._right_in(self._root) for entry in page.get("Contents", ()))
        return [entry["Key"].removeprefix(self._root) for entry in found]

    def facts(self, path: str) -> Mapping[str, FileFacts]:
        entries = ((entry["Key"].removeprefix(self._root), entry) for entry in self._entries(path))
        within = (path, f"{path}/") if path else ("", "")
        return {
            name: FileFacts(entry["Size"], entry["ETag"].strip('"'), entry["LastModified"])
            for name, entry in entries
            if (name == within[0] or name.startswith(within[1])) and not name.endswith("/")
        }

    def tail(self, path: str, length: int) -> bytes:
        answer = _s3(os.getpid()).get_object(Bucket=self._bucket, Key=self._root + path, Range=f"bytes=-{length}")
        return bytes(answer["Body"].read())

    def read(self, path: str) -> bytes:
        client = _s3(os.getpid())
        try:
            return bytes(client.get_object(Bucket=self._bucket, Key=self._root + path)["Body"].read())
        except client.exceptions.NoSuchKey as error:
            raise FileNotFoundError(f"{OBJECT_STORE}{self._bucket}/{self._root}{path}") from error

    def create(self, path: str, content: bytes) -> bool:
        call = uuid4().hex
        for _ in range(CREATE_TRIES):
            answer = self._created(path, content, call)
            if answer != HTTPStatus.CONFLICT:
                break
        if answer not in (HTTPStatus.OK, HTTPStatus.PRECONDITION_FAILED):
            raise OSError(f"{OBJECT_STORE}{self._bucket}/{self._root}{path} cannot be made: HTTP status {answer}")
        return answer == HTTPStatus.OK

    def _created(self, path: str, content: bytes, call: str) -> int:
        """The answer to a request. It carries its call, since one whose answer is lost is sent again, and refused."""
        from stagehold.extras import Extra, brought_by

        with brought_by(Extra.AWS):
            from botocore.exceptions import ClientError  # type: ignore[import-untyped]

        client, place = _s3(os.getpid()), {"Bucket": self._bucket, "Key": self._root + path}
        try:
            client.put_object(**place, Body=content, IfNoneMatch="*", Metadata={CALL: call})
        except ClientError as error:
            answer = int(error.response["ResponseMetadata"]["HTTPStatusCode"])
            if answer not in (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED):
                raise
            if answer == HTTPStatus.CONFLICT or client.head_object(**place)["Metadata"].get(CALL) != call:
                return answer
        return HTTPStatus.OK

    def _right_in(self, prefix: str) -> Iterator[Any]:
        paginator = _s3(os.getpid()).get_paginator("list_objects_v2")
        return iter(paginator.paginate(Bucket=self._bucket, Prefix=prefix, Delimiter="/"))

    def _entries(self, prefix: str) -> Iterator[Any]:
        pages = (
            _s3(os.getpid())
            .get_paginator("list_objects_v2")
            .paginate(Bucket=self._bucket, Prefix=f"{self._root}{prefix}")
        )
        return (entry for page in pages for entry in page.get("Contents", ()))

    def delete(self, folder: str) -> None:
        """Uploads into it that nobody finished, too: no listing shows them, and they are paid for."""
        client = _s3(os.getpid())
        for upload in self._uploads(f"{self._root}{folder}/"):
            with suppress(client.exceptions.NoSuchUpload):  # it was finished or given up since
                client.abort_multipart_upload(Bucket=self._bucket, Key=upload["Key"], UploadId=upload["UploadId"])
        self.remove(self.sizes(folder))

    def _uploads(self, prefix: str) -> list[Any]:
        """MinIO takes the prefix for a whole key, and says what it knows of all; it gives up what is a day old."""
        found = self._listed_uploads(prefix)
        every = found or ([] if _is_amazons(_s3(os.getpid())) else self._listed_uploads(""))
        return [upload for upload in every if upload["Key"].startswith(prefix)]

    def _listed_uploads(self, prefix: str) -> list[Any]:
        paginator = _s3(os.getpid()).get_paginator("list_multipart_uploads")
        pages = paginator.paginate(Bucket=self._bucket, Prefix=prefix)
        return [upload for page in pages for upload in page.get("Uploads", ())]

    def remove(self, paths: Collection[str]) -> None:
        keys = [{"Key": self._root + path} for path in paths]
        for start in range(0, len(keys), self._keys_per_delete):
            request = keys[start : start + self._keys_per_delete]
            answer = _s3(os.getpid()).delete_objects(Bucket=self._bucket, Delete={"Objects": request})
            for error in answer.get("Errors", ()):
                raise OSError(f"{OBJECT_STORE}{self._bucket}/{error['Key']} cannot be deleted: {error['Message']}")


class MountedLake(Protocol):
    """A lake that is no folder and no bucket, as one in memory: it has its own files and tables."""

    def files_at(self, uri: str) -> Files: ...
    def open_table(self, uri: str, version: int | None) -> DeltaTable: ...
    def create_table(
        self, uri: str, schema: Schema, partition_by: Sequence[str], configuration: Mapping[str, str]
    ) -> None: ...


_MOUNTED: dict[str, MountedLake] = {}


@contextmanager
def mounted(lake: MountedLake, uri: str) -> Iterator[None]:
    """Have a lake below ``uri`` for all of this process until the block ends."""
    _MOUNTED[uri] = lake
    try:
        yield
    finally:
        del _MOUNTED[uri]


def mounted_at(uri: str) -> MountedLake | None:
    """The mounted lake that ``uri`` is in."""
    return next((lake for beginning, lake in _MOUNTED.items() if uri.startswith(beginning)), None)


def files_at(uri: str) -> Files:
    """Files below ``uri``."""
    if lake := mounted_at(uri):
        return lake.files_at(uri)
    return ObjectFiles(uri) if uri.startswith(OBJECT_STORE) else FolderFiles(uri)


# A store that throttles, or is started anew, has about a minute before a region fails and is restarted. How often it is
# asked again is decided in `_seconds_to_next_try` alone, and botocore never asks again by itself: it gives up on a
# network after six seconds, and sooner if calls before have failed. What throttles it asks less often.
PATIENCE: Mapping[str, Any] = {
    "retries": {"mode": "adaptive", "total_max_attempts": 1},
    "connect_timeout": 5,
    "read_timeout": 30,
}
TRIES = 9
LONGEST_WAIT = 20.0  # seconds
FAILED = frozenset((429, 500, 502, 503, 504))
NOT_HEARD, RAN_OUT = "RequestTimeout", "ExpiredToken"  # S3's words, with 400: a request came too slowly; keys are old


@lru_cache(maxsize=1)
def _s3(process: int) -> Any:  # noqa: ARG001
    """One client per process, since a fork must not use the connections of its parent."""
    from stagehold.extras import Extra, brought_by

    with brought_by(Extra.AWS):
        import boto3  # type: ignore[import-untyped]
        from botocore.config import Config  # type: ignore[import-untyped]

    session = boto3.Session()
    client = session.client("s3", config=Config(**PATIENCE))
    renewed = hasattr(session.get_credentials(), "refresh_needed")  # those that are the same for ever have none
    client.meta.events.register_first("needs-retry.s3", partial(_seconds_to_next_try, renewed=renewed))
    return client


def _is_amazons(client: Any) -> bool:
    """Whether the store is Amazon's own, which does as its documents say."""
    host = urlsplit(client.meta.endpoint_url).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


def _seconds_to_next_try(
    attempts: int,
    response: tuple[Any, Any] | None,
    caught_exception: Exception | None,
    renewed: bool,
    **_: object,
) -> float | None:
    """None if there is nothing to wait for.

    :param renewed: whether keys that ran out are followed by others, which each try asks for.
    """
    from botocore.exceptions import ConnectionError, HTTPClientError

    again = (NOT_HEARD, RAN_OUT) if renewed else (NOT_HEARD,)
    failed = response is not None and (
        response[0].status_code in FAILED or response[1].get("Error", {}).get("Code") in again
    )
    if attempts >= TRIES or not (failed or isinstance(caught_exception, (ConnectionError, HTTPClientError))):
        return None
    return uniform(0.5, 1) * min(2.0 ** (attempts - 2), LONGEST_WAIT)  # noqa: S311 - no secret
