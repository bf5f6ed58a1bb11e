from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stagehold.settings import PROJECT


@pytest.mark.slow
def test_the_site_is_built_without_a_broken_link_and_loads_nothing_from_elsewhere(tmp_path) -> None:
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    pages = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")]
    assert len(pages) > 40
    assert [page for page in pages if '<script src="http' in page or 'rel="stylesheet" href="http' in page] == []
