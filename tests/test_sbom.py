"""The list of what a release is made of has everything that is pinned."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tools.sbom import JARS, LOCK, sbom

from stagehold.settings import PROJECT


def test_everything_that_is_pinned_is_in_it_once_with_all_its_hashes(tmp_path: Path) -> None:
    file = tmp_path / "build" / "sbom.json"
    subprocess.run([sys.executable, "tools/sbom.py", str(file)], cwd=PROJECT, check=True, capture_output=True)
    made = json.loads(file.read_text())
    components = made["components"]
    packages = [each for each in components if each["purl"].startswith("pkg:pypi/")]
    assert len(packages) == len(re.findall(r"^[\w.-]+==", LOCK.read_text(), re.MULTILINE)) > 100
    assert len(components) - len(packages) == len(JARS.read_text().splitlines())
    assert sum(len(each["hashes"]) for each in packages) == LOCK.read_text().count("--hash=sha256:")
    assert len({each["bom-ref"] for each in components}) == len(components)
    licensed = [each for each in packages if "licenses" in each]
    assert len(licensed) > len(packages) / 2


def test_a_version_and_its_hashes_are_those_of_the_lock() -> None:
    hashes = f"    --hash=sha256:{'a' * 64} \\\n    --hash=sha256:{'b' * 64}\n"
    lock = f"Some_Package==1.2 ; python_version < '3.12' \\\n{hashes}"
    jars = f"{'c' * 64}  delta-spark_4.2_2.13-4.4.0.jar\n"
    package, jar = sbom(f"# via\n{lock}    # via x\n", jars, "0.5")["components"]
    assert (package["purl"], len(package["hashes"])) == ("pkg:pypi/some-package@1.2", 2)
    assert (jar["name"], jar["version"]) == ("delta-spark_4.2_2.13", "4.4.0")
