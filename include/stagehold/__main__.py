"""`python -m stagehold` is the `stagehold` command."""

from stagehold.cli.main import app

app()
