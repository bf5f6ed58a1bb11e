"""A Spark Connect server that somebody else runs: its address, and what answers there.

gRPC says of a wrong host, port, certificate or token what it says of a server that was killed: UNAVAILABLE. So before
the first call we look for ourselves. What is set wrongly is told at once; only what comes back by itself is waited for.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote, unquote

from stagehold.errors import InvalidSetting, SparkMisconfigured, SparkUnavailable
from stagehold.lake.store.location import path_safe
from stagehold.settings import Settings
from stagehold.spark.server.server_record import server_folder

DEFAULT_PORT = 15002
USER = "stagehold"  # a session is known by user and id: with one user for all, any process can release any session
SECONDS = 5.0  # for a connection, and for the first bytes of an answer
FORM = "sc://HOST:PORT/;token=TOKEN;use_ssl=true: only the host is needed, and parameters are NAME=VALUE"
SETTING, TOKEN_FILE = "STAGEHOLD_SPARK_REMOTE", "STAGEHOLD_SPARK_TOKEN_FILE"
ROOTS = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"  # gRPC's own: the authorities that it trusts instead of those it brings
# How every client of HTTP/2 begins, and the head of the frame with which every server of it answers.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4" + b"\0" * 5
FRAME_HEAD, SETTINGS_FRAME = 9, 4
TLS_ALERT = b"\x15\x03"
_ADDRESS = re.compile(r"sc://(?P<host>\[[0-9a-fA-F:.]+\]|[^/:;@?#\s\[\]]+)(:(?P<port>\d{1,5}))?(/(;(?P<more>.*))?)?")
_SECRET = re.compile(r"(token|authorization)=[^;]*", re.IGNORECASE)

# What of these calls says that no other try can help, beside that no server answers.
REFUSALS = {
    "UNAUTHENTICATED": (
        "it does not accept the token",
        f"Set the server's token in {SETTING} (sc://HOST:PORT/;token=TOKEN), or name its file in {TOKEN_FILE}.",
    ),
    "PERMISSION_DENIED": ("it does not let this user in", f"Set a token or user that may use it in {SETTING}."),
    "UNIMPLEMENTED": ("what answers is no Spark Connect server", f"Set the server's own address in {SETTING}."),
}

# Addresses at which this process has found a server that speaks as it should.
_looked_at: set[RemoteServer] = set()


@dataclass(frozen=True)
class RemoteServer:
    """What the setting says of a server. ``parameters`` are those of pyspark's, and headers for a proxy."""

    host: str
    port: int
    parameters: tuple[tuple[str, str], ...]

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def plain_host(self) -> str:
        return self.host.strip("[]")

    @property
    def secure(self) -> bool:
        """Whether TLS is spoken to it: with a token, too, unless it is on this machine or `use_ssl=false` is said."""
        known = dict(self.parameters)
        return known.get("use_ssl", str("token" in known and not self.is_here).lower()) == "true"

    @property
    def is_here(self) -> bool:
        if self.host == "localhost":
            return True
        with suppress(ValueError):
            return ip_address(self.plain_host).is_loopback
        return False

    def url(self, session_id: str) -> str:
        """The address of a session in pyspark's form, which knows a token without TLS as a header only."""
        written = {"user_id": USER, **dict(self.parameters), "session_id": session_id}
        if "token" in written and not self.secure:
            written["authorization"] = f"Bearer {written.pop('token')}"
        return f"sc://{self.address}/;" + ";".join(f"{name}={quote(text, safe='')}" for name, text in written.items())


def remote_server(settings: Settings) -> RemoteServer:
    """The server that the settings name, with the token of the file if they name one.

    :raises InvalidSetting: they name no server, or the file has no token.
    :raises SparkUnavailable: it has none now, and this home was let in with it before: its volume is being renewed.
    """
    server = server_named(settings.spark_remote)
    if not _has_token_file(settings):
        return server
    file = settings.spark_token_file
    try:
        token, problem = Path(file).read_text().strip(), "it is empty"
    except OSError as error:
        token, problem = "", str(error)
    if token:
        return replace(server, parameters=(*server.parameters, ("token", token)))
    with suppress(OSError):
        if _note(server, settings).read_text() == file:
            raise SparkUnavailable(f"{file} ({TOKEN_FILE}) has no token now, and had one before: {problem}.")
    raise InvalidSetting(TOKEN_FILE, file, f"a file with a token: {problem}")


