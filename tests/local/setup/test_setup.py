from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stagehold.spark.server.java import pinned_jars

MIRROR_WITH_NOTHING = """<ivysettings><settings defaultResolver="mirror"/><resolvers>
<ibiblio name="mirror" m2compatible="true" root="file://{folder}/nothing/"/></resolvers></ivysettings>"""


def setup(**settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stagehold.local.setup"]
    return subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=60, check=False)


def test_a_second_set_up_says_nothing_and_takes_no_time() -> None:
    before = time.monotonic()
    answer = setup()
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    assert time.monotonic() - before < 3


@pytest.mark.slow
def test_a_company_mirror_is_asked_instead_of_the_public_repository(tmp_path: Path) -> None:
    mirror = tmp_path / "ivysettings.xml"
    mirror.write_text(MIRROR_WITH_NOTHING.format(folder=tmp_path))
    answer = setup(STAGEHOLD_CACHE=str(tmp_path / "cache"), STAGEHOLD_IVY_SETTINGS=str(mirror))
    assert answer.returncode == 1
    assert f"Not there: {next(iter(pinned_jars()))}" in answer.stderr
    assert "Traceback" not in answer.stderr
