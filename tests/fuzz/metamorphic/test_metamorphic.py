"""Made-up stage functions have one outcome however they are run.
More of them: `python -m fuzz.metamorphic --cases 200 --seed 7`.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from fuzz.metamorphic.generate import generate
from fuzz.metamorphic.judge import judge
from fuzz.metamorphic.laboratory import Laboratory

SEED = 12
CASES = 2


@pytest.fixture(scope="module")
def lab(tmp_path_factory, spark_remote, spark_settings):
    home = str(tmp_path_factory.mktemp("metamorphic"))
    return Laboratory.make(replace(spark_settings, home=home, spark_remote=spark_remote), SEED)


@pytest.mark.spark
@pytest.mark.parametrize("number", range(CASES))
def test_a_made_up_stage_has_one_outcome_in_any_waves_after_any_loss_and_for_any_number_of_partitions(lab, number):
    case = generate(SEED, number)
    verdict, _ = judge(lab, case, Random(f"{SEED}/{number}/ways"))
    assert verdict.violation is None, f"{verdict.violation}\n{case.text()}"
