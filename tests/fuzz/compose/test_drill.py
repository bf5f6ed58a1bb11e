"""What `make compose-test` makes of a run in which something went wrong, with stand-ins for containers and Airflow."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from fuzz.compose.__main__ import AWAY, UNDISTURBED, Drill
from fuzz.compose.containers import STAYING, Containers

from stagehold.local.airflow_client import AirflowClient, DagRun


@dataclass
class StandIn:
    """Both the containers and their Airflow, where each run took so long, one after the other."""

    seconds: list[float]
    waits: list[float] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=lambda: {"same": True, "twice": [], "partitions": 2, "attempts": 1})
    disturbed: list[str] = field(default_factory=list)
    state: str = "success"

    def trigger(self, dag_id: str, *, conf: dict[str, str]) -> DagRun:
        self.ended_at = datetime.now(UTC) + timedelta(seconds=self.seconds.pop(0))
        return DagRun(dag_id, conf["interval"], "running")

    def run(self, dag_id: str, run_id: str) -> DagRun:
        return DagRun(dag_id, run_id, self.state, self.ended_at)

    def kill(self, service: str) -> datetime:
        self.disturbed.append(service)
        return datetime.now(UTC)

    def do(self, *words: str) -> None:
        self.disturbed.append(" ".join(words))

    def await_health(self, services: tuple[str, ...]) -> None:
        assert services == STAYING

    def python(self, *words: str, given: str) -> str:
        return f"a warning\n{json.dumps(self.found)}\n"


def drill(stand_in: StandIn) -> Drill:
    return Drill(cast(Containers, stand_in), cast(AirflowClient, stand_in), 1, stand_in.waits.append)


def test_what_was_killed_in_the_middle_of_a_run_is_shown(capsys):
    stand_in = StandIn([500, 400, 100])
    assert drill(stand_in).all(["spark-connect"])
    assert stand_in.disturbed == ["spark-connect"]
    told = f"spark-connect after {stand_in.waits[-1]:.0f} s: success in 100 s; DuckDB's answer"
    assert told in capsys.readouterr().out


def test_a_kill_after_the_end_of_a_run_says_so_and_shows_nothing(capsys):
    assert not drill(StandIn([500, 400, -1])).all(["spark-connect"])
    assert "NOT SHOWN: the run had ended before" in capsys.readouterr().out


def test_what_is_away_counts_from_when_it_is_away(capsys):
    stand_in = StandIn([500, 400, 100])
    assert drill(stand_in).all([AWAY])
    assert stand_in.disturbed == ["stop postgres", "start postgres"]
    assert "NOT SHOWN" not in capsys.readouterr().out


def test_the_moment_is_one_of_the_shortest_run_so_far():
    stand_in = StandIn([500, 400, 1000, 100, 1000])
    assert drill(stand_in).all([*STAYING[:3]])
    shortest = (400, 400, 100)
    assert all(0.1 * usual <= after <= 0.7 * usual for after, usual in zip(stand_in.waits[2:], shortest, strict=True))


@pytest.mark.parametrize("wrong", [{"same": False}, {"twice": ["joined 1"]}])
def test_another_answer_or_a_partition_computed_twice_is_wrong(wrong):
    stand_in = StandIn([500])
    stand_in.found.update(wrong)
    assert drill(stand_in).one(UNDISTURBED[0], 0)[1] is False


def test_a_run_that_does_not_succeed_is_wrong():
    assert drill(StandIn([500], state="failed")).one(UNDISTURBED[0], 0)[1] is False
