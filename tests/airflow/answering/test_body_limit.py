"""A large body costs neither memory nor time, whoever sends it: on a real server, since that is where bytes arrive."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conftest import free_port

pytestmark = pytest.mark.airflow

MEGABYTE = 2**20
SENT = 300 * MEGABYTE
ROUTE = "/stagehold/api/dags/shipping_priority/runs/manual/resume"
BEGIN = f"POST {ROUTE} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(synced_airflow) -> Iterator[tuple[int, int]]:
    """Port and process id of an api-server."""
    port = free_port()
    words = ["uvicorn", "airflow.api_fastapi.main:app", "--port", str(port), "--log-level", "warning"]
    with subprocess.Popen([sys.executable, "-m", *words], env=os.environ.copy()) as process:
        try:
            wait_for(port)
            yield port, process.pid
        finally:
            process.terminate()


def wait_for(port: int) -> None:
    until = time.monotonic() + 240
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise AssertionError("the server does not answer")


def most_memory(pid: int) -> int:
    """The most that the process ever had at once, in bytes."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) * 1024


def answer_to(port: int, header: str, chunk: bytes) -> tuple[bytes, int]:
    """The answer, and how many bytes were sent before the server would take no more."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall((BEGIN + header + "\r\n").encode())
        sent = 0
        with suppress(ConnectionError):
            while chunk and sent < SENT:
                connection.sendall(chunk)
                sent += len(chunk)
        answer = b""
        with suppress(ConnectionError):
            answer = connection.recv(65536)
    return answer, sent


@pytest.mark.parametrize(
    ("header", "chunk"),
    [
        (f"Content-Length: {SENT}\r\n", b"x" * MEGABYTE),
        ("Transfer-Encoding: chunked\r\n", b"100000\r\n" + b"x" * MEGABYTE + b"\r\n"),
    ],
    ids=["told", "chunked"],
)
def test_a_body_of_300_mb_that_nobody_signed_is_refused_without_being_kept(server, header, chunk):
    port, pid = server
    answer_to(port, "Content-Length: 0\r\n", b"")
    before = most_memory(pid)
    answer, sent = answer_to(port, header, chunk)
    assert most_memory(pid) - before < 20 * MEGABYTE
    assert not answer or answer.startswith(b"HTTP/1.1 413")
    assert sent < SENT, "the server read all of it"
