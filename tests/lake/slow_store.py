"""An object store behind a proxy: its commits may take long, so that writers overlap, its calls are counted, and some
may be refused or lost. It gives out keys that run out, too.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length")
SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
KEYS = "/keys"  # where a client asks for keys, as a pod with a role does
LIFE = timedelta(seconds=60)  # of keys as they are given out: clients ask again before, and so for nearly each call
AT_ONCE = struct.pack("ii", 1, 0)  # a connection that is closed so is reset


class Trouble(StrEnum):
    """What happens to each call for a while."""

    THROTTLED = "throttled"  # 503, as a store does that is asked too often
    RESET = "reset"  # the connection is, and the store has heard of nothing
    UNHEARD = "unheard"  # the store does it, and the connection is reset before it says so


@contextmanager
def slow_store(endpoint: str, seconds: float) -> Iterator[str]:
    """Address of a proxy in front of ``endpoint`` that passes a log entry's PUT on only after ``seconds``."""
    with _proxy(endpoint, seconds) as proxy:
        yield proxy.address


@contextmanager
def counted_store(endpoint: str) -> Iterator[Proxy]:
    """A proxy in front of ``endpoint`` whose ``calls`` are all calls so far, by method and path."""
    with _proxy(endpoint, 0) as proxy:
        yield proxy


@contextmanager
def _proxy(endpoint: str, seconds: float) -> Iterator[Proxy]:
    server = Proxy(urlsplit(endpoint).netloc, seconds)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


class Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, target: str, seconds: float) -> None:
        self.target, self.seconds, self.calls = target, seconds, list[tuple[str, str]]()
        self.trouble: Trouble | None = None
        self.key, self.expired, self.refused = 1, set[str](), 0
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says it, unless the client is gone: whoever is killed leaves connections."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def burst(self, trouble: Trouble, seconds: float) -> int:
        """Have ``trouble`` for so long; how many calls it hit."""
        before, self.trouble = len(self.calls), trouble
        time.sleep(seconds)
        self.trouble = None
        return len(self.calls) - before

    def expire(self, seconds: float) -> int:
        """Refuse the keys that were given out until now; only so much later there are others. How many calls it hit."""
        before = self.refused
        self.expired.add(f"key{self.key}")
        time.sleep(seconds)
        self.key += 1
        return self.refused - before


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def pass_on(self) -> None:
        body = self._body()
        if self.path == KEYS:
            return self._say(HTTPStatus.OK, "application/json", self._keys())
        if self._key() in self.server.expired:
            self.server.refused += 1
            return self._say(HTTPStatus.BAD_REQUEST, "application/xml", EXPIRED)
        trouble = self.server.trouble
        self.server.calls.append((self.command, self.path))
        if trouble is Trouble.THROTTLED:
            return self._say(HTTPStatus.SERVICE_UNAVAILABLE, "application/xml", SLOW_DOWN)
        if trouble is Trouble.RESET:
            return self._hang_up()
        if self.command == "PUT" and "_delta_log/" in self.path and ".json" in self.path:
            time.sleep(self.server.seconds)
        with closing(HTTPConnection(self.server.target, timeout=60)) as connection:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, text in self.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    connection.putheader(name, text)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return self._hang_up() if trouble is Trouble.UNHEARD else self._answer(response)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on

    def _key(self) -> str:
        """By which the call is signed."""
        return self.headers.get("Authorization", "").partition("Credential=")[2].partition("/")[0]

    def _keys(self) -> bytes:
        ends = (datetime.now(UTC) + LIFE).strftime("%Y-%m-%dT%H:%M:%SZ")
        key = {"AccessKeyId": f"key{self.server.key}", "SecretAccessKey": "secret", "Token": "token"}
        return json.dumps(key | {"Expiration": ends}).encode()

    def _say(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        socket.close(self.connection.detach())

    def _answer(self, response: HTTPResponse) -> None:
        content = response.read()
        self.send_response_only(response.status)
        for name, text in response.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, text)
        length = response.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length)
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):  # clients hang up when they have read enough
            self.wfile.write(content)

    def _body(self) -> bytes:
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(iter(self._chunk, b""))
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _chunk(self) -> bytes:
        chunk = self.rfile.read(int(self.rfile.readline().split(b";")[0], 16))
        self.rfile.readline()
        return chunk

    def log_message(self, *words: object) -> None:
        """Quietly."""
