"""An object store of our own: moto's in this process, or the one that STAGEHOLD_TEST_S3_URL names, such as MinIO's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from tests.lake.slow_store import KEYS

from stagehold.lake.store import files

GIVEN_STORE = os.environ.get("STAGEHOLD_TEST_S3_URL", "")  # http://USER:PASSWORD@HOST:PORT


@contextmanager
def object_store() -> Iterator[str]:
    """Its address."""
    if GIVEN_STORE:
        yield "{0.scheme}://{0.hostname}:{0.port}".format(urlsplit(GIVEN_STORE))
        return
    with moto_store() as address:
        yield address


@contextmanager
def moto_store() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


def way_to(address: str) -> Mapping[str, str]:
    """The variables by which every AWS client finds it."""
    given = urlsplit(GIVEN_STORE)
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": unquote(given.username or "tester"),
        "AWS_SECRET_ACCESS_KEY": unquote(given.password or "tester"),
    }


def way_by_role(address: str, token: Path) -> Mapping[str, str]:
    """The same for a client that has no keys, and asks a proxy in front of the store for them, as in a pod of EKS.

    :param token: a file by which it shows who it is.
    """
    token.write_text("pod")
    way = {name: text for name, text in way_to(address).items() if "KEY" not in name}
    asked = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": address + KEYS, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token)}
    return way | asked


def new_lake() -> str:
    """A lake in a new bucket of the store that the environment names."""
    files._s3.cache_clear()
    bucket = f"lake-{uuid4()}"
    files._s3(os.getpid()).create_bucket(Bucket=bucket)
    return f"s3://{bucket}/some/lake"
