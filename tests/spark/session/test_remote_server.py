"""A server that somebody else runs: what is set wrongly is told at once, what comes back by itself is waited for."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from tests.conftest import free_port
from tests.foreign_programs import listening, says, self_signed

from stagehold.errors import InvalidSetting, SparkMisconfigured, SparkUnavailable
from stagehold.settings import Settings
from stagehold.spark.processes import python_environment
from stagehold.spark.server.server import running_server
from stagehold.spark.session import remote_server as remote
from stagehold.spark.session.remote_server import note_session, refusal, remote_server, require_answer, server_named
from stagehold.spark.session.sessions import open_session, release_session

AT_ONCE = 10.0  # seconds; who waits for a lost server does so for a minute
HTTP_ERROR = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"


@pytest.fixture(autouse=True)
def not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_looked_at", set())


def elsewhere(folder: Path, address: str) -> Settings:
    return Settings(home=str(folder / "home"), spark_remote=address)


def refused(settings: Settings) -> SparkMisconfigured:
    """The error that opening a session ends with, at once."""
    begun = time.monotonic()
    with pytest.raises(SparkMisconfigured) as raised:
        open_session(settings, str(uuid4()))
    assert time.monotonic() - begun < AT_ONCE
    return raised.value


# With a real server.


@pytest.mark.spark
@pytest.mark.parametrize("parameters", ["", ";token=wrong", ";token=a%2Fb@c", ";token=a/b@c=="])
def test_a_wrong_token_is_told_at_once_with_the_setting_and_without_the_token(
    tmp_path: Path, spark_settings: Settings, parameters: str
) -> None:
    error = refused(elsewhere(tmp_path, f"sc://localhost:{spark_settings.spark_port}/{parameters}"))
    assert "does not accept the token" in str(error)
    assert "STAGEHOLD_SPARK_REMOTE" in error.change
    assert not any(text in str(error) for text in ("wrong", "a/b", "a%2Fb"))


@pytest.mark.spark
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_tls_where_the_server_speaks_none_is_told_at_once(
    tmp_path: Path, spark_settings: Settings, spark_remote: str, host: str
) -> None:
    token = dict(server_named(spark_remote).parameters)["token"]
    error = refused(elsewhere(tmp_path, f"sc://{host}:{spark_settings.spark_port}/;token={token};use_ssl=true"))
    assert error.reason == "it does not speak TLS"
    assert token not in str(error)


@pytest.mark.spark
def test_a_right_address_opens_a_session_and_is_remembered(tmp_path: Path, spark_remote: str) -> None:
    settings, name = elsewhere(tmp_path, spark_remote), str(uuid4())
    assert open_session(settings, name).range(3).count() == 3
    assert release_session(settings, name)
    assert remote._note(server_named(spark_remote), settings).exists()


@pytest.mark.spark
def test_a_token_may_come_from_a_file_and_goes_without_tls_to_this_machine_alone(
    tmp_path: Path, spark_settings: Settings, spark_remote: str
) -> None:
    file = tmp_path / "token"
    file.write_text(dict(server_named(spark_remote).parameters)["token"] + "\n")
    here = elsewhere(tmp_path, f"sc://127.0.0.1:{spark_settings.spark_port}")
    assert "does not accept the token" in refused(here).reason
    with_file, name = replace(here, spark_token_file=str(file)), str(uuid4())
    assert open_session(with_file, name).range(3).count() == 3
    assert release_session(with_file, name)
    with pytest.raises(InvalidSetting, match="STAGEHOLD_SPARK_TOKEN_FILE"):
        open_session(replace(here, spark_token_file=str(tmp_path / "nothing")), name)
    assert "no-such" in refused(replace(here, spark_remote="sc://no-such.invalid", spark_token_file=str(file))).reason


@pytest.mark.spark
def test_a_token_file_that_is_replaced_some_seconds_after_the_servers_token_is_waited_for(
    tmp_path: Path, spark_settings: Settings, spark_remote: str
) -> None:
    file = tmp_path / "token"
    file.write_text("the one before")
    address = f"sc://127.0.0.1:{spark_settings.spark_port}"
    settings, name = replace(elsewhere(tmp_path, address), spark_token_file=str(file)), str(uuid4())
    assert "does not accept the token" in refused(settings).reason  # nobody has ever been let in with it
    note_session(server_named(address), settings)
    renewed = dict(server_named(spark_remote).parameters)["token"]
    later = threading.Timer(2, file.write_text, (renewed,))
    later.start()
    assert open_session(settings, name).range(3).count() == 3
    assert release_session(settings, name)
    file.write_text("another")
    with pytest.raises(SparkUnavailable, match=r"does not accept the token of .* now, and did before"):
        open_session(settings, name, wait_seconds=0)


@pytest.mark.spark
def test_a_session_over_tls_trusts_whom_grpc_is_told_to_trust(tmp_path: Path, spark_settings: Settings) -> None:
    """gRPC reads its authorities once in a process, so the session is opened in another one."""
    state = running_server(spark_settings)
    assert state is not None
    with tls_proxy(tmp_path, state.port) as (port, certificate):
        address = f"sc://localhost:{port}/;token={state.token};use_ssl=true"
        untrusted = refused(elsewhere(tmp_path, address))
        assert "certificate is not accepted" in untrusted.reason
        assert "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH" in untrusted.change
        assert opened_elsewhere(elsewhere(tmp_path, address), certificate) == "3"
        other_name = opened_elsewhere(elsewhere(tmp_path, address.replace("localhost", "127.0.0.1")), certificate)
        assert "SparkMisconfigured" in other_name
        assert "127.0.0.1" in other_name
        plain = refused(elsewhere(tmp_path, f"sc://127.0.0.1:{port}"))
        assert plain.reason == "it speaks TLS, and was spoken to without"
        assert "use_ssl=true" in plain.change


def opened_elsewhere(settings: Settings, certificate: Path) -> str:
    code = (
        "from stagehold.spark.session.sessions import open_session, release_session; "
        "from stagehold.settings import load_settings; from uuid import uuid4; settings = load_settings(); "
        "name = str(uuid4()); print(open_session(settings, name).range(3).count()); release_session(settings, name)"
    )
    environment = {**python_environment(settings), "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(certificate)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return run.stdout.strip() or run.stderr.strip().splitlines()[-1]


@contextmanager
def tls_proxy(folder: Path, target: int) -> Iterator[tuple[int, Path]]:
    """A proxy that speaks TLS and HTTP/2 for a server, and its certificate, which is for localhost."""
    key, certificate = self_signed(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])

    def forward(connection: socket.socket) -> None:
        with (
            context.wrap_socket(connection, server_side=True) as client,
            socket.create_connection(("127.0.0.1", target)) as server,
        ):
            back = threading.Thread(target=pump, args=(server, client), daemon=True)
            back.start()
            pump(client, server)

    with listening(forward) as port:
        yield port, certificate


def pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


# With other programs.


@pytest.mark.parametrize(
    ("text", "shown"), [(HTTP_ERROR, "HTTP/1.1"), (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0"), (b"\0\0\0\1" * 4, "x01")]
)
@pytest.mark.parametrize("parameters", ["", "/;use_ssl=true"])
def test_a_port_that_speaks_something_else_is_told_at_once(
    tmp_path: Path, text: bytes, shown: str, parameters: str
) -> None:
    with listening(says(text)) as port:
        error = refused(elsewhere(tmp_path, f"sc://127.0.0.1:{port}{parameters}"))
    if parameters:
        assert error.reason == "it does not speak TLS"
        assert "Take `use_ssl=true` out of STAGEHOLD_SPARK_REMOTE" in error.change
    else:
        assert "no Spark Connect server" in error.reason
        assert shown in error.reason
        assert "15002" in error.change


def test_a_port_of_tls_that_is_no_http_2_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(certificate))
    with listening(lambda connection: context.wrap_socket(connection, server_side=True).close()) as port:
        assert "not HTTP/2" in refused(elsewhere(tmp_path, f"sc://localhost:{port}/;use_ssl=true")).reason
        monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(tmp_path / "nothing.pem"))
        with pytest.raises(InvalidSetting, match="GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"):
            open_session(elsewhere(tmp_path, f"sc://localhost:{port}/;use_ssl=true"), str(uuid4()))


@pytest.mark.parametrize("host", ["no-such-host.invalid", "two..dots", "x" * 70])
def test_a_host_that_nobody_knows_is_told_at_once_and_waited_for_once_it_was_known(tmp_path: Path, host: str) -> None:
    settings = elsewhere(tmp_path, f"sc://{host}/;token=secret")
    error = refused(settings)
    assert f"the host {host} is not known" in error.reason
    assert "secret" not in str(error)
    note_session(remote_server(settings), settings)
    with pytest.raises(SparkUnavailable, match="is not known now"):
        open_session(settings, str(uuid4()), wait_seconds=0)


@pytest.mark.parametrize("how", ["nobody", "closes", "silent"])
@pytest.mark.parametrize("parameters", ["", "/;use_ssl=true"])
def test_what_may_come_back_by_itself_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, parameters: str
) -> None:
    """Nobody listens; a proxy whose server is gone; a server that is frozen."""
    monkeypatch.setattr(remote, "SECONDS", 0.3)
    ways: dict[str, Callable[[socket.socket], None]] = {
        "closes": lambda connection: connection.close(),
        "silent": lambda connection: time.sleep(3),
    }
    with listening(ways.get(how, ways["closes"])) as port:
        at = free_port() if how == "nobody" else port
        server = server_named(f"sc://127.0.0.1:{at}{parameters}")
        with pytest.raises(SparkUnavailable, match="STAGEHOLD_SPARK_REMOTE"):
            require_answer(server, elsewhere(tmp_path, ""))


@pytest.mark.parametrize(
    "setting",
    [
        "localhost",
        "http://localhost:15002",
        "sc://",
        "sc://:15002",
        "sc://host:port",
        "sc://host:70000",
        "sc://host:0",
        "sc://host/path",
        "sc://host/;token",
        "sc://host/;=secret",
        "sc://user:secret@host",
        "sc://host/;use_ssl=yes",
        "sc://host:15002/;token=secret;use_ssl=1",
        "sc://ho st",
        "sc://host?token=secret",
    ],
)
def test_an_address_that_is_none_is_refused_without_its_token(setting: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        server_named(setting)
    assert "STAGEHOLD_SPARK_REMOTE" in str(raised.value)
    assert not any(shown in str(raised.value) for shown in ("token=secret", ":secret@"))


@pytest.mark.parametrize("token", ["plain", "a/b", "a@b:c", 'a"b', "a=b==", "a%b", "a b", "ü?#&"])
def test_a_token_may_hold_any_character_but_a_semicolon(token: str) -> None:
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    name = str(uuid4())
    built = DefaultChannelBuilder(server_named(f"sc://host:1/;token={token}").url(name))
    assert (built.token, built.userId, built.session_id, built.endpoint) == (token, "stagehold", name, "host:1")


def test_what_else_an_address_says_reaches_pyspark() -> None:
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    server = server_named("sc://[::1]/;user_id=ann;use_ssl=true;x-route=blue%2Fgreen")
    built = DefaultChannelBuilder(server.url(str(uuid4())))
    assert (built.endpoint, built.userId, built.use_ssl) == ("[::1]:15002", "ann", True)
    assert ("x-route", "blue/green") in list(built.metadata())
    assert server.secure


@pytest.mark.parametrize(
    ("address", "secure"),
    [
        ("sc://host", False),
        ("sc://host/;token=t", True),
        ("sc://host/;token=t;use_ssl=false", False),
        ("sc://localhost/;token=t", False),
        ("sc://127.0.0.1/;token=t", False),
        ("sc://[::1]/;token=t", False),
        ("sc://127.0.0.1/;token=t;use_ssl=true", True),
        ("sc://10.0.0.1/;token=t", True),
    ],
)
def test_a_token_is_sent_by_tls_unless_it_stays_here_or_somebody_says_otherwise(address: str, secure: bool) -> None:
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    server = server_named(address)
    assert server.secure == secure
    built = DefaultChannelBuilder(server.url(str(uuid4())))
    assert built.secure == secure
    header = [text for name, text in built.metadata() if name == "authorization"]
    assert header == (["Bearer t"] if "token" in address and not secure else [])


def test_where_grpcs_authorities_lie_is_known() -> None:
    assert remote._context().get_ca_certs() or os.environ.get(remote.ROOTS)


def test_a_token_that_was_renewed_is_waited_for_where_a_file_gives_it_and_the_server_was_known(tmp_path: Path) -> None:
    from_file = replace(elsewhere(tmp_path, "sc://host"), spark_token_file=str(tmp_path / "token"))
    server = server_named("sc://host")
    assert isinstance(refusal(server, "UNAUTHENTICATED", from_file), SparkMisconfigured)
    note_session(server, from_file)
    assert isinstance(refusal(server, "UNAUTHENTICATED", from_file), SparkUnavailable)
    assert isinstance(refusal(server, "PERMISSION_DENIED", from_file), SparkMisconfigured)
    in_address = replace(from_file, spark_remote="sc://host/;token=secret")
    assert isinstance(refusal(server, "UNAUTHENTICATED", in_address), SparkMisconfigured)


@pytest.mark.parametrize("left", [None, ""], ids=["missing", "empty"])
def test_a_token_file_that_gave_a_session_before_is_waited_for_while_it_has_no_token(
    tmp_path: Path, left: str | None
) -> None:
    file, address = tmp_path / "token", "sc://host"
    settings = replace(elsewhere(tmp_path, address), spark_token_file=str(file))
    if left is not None:
        file.write_text(left)
    with pytest.raises(InvalidSetting, match="STAGEHOLD_SPARK_TOKEN_FILE"):
        remote_server(settings)
    note_session(server_named(address), settings)
    with pytest.raises(SparkUnavailable, match="STAGEHOLD_SPARK_TOKEN_FILE"):
        remote_server(settings)
    with pytest.raises(InvalidSetting, match="another"):  # from which nobody has ever been let in
        remote_server(replace(settings, spark_token_file=str(tmp_path / "another")))
    file.write_text("renewed\n")
    assert dict(remote_server(settings).parameters)["token"] == "renewed"


@pytest.mark.spark
def test_a_session_waits_for_a_token_file_that_is_away_while_its_volume_is_renewed(
    tmp_path: Path, spark_settings: Settings, spark_remote: str
) -> None:
    file, token = tmp_path / "token", dict(server_named(spark_remote).parameters)["token"]
    address = f"sc://127.0.0.1:{spark_settings.spark_port}"
    settings, name = replace(elsewhere(tmp_path, address), spark_token_file=str(file)), str(uuid4())
    note_session(server_named(address), settings)
    assert not release_session(settings, name)  # by an attempt that ends meanwhile
    threading.Timer(2, file.write_text, (token,)).start()
    assert open_session(settings, name).range(3).count() == 3
    assert release_session(settings, name)


def test_two_homes_remember_apart(tmp_path: Path) -> None:
    server, one = server_named("sc://host"), elsewhere(tmp_path, "sc://host")
    note_session(server, one)
    assert not remote._note(server, replace(one, home=str(tmp_path / "other"))).exists()
