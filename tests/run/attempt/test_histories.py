"""How the states of a run and its attempts follow each other, as a real ledger's history tells it; no Spark."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from tests.run.attempt.places import workplace

from stagehold.errors import RestartRefused
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import Share
from stagehold.model.records import Attempt, Lease, RunState
from stagehold.model.states import AttemptEvent
from stagehold.plan.split.regions import stage_regions
from stagehold.run.here.region import record_lost_attempts, run_region
from stagehold.run.journal import journal
from stagehold.run.journal.journal import verdict_of
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline

pytestmark = pytest.mark.slow

JOBS = "def first(ctx, source): ...\ndef second(ctx, source): ...\n"
WORKS = ["created", "scheduled", "deploying", "initializing", "running"]


@dataclass
class Scene:
    """A pipeline of two regions, of which the second has two shares, and its run."""

    settings: Settings
    ledger: Ledger
    tasks: dict[str, RegionTask]
    leases: dict[str, Lease] = field(default_factory=dict)

    def wait(self, name: str) -> Attempt:
        """An attempt that waits for its lease."""
        attempt = journal.create_attempt(self.tasks[name], self.ledger)
        journal.schedule_attempt(self.tasks[name], attempt, self.ledger, self.settings)
        return attempt

    def begin(self, name: str, waiting: Attempt | None = None) -> Attempt:
        """An attempt that computes."""
        task, waiting = self.tasks[name], waiting or self.wait(name)
        lease = self.ledger.leases.take(task.lease_name, task.share, name, 60, lambda _: True)
        self.leases[waiting.attempt_id] = lease
        record_lost_attempts(task, waiting, lease, workplace(self.ledger, self.settings))
        attempt = journal.begin_attempt(task, waiting, lease.epoch, self.ledger)
        self.leases[attempt.attempt_id] = lease
        for event in (AttemptEvent.REPORTED_INITIALIZING, AttemptEvent.REPORTED_RUNNING):
            self.ledger.attempts.apply(attempt.attempt_id, event)
        return attempt

    def finish(self, name: str, attempt: Attempt) -> None:
        journal.succeed(self.tasks[name], attempt, self.ledger, "done")
        journal.settle(self.tasks[name], self.ledger, self.settings)
        self.lose_lease(attempt)

    def fail(self, name: str, attempt: Attempt, error: Exception | None = None) -> None:
        journal.fail(self.tasks[name], attempt, self.ledger, self.settings, error or OSError("lost"))
        self.lose_lease(attempt)

    def cancel(self, name: str, attempt: Attempt) -> None:
        journal.cancel(self.tasks[name], attempt, self.ledger, KeyboardInterrupt())
        self.lose_lease(attempt)

    def lose_lease(self, attempt: Attempt) -> None:
        if attempt.attempt_id in self.leases:
            self.ledger.leases.release(self.leases[attempt.attempt_id])

    def ask_again(self) -> None:
        """`stagehold resume` of a run without Airflow."""
        self.ledger.runs.begin_life("r1")

    def of_run(self) -> str:
        return " ".join(
            transition.after for transition in self.ledger.transitions.of_run("r1") if transition.attempt_id is None
        )

    def of(self, attempt: Attempt) -> list[str]:
        found = [
            transition
            for transition in self.ledger.transitions.of_run("r1")
            if transition.attempt_id == attempt.attempt_id
        ]
        assert [one.before for one in found] == [None, *(one.after for one in found[:-1])]
        return [str(one.after) for one in found]


@pytest.fixture(params=["cli", "airflow"])
def launcher(request):
    return request.param


@pytest.fixture
def scene(tmp_path, ledger_file, launcher):
    (tmp_path / "work.py").write_text(JOBS)
    source = {"source": {"kind": "parquet", "path": "x", "splits": 4}}
    stages = {
        "first": {"job": "work:first", **source},
        "second": {"job": "work:second", "max_parallel_tasks": 2, **source},
    }
    declared = {"pipeline": "p", "restart": {"strategy": "fixed-delay", "attempts": 2, "delay": "1s"}, "stages": stages}
    pipeline = build_pipeline(declared, project=tmp_path, suites=tmp_path)
    first, second = stage_regions(pipeline)
    whole = RegionTask(RunRequest(pipeline, "r1", "day", {}), first, "me", launcher)
    tasks = {
        "first": whole,
        "left": replace(whole, region=second, share=Share(0, 1)),
        "right": replace(whole, region=second, share=Share(2, 3)),
    }
    settings = Settings(
        home=str(tmp_path / "home"), ledger=f"sqlite:///{ledger_file}", project=str(tmp_path), suites=str(tmp_path)
    )
    with Ledger.open(settings.ledger_url) as ledger:
        yield Scene(settings, ledger, tasks)


def finish_all(scene: Scene, *names: str) -> None:
    for name in names:
        scene.finish(name, scene.begin(name))


def test_a_run_that_is_restarted_cancelled_and_resumed(scene):
    """Failure, restart, cancel and resume, to the letter."""
    failed = scene.begin("first")
    scene.fail("first", failed)
    assert scene.of_run() == "created running restarting"
    finish_all(scene, "first")
    left = scene.begin("left")
    scene.cancel("left", left)
    assert scene.of_run() == "created running restarting running cancelling canceled"
    scene.ask_again()
    finish_all(scene, *(() if launched_by_airflow(scene) else ("first",)), "left", "right")
    told = scene.ledger.transitions.of_run("r1")
    assert [(attempt.before, attempt.event, attempt.after) for attempt in told if attempt.attempt_id is None] == [
        (None, None, "created"),
        ("created", "start", "running"),
        ("running", "restart", "restarting"),
        ("restarting", "restarted", "running"),
        ("running", "cancel", "cancelling"),
        ("cancelling", "all_ended", "canceled"),
        (None, None, "created"),
        ("created", "start", "running"),
        ("running", "all_finished", "finished"),
    ]
    assert scene.of(failed) == [*WORKS, "failed"]
    assert scene.of(left) == [*WORKS, "canceling", "canceled"]
    assert [record.recorded_at for record in told] == sorted(record.recorded_at for record in told)


def test_a_run_fails_when_the_strategy_gives_up_and_its_resume_is_a_new_life(scene):
    for _ in range(3):
        scene.fail("first", scene.begin("first"))
    assert scene.of_run() == "created running restarting running restarting running failing failed"
    scene.ask_again()
    finish_all(scene, "first", "left", "right")
    assert scene.of_run().endswith("failing failed created running finished")


def test_a_run_is_failing_until_the_last_attempt_under_way_has_ended(scene):
    left, right = scene.begin("left"), scene.begin("right")
    scene.fail("left", left, TypeError("not worth another try"))
    for _ in range(2):
        scene.fail("left", scene.begin("left"))
    assert scene.of_run() == "created running restarting running restarting running failing"
    scene.finish("right", right)
    assert scene.of_run().endswith("running failing failed")


def test_a_run_is_cancelling_until_the_last_attempt_under_way_has_ended(scene):
    left, right = scene.begin("left"), scene.begin("right")
    scene.cancel("left", left)
    assert scene.of_run() == "created running cancelling"
    scene.cancel("right", right)
    assert scene.of_run() == "created running cancelling canceled"


def test_a_run_ends_although_another_attempt_died_without_a_word(scene):
    left, right = scene.begin("left"), scene.begin("right")
    scene.lose_lease(right)
    scene.cancel("left", left)
    assert scene.of_run() == "created running cancelling canceled"


def test_a_run_restarts_for_as_long_as_anything_waits_for_it(scene):
    left, right = scene.begin("left"), scene.begin("right")
    scene.fail("left", left)
    scene.fail("right", right)
    assert scene.of_run() == "created running restarting"
    left = scene.begin("left")
    assert scene.of_run() == "created running restarting"
    right = scene.begin("right")
    scene.finish("left", left)
    assert scene.of_run() == "created running restarting running"
    scene.finish("right", right)
    finish_all(scene, "first")
    assert scene.of_run() == "created running restarting running finished"


def test_a_resume_of_what_failed_leaves_failing_and_another_regions_attempt_does_not(scene):
    """As Airflow does it, while the run still is failing."""
    right = scene.begin("right")
    for _ in range(3):
        scene.fail("left", scene.begin("left"))
    finish_all(scene, "first")
    assert scene.of_run().endswith("running failing")
    left = scene.begin("left")
    assert scene.of_run().endswith("running failing failed created running")
    scene.finish("left", left)
    scene.finish("right", right)
    assert scene.ledger.runs.get("r1").state is (RunState.FINISHED if launched_by_airflow(scene) else RunState.RUNNING)


def launched_by_airflow(scene: Scene) -> bool:
    """It resumes only what did not finish; without Airflow all regions are gone through again."""
    return scene.tasks["first"].launcher == "airflow"


def test_an_attempt_that_died_while_it_waited_is_ended_by_the_next_one(scene):
    dead = scene.wait("first")
    finish_all(scene, "first")
    assert scene.of(dead) == ["created", "scheduled", "failed"]
    (ended, _) = scene.ledger.attempts.of_run("r1")
    assert (ended.failure_rule, ended.began) == ("worker_lost", False)


def test_who_heals_a_region_does_not_take_its_waiting_task_for_dead(scene):
    waiting = scene.wait("first")
    scene.tasks["healer"] = replace(scene.tasks["first"], only={"first": frozenset({1})})
    finish_all(scene, "healer")
    assert scene.of(scene.begin("first", waiting)) == WORKS
    assert len(scene.ledger.attempts.of_run("r1")) == 2


def test_an_attempt_that_died_at_work_is_ended_by_the_next_one(scene):
    dead = scene.begin("first")
    scene.lose_lease(dead)
    alive = scene.begin("first")
    assert scene.of(dead) == [*WORKS, "failed"]
    assert scene.of(alive) == WORKS
    assert scene.of_run() == "created running"


def test_a_try_that_the_strategy_refuses_after_deaths_is_recorded_and_fails_the_run(scene):
    for _ in range(3):
        scene.lose_lease(scene.begin("first"))
    assert scene.of_run() == "created running"
    again = replace(scene.tasks["first"], again=True)
    with pytest.raises(RestartRefused) as refused:
        run_region(again, scene.settings, lambda _: None)
    assert verdict_of(refused.value).decision.restart is False
    last = scene.ledger.attempts.of_run("r1")[-1]
    assert (last.began, scene.of(last)) == (False, ["created", "scheduled", "failed"])
    assert scene.of_run() == "created running failing failed"


def test_an_attempt_that_was_taken_for_dead_while_it_waited_goes_on_as_a_new_attempt(scene):
    waiting = scene.wait("first")
    finish_all(scene, "first")
    again = scene.begin("first", waiting)
    assert scene.of(waiting) == ["created", "scheduled", "failed"]
    assert (again.attempt_id == waiting.attempt_id, scene.of(again)) == (False, WORKS)


def test_what_waits_for_its_inputs_neither_starts_a_run_nor_brings_one_back(scene):
    waiting = journal.create_attempt(scene.tasks["left"], scene.ledger)
    assert (scene.of_run(), scene.of(waiting)) == ("created", ["created"])
    scene.cancel("first", scene.begin("first"))
    journal.create_attempt(scene.tasks["right"], scene.ledger)
    assert scene.of_run() == "created running cancelling canceled"


def test_a_run_that_is_cancelled_before_anything_of_it_was_scheduled(scene):
    scene.cancel("left", journal.create_attempt(scene.tasks["left"], scene.ledger))
    assert scene.of_run() == "created cancelling canceled"


def test_what_failed_in_an_earlier_life_does_not_end_the_one_that_follows(scene, launcher):
    """Without Airflow, a resume goes through all regions again, so the others of them are still to come."""
    for name in ("left", "right"):
        scene.cancel(name, scene.begin(name))
    scene.ask_again()
    finish_all(scene, "first")
    expected = "created running canceled" if launcher == "airflow" else "created running"
    assert scene.of_run().replace("cancelling ", "").endswith(f"canceled {expected}")
