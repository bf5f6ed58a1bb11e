"""What is installed here, of what a run depends on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("stagehold", "apache-airflow", "pyspark", "delta-spark", "deltalake", "great-expectations")


@dataclass(frozen=True)
class InstalledVersion:
    """Of the api-server's environment; workers elsewhere may have others."""

    package: str
    version: str


@cache
def installed_versions() -> tuple[InstalledVersion, ...]:
    """Read from what was installed: nothing is imported."""
    return tuple(_installed())


def _installed() -> Iterator[InstalledVersion]:
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            yield InstalledVersion(package, version(package))
