"""One run of `make chaos`, so that it stays runnable."""

from __future__ import annotations

import pytest
from fuzz.chaos.chaos import chaos

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_run_to_which_faults_happen_comes_right(tmp_path):
    (outcome,) = chaos(tmp_path, seed=1, numbers=[1])
    assert outcome.violation is None, "\n".join([*outcome.steps, str(outcome.violation)])