def _has_token_file(settings: Settings) -> bool:
    """Whether the file counts: a token in the address comes first."""
    return bool(settings.spark_token_file) and "token" not in dict(server_named(settings.spark_remote).parameters)


def server_named(remote: str) -> RemoteServer:
    """Read the setting. Texts may be written as in any address (``%2F``) or as they are.

    :raises InvalidSetting: it names no server; without a token in its text.
    """
    found = _ADDRESS.fullmatch(remote)
    pairs = [part.partition("=") for part in (found["more"] or "").split(";") if part] if found else []
    known = {name: unquote(text) for name, equals, text in pairs if name and equals}
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if not found or len(known) < len(pairs) or not 0 < port < 1 << 16:
        raise InvalidSetting(SETTING, without_token(remote), FORM)
    if (tls := known.get("use_ssl", "false")) not in ("true", "false"):
        raise InvalidSetting(SETTING, without_token(remote), f"true or false for use_ssl, which is {tls!r}")
    return RemoteServer(found["host"], port, tuple(known.items()))


def without_token(remote: str) -> str:
    """The setting as it may be shown."""
    return re.sub(r"//[^/]*@", "//***@", _SECRET.sub(r"\1=***", remote))


def require_answer(server: RemoteServer, settings: Settings) -> None:
    """See that a server listens at the address and speaks what we do; once in a process what it speaks.

    :raises SparkMisconfigured: the address, or how the server is spoken to, has to be set otherwise.
    :raises SparkUnavailable: a server may answer there later.
    """
    with _connected(server, settings) as connection:
        if server in _looked_at:
            return
        connection.settimeout(SECONDS)
        if server.secure:
            _shake_hands(connection, server)
        else:
            _greet(connection, server)
    _looked_at.add(server)


def note_session(server: RemoteServer, settings: Settings) -> None:
    """Keep that this home has had a session there, and by which file with a token. If the server's name is unknown
    later, or the file is away, that is for a while.
    """
    with suppress(OSError):
        note = _note(server, settings)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(settings.spark_token_file)


def refusal(server: RemoteServer, status: str, settings: Settings) -> SparkMisconfigured | SparkUnavailable | None:
    """What a status of gRPC's says of how the server is set; None if it says nothing of that.

    A file with a token is replaced some time before or behind the server's own, which comes right by itself.
    """
    said = REFUSALS.get(status)
    if status == "UNAUTHENTICATED" and _has_token_file(settings) and _note(server, settings).exists():
        file = f"{settings.spark_token_file} ({TOKEN_FILE})"
        return SparkUnavailable(f"{server.address} does not accept the token of {file} now, and did before.")
    return SparkMisconfigured(server.address, *said) if said else None


def _note(server: RemoteServer, settings: Settings) -> Path:
    return server_folder(settings) / "reached" / path_safe(server.address)


def _connected(server: RemoteServer, settings: Settings) -> socket.socket:
    try:
        return socket.create_connection((server.plain_host, server.port), timeout=SECONDS)
    except (socket.gaierror, UnicodeError) as error:  # no name at all, or one that cannot be
        lasting = not (isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN)
        # A container that is started anew has no name for a while.
        if lasting and not _note(server, settings).exists():
            reason = f"the host {server.host} is not known here ({error})"
            raise SparkMisconfigured(server.address, reason, f"Set the right host in {SETTING}.") from None
        raise SparkUnavailable(f"the host {server.host} ({SETTING}) is not known now: {error}.") from None
    except OSError as error:
        raise SparkUnavailable(f"{server.address} ({SETTING}) does not answer: {error}.") from None


