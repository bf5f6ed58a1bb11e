"""`python -m stagehold` is the `stagehold` command."""

from __future__ import annotations

from stagehold.cli.main import app

app(prog_name="stagehold")
