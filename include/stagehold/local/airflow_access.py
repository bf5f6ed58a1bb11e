"""Which Airflow do commands speak to, and as whom?

What is set counts first; then the Airflow of `stagehold up`, while it runs; then, in Airflow's own processes and
containers, the one of Airflow's configuration, with whose key a token for some minutes is made.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stagehold.errors import AirflowMisconfigured, InvalidSetting
from stagehold.local.airflow_configuration import USER, admin_password, airflow_url
from stagehold.local.state import living_supervisor
from stagehold.settings import Settings

if TYPE_CHECKING:
    from stagehold.local.airflow_client import AirflowClient

URL, TOKEN, LOGIN, FILE = (
    "STAGEHOLD_AIRFLOW_URL",
    "STAGEHOLD_AIRFLOW_TOKEN",
    "STAGEHOLD_AIRFLOW_USER and STAGEHOLD_AIRFLOW_PASSWORD",
    "STAGEHOLD_AIRFLOW_CREDENTIALS",
)
TOKEN_USER = "__token__"  # noqa: S105  (its password is the token, as package indexes have it)
MADE_FOR_SECONDS = 600
# They may also end with _CMD or _SECRET, which say where the address is.
URL_VARIABLES = ("AIRFLOW__CORE__EXECUTION_API_SERVER_URL", "AIRFLOW__API__BASE_URL")
SIMPLE = "SimpleAuthManager"


@dataclass(frozen=True)
class AirflowAccess:
    """Where an Airflow is, and with what one is let in: a token, or a user and a password."""

    url: str
    elsewhere: bool
    token: str = ""
    user: str = ""
    password: str = ""

    def client(self) -> AirflowClient:
        """:raises AirflowMisconfigured, AirflowSilent: as they say."""
        from stagehold.local.airflow_client import AirflowClient

        if self.token:
            return AirflowClient.with_token(self.url, self.token, elsewhere=self.elsewhere)
        return AirflowClient.logged_in(self.url, self.user, self.password, elsewhere=self.elsewhere)


def airflow_client(settings: Settings) -> AirflowClient:
    """A client of the Airflow that commands speak to.

    :raises InvalidSetting: what is set of it is no address, or a file of credentials that others may read.
    :raises AirflowMisconfigured: it cannot be spoken to as it is set.
    """
    return airflow_access(settings).client()


def airflow_access(settings: Settings) -> AirflowAccess:
    url = url_elsewhere(settings)
    if url is None:
        return AirflowAccess(airflow_url(settings), elsewhere=False, user=USER, password=admin_password(settings))
    if settings.airflow_url or settings.airflow_token or settings.airflow_user or settings.airflow_credentials:
        return _set(url, settings)
    return AirflowAccess(url, elsewhere=True, token=_made_token(url))


def url_elsewhere(settings: Settings) -> str | None:
    """Where the Airflow is that commands speak to; None if that is the one of `stagehold up`."""
    if settings.airflow_url:
        return settings.airflow_url.rstrip("/")
    return None if _is_up(settings) else _configured_url()


def _configured_url() -> str | None:
    """Where Airflow's own configuration says that its api-server is, as its tasks reach it; None outside of Airflow.

    Airflow is asked only where it has something to say, as it takes seconds to import.
    """
    home = os.environ.get("AIRFLOW_HOME", "")
    file = os.environ.get("AIRFLOW_CONFIG") or (f"{home}/airflow.cfg" if home else "")
    named = any(name.startswith(variable) for variable in URL_VARIABLES for name in os.environ)
    if not named and not (file and Path(file).is_file()):
        return None
    from airflow.configuration import conf

    of_tasks = conf.get("core", "execution_api_server_url", fallback="") or ""
    return of_tasks.rstrip("/").removesuffix("/execution") or (conf.get("api", "base_url", fallback="") or None)


def _is_up(settings: Settings) -> bool:
    supervisor = living_supervisor(settings)
    return supervisor is not None and any(service.name != "spark" for service in supervisor.services)


def _set(url: str, settings: Settings) -> AirflowAccess:
    host = _host_of(url)
    if settings.airflow_token:
        return AirflowAccess(url, elsewhere=True, token=settings.airflow_token)
    user, password = settings.airflow_user, settings.airflow_password
    if not password:
        user, password = _of_file(host, user, settings)
    if not password:
        change = f"Set {TOKEN}, or {LOGIN}, or name a file of credentials in {FILE}."
        raise AirflowMisconfigured(url, "there are no credentials for it", change)
    if user == TOKEN_USER:
        return AirflowAccess(url, elsewhere=True, token=password)
    return AirflowAccess(url, elsewhere=True, user=user or USER, password=password)


def _host_of(url: str) -> str:
    """:raises InvalidSetting: the text is no address of a server, or has more in it than that."""
    try:
        parts = urlsplit(url)
        well = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # brackets, or a port that is no number
        well = False
    if not well or parts.query or parts.fragment:
        raise InvalidSetting(URL, _without_password(url), "http://HOST:PORT or https://HOST, with a path if it has one")
    if parts.username is not None:
        raise InvalidSetting(URL, _without_password(url), f"an address without a user; {LOGIN} name one")
    return str(parts.hostname)


def _of_file(host: str, user: str, settings: Settings) -> tuple[str, str]:
    """User and password for a host; empty if the file has none, or none of ``user``."""
    if not settings.airflow_credentials:
        return user, ""
    file = Path(settings.airflow_credentials)
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        if mode & 0o077:
            allowed = f"a file that only its owner may read, and its mode is {mode:04o}: `chmod 600 {file}`"
            raise InvalidSetting(FILE, str(file), allowed)
        found = netrc(file).authenticators(host)
    except NetrcParseError as error:
        raise InvalidSetting(FILE, str(file), f"lines as `machine HOST login USER password TEXT`; {error}") from None
    except OSError as error:
        raise InvalidSetting(FILE, str(file), f"a file that can be read: {error}") from None
    login, _, password = found or ("", "", "")
    return (login, password or "") if user in ("", login) else (user, "")


def _without_password(url: str) -> str:
    scheme, slashes, rest = url.partition("//")
    return f"{scheme}{slashes}***@{rest.rpartition('@')[2]}" if "@" in rest else url


def _made_token(url: str) -> str:
    """A token of an admin, signed with Airflow's key: who can read that key may do everything anyway.

    :raises AirflowMisconfigured: users are known to a database or a service, so only they have tokens.
    """
    from airflow.api_fastapi.app import get_auth_manager_cls

    manager = get_auth_manager_cls()
    if manager.__name__ != SIMPLE:
        change = f"Set {TOKEN}, or {LOGIN}, or name a file of credentials in {FILE}."
        raise AirflowMisconfigured(url, f"its {manager.__name__} lets only its own users in", change)
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    admin = SimpleAuthManagerUser(username="stagehold", role="admin")
    return str(manager().generate_jwt(admin, expiration_time_in_seconds=MADE_FOR_SECONDS))
