from __future__ import annotations

import pytest

from stagehold.local.supervisor import RestartPolicy

POLICY = RestartPolicy(delays=(0, 1, 5), window=60, first_tries=2)


@pytest.mark.parametrize(
    ("crashes", "now", "was_ready", "delay"),
    [
        pytest.param([100], 100, True, 0, id="the first crash is started again at once"),
        pytest.param([90, 100], 100, True, 1, id="the second one waits"),
        pytest.param([80, 90, 100], 100, True, 5, id="the third one waits longer"),
        pytest.param([70, 80, 90, 100], 100, True, None, id="after the last delay it gives up"),
        pytest.param([10, 20, 30, 100], 100, True, 0, id="crashes before the window do not count"),
        pytest.param([40, 100], 100, True, 0, id="a crash just as old as the window does not count"),
        pytest.param([100], 100, False, 0, id="a first start that fails is tried again"),
        pytest.param([90, 100], 100, False, None, id="one that was never ready gives up sooner"),
        pytest.param([10, 100], 100, False, None, id="however far apart its crashes are"),
    ],
)
def test_delay_before_the_next_start(crashes: list[float], now: float, was_ready: bool, delay: float | None) -> None:
    assert POLICY.delay(crashes, now, was_ready=was_ready) == delay
