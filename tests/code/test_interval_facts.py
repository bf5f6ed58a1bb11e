from __future__ import annotations

import pytest

from stagehold.code.stage_code import looks_at_interval

HELPERS = """
def when(ctx):
    return ctx.logical_date

def plain(frame):
    return frame.select("interval")
"""

CASES = [
    ("return source", False),
    ("return source.filter(ctx.params['x'])", False),
    ("return helpers.plain(source)", False),
    ("return source, ctx.interval", True),
    ("return source, ctx.seed", True),
    ("return source, helpers.when(ctx)", True),
    ("return source, getattr(ctx, 'inter' + 'val')", True),
    ("return source, vars(ctx)", True),
    ("return source, dataclasses.asdict(ctx)", True),
    ("return source, ctx.__dict__", True),
]


@pytest.mark.parametrize(("body", "looks"), CASES, ids=[row[0] for row in CASES])
def test_what_looks_at_the_interval(tmp_path, body, looks):
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "jobs_x.py").write_text(f"import dataclasses\nimport helpers\n\ndef f(ctx, source):\n    {body}\n")
    assert looks_at_interval("jobs_x:f", tmp_path) is looks
