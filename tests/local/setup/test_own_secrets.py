"""Secrets that everybody knows are for this machine alone."""

from __future__ import annotations

import pytest

from stagehold.errors import KnownSecrets
from stagehold.local.setup.own_secrets import KNOWN, require_own_secrets

OWN = {name: f"own-{name}" for name in KNOWN}


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "[::1]"])
def test_on_this_machine_any_will_do(address: str) -> None:
    require_own_secrets({**KNOWN, "BIND_ADDRESS": address})


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.4", "", "localhost.example", "127.0.0.1.example"])
def test_where_others_come_in_each_has_to_be_its_own(address: str) -> None:
    require_own_secrets({**OWN, "BIND_ADDRESS": address})
    for name, known in KNOWN.items():
        for text in {known, ""}:
            with pytest.raises(KnownSecrets) as refused:
                require_own_secrets({**OWN, name: text, "BIND_ADDRESS": address})
            assert refused.value.names == (name,)
            assert f"own-{name}" not in str(refused.value)


def test_an_environment_without_them_is_refused() -> None:
    with pytest.raises(KnownSecrets) as refused:
        require_own_secrets({})
    assert refused.value.names == tuple(KNOWN)
