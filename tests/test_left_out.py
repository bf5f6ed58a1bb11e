from __future__ import annotations

import pytest
from tests.left_out import leaves_out, unnamed

FAST = "not spark and not slow and not airflow"
SPARK = "(spark or slow) and not airflow"


@pytest.mark.parametrize(
    ("expression", "marks", "out"),
    [
        (FAST, "pytestmark = pytest.mark.spark", True),
        (FAST, "pytestmark = [pytest.mark.airflow, pytest.mark.timeout(600)]", True),
        (FAST, "pytestmark = [\n    pytest.mark.timeout(600),\n    pytest.mark.slow,\n]", True),
        (FAST, 'pytestmark = pytest.mark.skipif(True, reason="no")', False),
        (FAST, "@pytest.mark.spark", False),
        (SPARK, "@pytest.mark.spark", False),
        (SPARK, "", True),
        (FAST, "", False),
        (SPARK, "pytestmark = pytest.mark.spark", False),
        (SPARK, "pytestmark = [pytest.mark.airflow, pytest.mark.slow]", True),
        ("slow", "pytestmark = pytest.mark.spark", True),
        ("", "pytestmark = pytest.mark.spark", False),
        ("slow", "pytestmark = pytest.mark.spark\n\n@pytest.mark.slow", False),
        ("not timeout(600)", "pytestmark = pytest.mark.timeout(600)", False),
        ("timeout", "from tests import few_seconds", False),
    ],
)
def test_a_file_is_left_out_if_its_marks_decide_so_whatever_others_its_tests_have(expression, marks, out) -> None:
    assert leaves_out(expression, f"import pytest\n\n{marks}\ndef test_it(): ...\n") == out


def test_a_mark_that_a_file_does_not_name_is_told() -> None:
    assert unnamed({"spark", "slow", "timeout"}, "@pytest.mark.slow\n@needs_a_server\ndef test_it(): ...") == {"spark"}