def _greet(connection: socket.socket, server: RemoteServer) -> None:
    """Begin as a client without TLS."""
    said = _first_bytes(connection, server)
    if len(said) == FRAME_HEAD and said[3] == SETTINGS_FRAME:
        return
    if said.startswith(TLS_ALERT) or (not said and _speaks_tls(server)):
        change = f"Add `use_ssl=true` to {SETTING} (sc://HOST:PORT/;use_ssl=true)."
        raise SparkMisconfigured(server.address, "it speaks TLS, and was spoken to without", change)
    if said:
        raise _other_program(server, f"its answer begins with {said!r}")
    raise SparkUnavailable(
        f"{server.address} ({SETTING}) closes connections without a word: its server is not there behind a proxy, or "
        "it is another kind of server."
    )


def _first_bytes(connection: socket.socket, server: RemoteServer) -> bytes:
    """What is said to a client that begins; nothing where the connection is closed."""
    said = b""
    try:
        connection.sendall(PREFACE)
        while len(said) < FRAME_HEAD and (more := connection.recv(FRAME_HEAD - len(said))):
            said += more
    except TimeoutError:
        if not said:
            raise SparkUnavailable(f"{server.address} ({SETTING}) takes connections and says nothing.") from None
    except OSError:
        pass
    return said


def _shake_hands(connection: socket.socket, server: RemoteServer) -> None:
    """Begin as a client with TLS, which trusts whom gRPC trusts."""
    try:
        with _context().wrap_socket(connection, server_hostname=server.plain_host) as secured:
            if secured.selected_alpn_protocol() is None:
                raise _other_program(server, "it speaks TLS, but not HTTP/2")
    except ssl.SSLCertVerificationError as error:
        reason = f"its certificate is not accepted: {error.verify_message}"
        raise SparkMisconfigured(server.address, reason, _how_to_trust(server)) from None
    except TimeoutError:
        raise SparkUnavailable(f"{server.address} ({SETTING}) takes connections and says nothing.") from None
    except OSError as error:  # `ssl.SSLError` is one
        if (isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER") or _speaks_plainly(server):
            raise SparkMisconfigured(server.address, "it does not speak TLS", _how_without_tls(server)) from None
        raise SparkUnavailable(f"{server.address} ({SETTING}) broke off as TLS began: {error}.") from None


def _how_to_trust(server: RemoteServer) -> str:
    return (
        f"Have {ROOTS} name a file with the certificate of the authority that signed it (PEM), have the server use one "
        f"that is valid for {server.plain_host}, or set the host for which it is valid in {SETTING}."
    )


def _how_without_tls(server: RemoteServer) -> str:
    if server.is_here or "token" not in dict(server.parameters):
        return f"Take `use_ssl=true` out of {SETTING}."
    return (
        "With a token, TLS is spoken to every other machine. Have a proxy in front of the server speak it, and name "
        f"the proxy in {SETTING}; or add `use_ssl=false` to it where nobody else can listen to the network."
    )


def _other_program(server: RemoteServer, what: str) -> SparkMisconfigured:
    return SparkMisconfigured(
        server.address,
        f"what listens there is no Spark Connect server: {what}",
        f"Set the port of the server in {SETTING}; by default it is {DEFAULT_PORT}.",
    )


def _speaks_tls(server: RemoteServer) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((server.plain_host, server.port), timeout=SECONDS) as connection,
            context.wrap_socket(connection),
        ):
            return True
    except OSError:
        return False


def _speaks_plainly(server: RemoteServer) -> bool:
    try:
        with socket.create_connection((server.plain_host, server.port), timeout=SECONDS) as connection:
            return _first_bytes(connection, server)[3:4] == bytes([SETTINGS_FRAME])
    except (OSError, SparkUnavailable):
        return False


def _context() -> ssl.SSLContext:
    import grpc  # type: ignore[import-untyped]

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    brought = Path(grpc.__file__).parent / "_cython" / "_credentials" / "roots.pem"
    roots = os.environ.get(ROOTS) or str(brought)
    try:
        context.load_verify_locations(roots)
    except OSError as error:
        raise InvalidSetting(ROOTS, roots, f"a file of certificates (PEM): {error}") from None
    context.set_alpn_protocols(["h2"])
    return context
