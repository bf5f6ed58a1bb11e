"""`stagehold savepoint` on runs that attempts made, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.run.checkpoints.paper_run import INTERVAL, LEFT, PARTITIONS, PIPELINE, RUN, PaperRun
from typer.testing import CliRunner, Result

from stagehold.cli.main import app

pytestmark = pytest.mark.slow


@pytest.fixture
def paper(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    splits = [f"${{lake}}/raw/{partition}.parquet" for partition in range(PARTITIONS)]
    stage = {"job": f"paper_jobs:{LEFT}", "source": {"kind": "parquet", "splits": splits}}
    declaration = {"pipeline": PIPELINE, "verify": "never", "stages": {LEFT: stage}}
    Path(run.settings.pipelines, "paper.yaml").write_text(yaml.safe_dump(declaration))
    run.work()
    return run


def call(run: PaperRun, *words: str, home: str | None = None) -> Result:
    environment = {**run.settings.environment, **({"STAGEHOLD_HOME": home} if home else {})}
    return CliRunner().invoke(app, ["savepoint", *words], env=environment)


def answer(run: PaperRun, *words: str) -> dict[str, Any]:
    result = call(run, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_savepoint_is_made_shown_and_deleted(paper, tmp_path):
    assert "There are none." in call(paper, "list").stdout
    made = call(paper, "create", "--name", "kept", "--reason", "before the fix", "--by", "ann")
    assert made.stdout == f"savepoint kept is checkpoint 2 of run {RUN}\n"
    (listed,) = answer(paper, "list")["savepoints"]
    assert {"name": "kept", "created_by": "ann", "reason": "before the fix", "number": 2}.items() <= listed.items()
    assert Path(listed["manifest"]).is_file()
    shown = answer(paper, "show", "kept")
    assert shown["missing"] == {LEFT: []}
    assert shown["stages"][0]["consumable"] == PARTITIONS
    table = call(paper, "show", "kept").stdout
    assert all(word in table for word in ("before the fix", INTERVAL, LEFT, "manifest: "))
    assert call(paper, "dispose", "kept").stdout == "savepoint kept is gone\n"
    assert answer(paper, "list") == {"savepoints": []}


def test_the_checkpoints_of_a_run_name_its_savepoints(paper):
    answer(paper, "create", RUN, "--name", "kept")
    listed = CliRunner().invoke(app, ["checkpoints", "list"], env=dict(paper.settings.environment))
    assert "asked for: savepoint kept" in listed.stdout


def test_data_that_is_gone_is_named(paper):
    answer(paper, "create", "--name", "kept")
    some = next(Path(paper.settings.lake_uri, "stages").rglob("_partition=3/*.parquet"))
    some.unlink()
    assert answer(paper, "show", "kept")["missing"] == {LEFT: [3]}
    assert f"data of {LEFT} is gone for partitions 3" in call(paper, "show", "kept").stdout


def test_it_goes_to_another_lake_and_is_listed_there_as_imported(paper, tmp_path):
    answer(paper, "create", "--name", "kept")
    place, home = str(tmp_path / "exported"), str(tmp_path / "elsewhere")
    out = call(paper, "export", "kept", place)
    assert out.exit_code == 0, out.output
    assert f"savepoint kept is in {place}: " in out.stdout
    back = call(paper, "import", place, "--name", "theirs", home=home)
    assert back.exit_code == 0, back.output
    assert "(imported)" in call(paper, "list", home=home).stdout


REFUSED = [
    (("create", "--name", "a b"), "No savepoint can be called 'a b'. Allowed are letters"),
    (("create", "nobody", "--name", "kept"), "nobody"),
    (("create", "--name", "kept", "--stop"), "--stop"),
    (("show", "kept"), "kept"),
    (("dispose", "kept"), "kept"),
    (("import", "nowhere"), "it has no export.json"),
]


@pytest.mark.parametrize(("words", "text"), REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_what_cannot_be_done_says_why(paper, words, text):
    result = call(paper, *words)
    assert result.exit_code == 1
    assert text in result.output
    assert "Traceback" not in result.output
