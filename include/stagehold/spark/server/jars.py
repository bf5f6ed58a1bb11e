"""The JARs that Spark gets on top of the pyspark wheel: which ones, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stagehold.errors import JarsUnusable
from stagehold.settings import Settings

IVY_FILE = Path(__file__).with_name("ivy.xml")
CHECKSUM_FILE = Path(__file__).with_name("jars.sha256")


def pinned_jars() -> Mapping[str, str]:
    """File name to SHA-256 of every JAR, as pinned with this version of Stagehold."""
    pairs = (line.split() for line in CHECKSUM_FILE.read_text().splitlines())
    return {name: digest for digest, name in pairs}


def jar_folder(settings: Settings) -> Path:
    return Path(settings.cache) / "jars"


def jar_paths(settings: Settings) -> tuple[Path, ...]:
    """Every pinned JAR by its full path, for ``spark.jars``; refuses when one is not there.

    Looks at names only: the contents were checked when ``make setup`` put them there.
    The folder may hold JARs of other versions for other checkouts, so never use all that it holds.
    """
    paths = tuple(jar_folder(settings) / name for name in pinned_jars())
    missing = tuple(path.name for path in paths if not path.exists())
    if missing:
        raise JarsUnusable(folder=str(jar_folder(settings)), missing=missing)
    return paths
