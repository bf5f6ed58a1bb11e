"""`python -m stagehold.local.setup.own_secrets`: has each secret of docker-compose.yaml a value of its own?

On this machine alone the values of .env.example will do. Where others reach the containers, whoever knows this
repository could log in, read the lake or sign a token.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from ipaddress import ip_address

from stagehold.errors import KnownSecrets

FOR_TRYING_OUT = "for-trying-out-only-set-your-own-before-anyone-else-can-reach-it"
# As .env.example has them; an empty one is as known.
KNOWN: Mapping[str, str] = {
    "AIRFLOW_PASSWORD": "admin",
    "AIRFLOW_SECRET_KEY": FOR_TRYING_OUT,
    "AIRFLOW_JWT_SECRET": FOR_TRYING_OUT,
    "AIRFLOW_FERNET_KEY": "",
    "POSTGRES_PASSWORD": "stagehold",
    "OBJECT_STORE_PASSWORD": "stagehold-lake",
}
BIND_ADDRESS = "BIND_ADDRESS"


def require_own_secrets(environment: Mapping[str, str] = os.environ) -> None:
    """:raises KnownSecrets: others reach the containers, and some secrets are those of the example."""
    address = environment.get(BIND_ADDRESS, "")
    known = [name for name, text in KNOWN.items() if environment.get(name, "") in ("", text)]
    if known and not _only_here(address):
        raise KnownSecrets(address, known)


def _only_here(address: str) -> bool:
    """An address that is none, such as a name or nothing, may be reached from anywhere."""
    try:
        return ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


if __name__ == "__main__":
    try:
        require_own_secrets()
    except KnownSecrets as error:
        sys.exit(str(error))
