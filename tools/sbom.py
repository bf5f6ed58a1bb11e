"""Writes what a release is made of (CycloneDX 1.6, JSON), from the lock and the list of JARs: `make sbom` calls it.

A scanner of one's own reads it and says what is known of each version. Nothing is asked of the network here, so it is
the same wherever it is made: what is written is what is pinned, and the licences of what is installed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from stagehold.settings import PROJECT

LOCK = PROJECT / "requirements.txt"
JARS = PROJECT / "include" / "stagehold" / "spark" / "server" / "jars.sha256"
PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?P<rest>(?:.*\\\n)*.*)$", re.MULTILINE)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
JAR = re.compile(r"^(?P<hash>[0-9a-f]{64})  (?P<name>.+?)-(?P<version>\d[\w.-]*)\.jar$", re.MULTILINE)


def sbom(lock: str, jars: str, version: str) -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "stagehold", "version": version}},
        "components": [*_packages(lock), *_jars(jars)],
    }


def _packages(lock: str) -> Iterator[dict[str, Any]]:
    for found in PINNED.finditer(lock):
        name, version = re.sub(r"[-_.]+", "-", found["name"]).lower(), found["version"]
        yield {
            **_component(name, version, f"pkg:pypi/{name}@{version}", HASH.findall(found["rest"])),
            **_licence(found["name"]),
        }


def _jars(jars: str) -> Iterator[dict[str, Any]]:
    """The list has no group of a JAR, so its hash is what it is found by."""
    for found in JAR.finditer(jars):
        name, version, digest = found["name"], found["version"], found["hash"]
        yield _component(name, version, f"pkg:generic/{name}@{version}?checksum=sha256:{digest}", [digest])


def _component(name: str, version: str, purl: str, hashes: list[str]) -> dict[str, Any]:
    """A package has a hash for each of its files."""
    files = [{"alg": "SHA-256", "content": each} for each in hashes]
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "hashes": files}


def _licence(name: str) -> dict[str, Any]:
    """As the package itself says it, where it is installed: an expression, or else the first line of its own text."""
    try:
        said = metadata(name)
    except PackageNotFoundError:  # of another system or Python than this one
        return {}
    if "License-Expression" in said:
        return {"licenses": [{"expression": said["License-Expression"]}]}
    text = said["License"].strip().partition("\n")[0] if "License" in said else ""
    return {"licenses": [{"license": {"name": text}}]} if text and len(text) < 80 else {}


if __name__ == "__main__":
    pinned = re.search(r'^version = "(.+)"', (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert pinned, "pyproject.toml has a version"
    file = Path(sys.argv[1])
    file.parent.mkdir(parents=True, exist_ok=True)
    made = sbom(LOCK.read_text(), JARS.read_text(), pinned[1])
    file.write_text(json.dumps(made, indent=2) + "\n")
    print(f"{file}: {len(made['components'])} components")
