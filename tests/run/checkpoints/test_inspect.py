"""The viewer on what a real run left: its lake is copied away, and says the same as the run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from stagehold.settings import PROJECT

pytestmark = pytest.mark.spark


def test_a_copied_lake_answers_as_the_run_did(finished, tmp_path):
    lake = shutil.copytree(finished.settings.lake_uri, tmp_path / "copy")
    environment = {name: text for name, text in os.environ.items() if not name.startswith("STAGEHOLD_")}
    environment |= {"STAGEHOLD_HOME": str(tmp_path / "none"), "PYTHONPATH": str(PROJECT / "include")}

    def inspect(*words: str) -> dict[str, object]:
        command = [sys.executable, "-m", "stagehold", "inspect", str(lake), "--json", *words]
        return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)

    stages = {stage["name"]: stage for stage in inspect("--check")["stages"]}
    stored = {name: stage["amounts"].get("consumable", {}).get("partitions", 0) for name, stage in stages.items()}
    assert stored == {name: len(finished.records(name)) for name in stages}
    assert [stage["file_troubles"] for stage in stages.values()] == [[]] * len(stages)
    rows = inspect("--sql", "SELECT colour, total, numbers FROM summary ORDER BY colour")["rows"]
    assert [tuple(row.values()) for row in rows] == finished.expected()
    for name in (name for name, count in stored.items() if count):
        columns = inspect("--sql", f"FROM {name} LIMIT 1")["columns"]
        assert [column for column in columns if column.startswith("_")] == ["_partition"]
