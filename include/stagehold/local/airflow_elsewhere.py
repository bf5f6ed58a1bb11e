"""What an Airflow that somebody else runs says of its address and credentials, and how it is.

A wrong host, port, certificate or password is told as such, with the setting to change; what comes back by itself is
an Airflow that is silent.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from stagehold.errors import AirflowMisconfigured, AirflowSilent

SETTING = "STAGEHOLD_AIRFLOW_URL"
CREDENTIALS = (
    "Set STAGEHOLD_AIRFLOW_TOKEN, or STAGEHOLD_AIRFLOW_USER and STAGEHOLD_AIRFLOW_PASSWORD, or mend what "
    "STAGEHOLD_AIRFLOW_CREDENTIALS says of this host."
)
OURS = "/stagehold/"
NOT_THERE = (httpx.codes.NOT_FOUND, httpx.codes.METHOD_NOT_ALLOWED)  # the latter where Airflow's pages take all paths
HEALTH, HEALTH_SECONDS, ASKED = "/api/v2/monitor/health", 5, "say how it is"


def unspeakable(error: Exception, url: str) -> AirflowMisconfigured | None:
    """What a call that was not answered says of the address; None if an Airflow may answer there later."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            change = (
                "Have SSL_CERT_FILE name a file with the certificate of the authority that signed it (PEM), or set the "
                f"host for which it is valid in {SETTING}."
            )
            return AirflowMisconfigured(url, f"its certificate is not accepted: {cause.verify_message}", change)
        if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
            return AirflowMisconfigured(url, "it does not speak TLS", f"Set http:// in place of https:// in {SETTING}.")
        if isinstance(cause, UnicodeError) or (isinstance(cause, socket.gaierror) and cause.errno != socket.EAI_AGAIN):
            host = urlsplit(url).hostname
            return AirflowMisconfigured(url, f"the host {host} is not known here", f"Set the right host in {SETTING}.")
    if isinstance(error, httpx.RemoteProtocolError) and "illegal" in str(error):
        return no_api(url)
    return None


def misunderstood(answer: httpx.Response, path: str, url: str) -> AirflowMisconfigured | None:
    """What a refusal says of address and credentials; None if it is about what was asked for."""
    if answer.is_redirect:
        change = f"Set in {SETTING} the address that it is reached at in the end."
        return AirflowMisconfigured(url, f"it sends callers on to {answer.headers.get('location', '')}", change)
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        return AirflowMisconfigured(url, "it does not accept the credentials (401 Unauthorized)", CREDENTIALS)
    if answer.status_code not in NOT_THERE or not _of_nobody(answer):
        return None
    if path.startswith(OURS):
        change = "Install the package stagehold where its api-server runs, in the version of these commands."
        return AirflowMisconfigured(url, "it has no Stagehold", change)
    if path.startswith("/auth/"):
        change = f"Set STAGEHOLD_AIRFLOW_TOKEN, if its users get tokens otherwise; or the right address in {SETTING}."
        return AirflowMisconfigured(url, "it gives no token for a user and a password", change)
    return None


def no_api(url: str) -> AirflowMisconfigured:
    change = f"Set the address of Airflow's api-server in {SETTING}, with its path if it has one."
    return AirflowMisconfigured(url, "what answers there is not Airflow's API", change)


def health(url: str) -> Mapping[str, str]:
    """How an Airflow says that its parts are, by their names; nobody has to log in for that.

    :raises AirflowMisconfigured: it cannot be spoken to as it is set.
    :raises AirflowSilent: nobody answers.
    """
    try:
        answer = httpx.get(f"{url}{HEALTH}", timeout=HEALTH_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise unspeakable(error, url) or AirflowSilent(
            url, ASKED, str(error) or "nothing came", elsewhere=True
        ) from None
    if not answer.is_success:
        raise misunderstood(answer, HEALTH, url) or no_api(url)
    try:
        parts: Mapping[str, Any] = answer.json()
        return {name: str(part["status"]) for name, part in parts.items() if part and part.get("status")}
    except (ValueError, TypeError, AttributeError):
        raise no_api(url) from None


def _of_nobody(answer: httpx.Response) -> bool:
    """Whether no route has given the answer: that of a route says what is not there."""
    try:
        return bool(answer.json().get("detail") in ("Not Found", "Method Not Allowed"))
    except (ValueError, AttributeError):
        return True


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
