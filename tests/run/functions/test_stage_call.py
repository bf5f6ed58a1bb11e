"""What a function returns in place of a frame is told with what to return."""

from __future__ import annotations

import pandas as pd
import pytest

from stagehold.run.functions.stage_call import returned_text

TEXTS = [
    (None, "nothing; return the DataFrame"),
    (pd.DataFrame(), "a pandas DataFrame; return a Spark DataFrame (`spark.createDataFrame(...)`)"),
    (pd.Series([1]), "a pandas Series; return a Spark DataFrame (`spark.createDataFrame(...)`)"),
    ([1], "list, not a DataFrame"),
]


@pytest.mark.parametrize(("returned", "text"), TEXTS)
def test_what_is_no_frame_is_named(returned, text):
    assert returned_text(returned) == text
