"""Sources in Python: what their class lists, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.made_sources import NO_LEDGER, source_stage

from stagehold.errors import SourceUnusable, SplitsUnlisted
from stagehold.model.context import StageContext
from stagehold.sources.attempt_sources import Sources
from stagehold.sources.source_reading import SourceReading

HEAD = """
from stagehold import SourceSplit

class Shops:
    def read(self, ctx, split):
        return []

    def splits(self, ctx):
"""


def read(project: Path, body: str, splits: int = 2, **fields: object) -> SourceReading:
    """What an attempt of an interval would read of a class whose `splits` does that."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    (project / "shop_api.py").write_text(HEAD + lines)
    stage = source_stage(kind="python", path=None, reader="shop_api:Shops", ddl="n bigint", splits=splits, **fields)

    def context(stage: object) -> StageContext:
        return StageContext("p", "orders", "2026-11-20", None, (), 1, params={"shops": ["de", "fr", "it"]})

    sources = Sources("p", "2026-11-20", "r1", str(project), NO_LEDGER, project=str(project), context=context)
    return sources.of(stage)


def test_splits_are_named_and_dealt_by_their_bytes(tmp_path):
    named = read(tmp_path, "return ctx.params['shops']", splits=3)
    assert [[file.path for file in split.files] for split in named.splits] == [["de"], ["fr"], ["it"]]
    sized = read(tmp_path, "for n in range(4):\n    yield SourceSplit(f'shop {n}', bytes=100 * n + 1)")
    assert [[file.path for file in split.files] for split in sized.splits] == [
        ["shop 0", "shop 1", "shop 2"],
        ["shop 3"],
    ]


def test_a_split_is_another_one_with_another_stamp_and_no_other_is(tmp_path):
    before = read(tmp_path, "return [SourceSplit('de', '1'), SourceSplit('fr', '1')]")
    after = read(tmp_path, "return [SourceSplit('de', '1'), SourceSplit('fr', 'two')]")
    assert [one.fingerprint == other.fingerprint for one, other in zip(before.splits, after.splits, strict=True)] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("body", "error", "text"),
    [
        ("return []", SourceUnusable, r"shop_api:Shops\.splits gives nothing"),
        ("return ['de', 'de']", SourceUnusable, r"shop_api:Shops\.splits gives the split 'de' twice"),
        ("return [1]", SourceUnusable, r"shop_api:Shops\.splits gives 1, which is no split"),
        ("return 1 / 0", SplitsUnlisted, r"raised ZeroDivisionError: division by zero \(shop_api.py:9\) when it was"),
    ],
)
def test_what_are_no_splits_is_told_with_its_line(tmp_path, body, error, text):
    with pytest.raises(error, match=text):
        read(tmp_path, body)


def test_no_splits_are_no_rows_where_that_is_declared(tmp_path):
    assert [split.files for split in read(tmp_path, "return []", if_missing="empty").splits] == [(), ()]
