"""An object store of our own: MinIO where the path has it, else moto's in this process; or the one that
STAGEHOLD_TEST_S3_URL names.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen
from uuid import uuid4

from tests.conftest import free_port
from tests.lake.slow_store import KEYS

from stagehold.lake.store import files

USER, PASSWORD = "tester", "tester-secret"  # MinIO takes no shorter one
GIVEN_STORE = os.environ.get("STAGEHOLD_TEST_S3_URL", "")  # http://USER:PASSWORD@HOST:PORT


@contextmanager
def object_store() -> Iterator[str]:
    """Its address."""
    if GIVEN_STORE:
        yield "{0.scheme}://{0.hostname}:{0.port}".format(urlsplit(GIVEN_STORE))
        return
    with minio_store() if which("minio") else moto_store() as address:
        yield address


@contextmanager
def minio_store() -> Iterator[str]:
    """MinIO's own server, of the program that the path has, with a new folder for its buckets."""
    netloc = f"127.0.0.1:{free_port()}"
    keys = {"MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": PASSWORD}
    with TemporaryDirectory() as folder:
        command = ["minio", "server", folder, "--quiet", "--address", netloc, "--console-address", "127.0.0.1:0"]
        server = subprocess.Popen(command, env={**os.environ, **keys}, stdout=subprocess.DEVNULL)
        try:
            _await(f"http://{netloc}/minio/health/live")
            yield f"http://{netloc}"
        finally:
            server.kill()
            server.wait()


def _await(address: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError), urlopen(address, timeout=5):
            return
        time.sleep(0.1)
    raise TimeoutError(f"{address} does not answer")


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
        "AWS_ACCESS_KEY_ID": unquote(given.username or USER),
        "AWS_SECRET_ACCESS_KEY": unquote(given.password or PASSWORD),
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
