"""What is wrong with the address or the credentials of an Airflow elsewhere is told as that, with the setting."""

from __future__ import annotations

import json
import socket
import ssl
import time
from pathlib import Path

import httpx
import pytest
from tests.conftest import free_port
from tests.foreign_programs import listening, says, self_signed

from stagehold.errors import AirflowMisconfigured, AirflowRefused, AirflowSilent
from stagehold.local import airflow_client
from stagehold.local.airflow_client import AirflowClient
from stagehold.local.airflow_elsewhere import health

JSON, HTML = "application/json", "text/html"
NOT_FOUND = json.dumps({"detail": "Not Found"})


def answering(status: int, body: str, kind: str = JSON, **headers: str) -> AirflowClient:
    answer = httpx.Response(status, headers={"content-type": kind, **headers}, text=body)
    transport = httpx.MockTransport(lambda _: answer)
    return AirflowClient(httpx.Client(base_url="http://there", transport=transport), elsewhere=True)


@pytest.mark.parametrize(
    ("status", "body", "kind", "reason", "change"),
    [
        (401, '{"detail": "Invalid"}', JSON, "does not accept the credentials", "STAGEHOLD_AIRFLOW_TOKEN"),
        (404, NOT_FOUND, JSON, "it has no Stagehold", "Install the package stagehold"),
        (405, '{"detail": "Method Not Allowed"}', JSON, "it has no Stagehold", "Install the package stagehold"),
        (404, "<html>nginx</html>", HTML, "it has no Stagehold", "Install the package stagehold"),
        (200, "<html>Airflow</html>", HTML, "not Airflow's API", "STAGEHOLD_AIRFLOW_URL"),
        (200, "", JSON, "not Airflow's API", "STAGEHOLD_AIRFLOW_URL"),
    ],
)
def test_an_answer_that_shows_a_wrong_setting_names_it(
    status: int, body: str, kind: str, reason: str, change: str
) -> None:
    with pytest.raises(AirflowMisconfigured) as told:
        answering(status, body, kind).resume("nightly", "x")
    assert reason in told.value.reason
    assert change in told.value.change
    assert "http://there" in str(told.value)


def test_an_address_that_leads_elsewhere_is_told_with_the_place() -> None:
    with pytest.raises(AirflowMisconfigured, match="callers on to https://there/"):
        answering(308, "", location="https://there/").resume("nightly", "x")


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (403, '{"detail": "Forbidden"}', "STAGEHOLD_AIRFLOW_USER"),
        (404, '{"detail": "The DagRun with run_id x was not found"}', "The DagRun with run_id x was not found."),
        (409, '{"detail": "It goes on"}', "`stagehold status nightly/x` shows the run."),
        (503, '{"detail": "Busy"}', "`stagehold status` shows whether Airflow is well"),
    ],
)
def test_other_refusals_are_about_what_was_asked_for(status: int, body: str, told: str) -> None:
    with pytest.raises(AirflowRefused) as refused:
        answering(status, body).resume("nightly", "x")
    assert told in str(refused.value)


def test_a_login_that_is_refused_is_not_told_with_its_password() -> None:
    with (
        listening(says(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}")) as port,
        pytest.raises(AirflowMisconfigured, match="does not accept the credentials") as told,
    ):
        AirflowClient.logged_in(f"http://127.0.0.1:{port}", "ann", "s3cret", elsewhere=True)
    assert "s3cret" not in str(told.value)


def resume(url: str) -> None:
    with AirflowClient.with_token(url, "t", elsewhere=True) as client:
        client.resume("nightly", "x")


def test_who_is_away_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirflowSilent, match=r"Connection refused.*Run the command again"):
        resume(f"http://127.0.0.1:{free_port()}")
    with listening(lambda connection: connection.close()) as port, pytest.raises(AirflowSilent):
        resume(f"http://127.0.0.1:{port}")
    monkeypatch.setattr(airflow_client, "SECONDS", 0.2)
    with (
        listening(lambda connection: time.sleep(2)) as port,
        pytest.raises(AirflowSilent, match=r"nothing within 0\.2 s"),
    ):
        resume(f"http://127.0.0.1:{port}")


def test_a_host_that_nobody_knows_and_another_program_are_told_at_once() -> None:
    with pytest.raises(AirflowMisconfigured, match=r"no-such-host.invalid is not known.*STAGEHOLD_AIRFLOW_URL"):
        resume("http://no-such-host.invalid")
    with listening(says(b"+OK POP3 ready\r\n\r\n")) as port, pytest.raises(AirflowMisconfigured, match="API"):
        resume(f"http://127.0.0.1:{port}")


def test_tls_that_is_not_there_or_not_trusted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        listening(says(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port,
        pytest.raises(AirflowMisconfigured, match=r"does not speak TLS.*http:// in place of https://"),
    ):
        resume(f"https://127.0.0.1:{port}")
    key, certificate = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    healthy = b'HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n{"scheduler": {"status": "healthy"}}    '

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            says(healthy)(secured)

    with listening(answer) as port:
        with pytest.raises(AirflowMisconfigured, match=r"certificate is not accepted: self-signed.*SSL_CERT_FILE"):
            resume(f"https://localhost:{port}")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert health(f"https://localhost:{port}") == {"scheduler": "healthy"}
        with pytest.raises(AirflowMisconfigured, match="not accepted: IP address mismatch"):
            health(f"https://127.0.0.1:{port}")


@pytest.mark.parametrize("answer", [b"[]", b'{"a": 1}', b"null", b"<html>"])
def test_health_of_something_else_is_not_airflows(answer: bytes) -> None:
    text = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(answer), answer)
    with listening(says(text)) as port, pytest.raises(AirflowMisconfigured, match="not Airflow's API"):
        health(f"http://127.0.0.1:{port}")
