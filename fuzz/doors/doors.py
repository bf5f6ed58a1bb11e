"""The ways by which a wish comes to Stagehold. Each asks as a person or program does there, and waits for the end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

from fuzz.doors.place import RUN_SECONDS, Place, moment, tried
from fuzz.doors.wishes import STAGES, Ask, Door, End
from tests.e2e.forms import ask_for_backfill, end_earlier

from stagehold.errors import AirflowRefused
from stagehold.local.airflow_client import DagRun
from stagehold.local.airflow_configuration import service_environment

COMMAND_SECONDS = 480
# How a door says that there is nothing to do; what is blocked is not done.
NOTHING_TO_DO = re.compile(r"There is nothing to run\.(?!.*blocked)|partitions are consumable", re.DOTALL)


@dataclass(frozen=True)
class Asked:
    """A wish as it is put: the dates that it is for, and the newest run of each that has one."""

    place: Place
    ask: Ask
    dates: Sequence[str]
    runs: Mapping[str, DagRun]

    @property
    def written(self) -> list[str]:
        """The dates as they are typed."""
        return [self.ask.written.format(date=day) for day in self.dates]

    @property
    def stage(self) -> str | None:
        """Where a form that has no other word for it starts again."""
        return STAGES[0] if self.ask.everything else self.ask.stage

    @property
    def conf(self) -> dict[str, object]:
        """What Airflow's forms pass to a run, but its interval."""
        stage = {"restore_from_stage": self.stage} if self.stage else {}
        return {**stage, **self.ask.conf}

    @property
    def options(self) -> list[str]:
        """The same as options of a backfill's command."""
        only = [*(["--only", "all"] if self.ask.everything else []), *(["--only", "failed"] * self.ask.only_failed)]
        stage = ["--restore-from-stage", self.ask.stage] if self.ask.stage else []
        return [*only, *stage, *(word for name, value in self.ask.conf.items() for word in (f"--{name}", str(value)))]


@dataclass(frozen=True)
class Answer:
    """How a door answered: ``said`` is what a person reads there and in the logs of runs, ``notes`` those of runs in
    Airflow; None where no run of Airflow's has one.
    """

    end: End
    said: str
    runs: tuple[DagRun, ...] = ()
    notes: str | None = None


def by_tab(asked: Asked) -> Answer:
    """As the tab Stagehold intervals calls its routes: the plan, and its start."""
    place, first, last = asked.place, asked.written[0], asked.written[-1]
    here = f"/stagehold/api/dags/{place.pipeline}/backfill"
    only = "all" if asked.ask.everything else "failed" if asked.ask.only_failed else None
    wanted = {"first": first, "last": last, "restore_from_stage": asked.ask.stage, "only": only}
    wanted = {name: value for name, value in wanted.items() if value}
    try:
        plan = place.airflow._send("GET", f"{here}?{urlencode(wanted)}")
        end_earlier(place.stack, place.pipeline)
        begun = tried(lambda: place.airflow._send("POST", here, {**wanted, **asked.ask.conf, "token": plan["token"]}))
    except AirflowRefused as refused:
        return not_begun(str(refused))
    runs = runs_of(place, begun["intervals"])
    return ended_runs(place, runs, f"{plan['remark'] or ''}\n{plan['released'] or ''}\n")


def by_resume(asked: Asked) -> Answer:
    """The button of the run page, or there "Run STAGE again"."""
    place, run = asked.place, asked.runs[asked.dates[0]]
    again = STAGES[STAGES.index(asked.stage) :] if asked.stage in STAGES else (asked.stage,)
    try:
        if asked.stage:
            place.airflow.again(place.pipeline, run.run_id, [str(stage) for stage in again])
        else:
            place.airflow.resume(place.pipeline, run.run_id)
    except AirflowRefused as refused:
        return not_begun(str(refused))
    return ended_runs(place, [run])


def by_command(asked: Asked) -> Answer:
    """`stagehold backfill`, or `stagehold resume` for a run that there is."""
    place = asked.place
    if asked.ask.same_run:
        run = asked.runs[asked.dates[0]]
        ended = place.stack.command("resume", f"{run.dag_id}/{run.run_id}")
        return ended_runs(place, [run]) if ended.returncode == 0 else not_begun(ended.stderr)
    end_earlier(place.stack, place.pipeline)
    return _backfilled(asked)


def by_local(asked: Asked) -> Answer:
    """`stagehold run`, and for ranges or all `stagehold backfill --local`."""
    if len(asked.dates) > 1 or asked.ask.everything:
        return _backfilled(asked, "--local")
    params = [
        word for name, value in asked.ask.conf.items() if name != "restore" for word in ("--param", f"{name}={value}")
    ]
    stage = ["--restore-from-stage", asked.ask.stage] if asked.ask.stage else []
    restore = ["--restore", str(asked.ask.conf["restore"])] if "restore" in asked.ask.conf else []
    words = ("run", asked.place.pipeline, "--interval", asked.written[0])
    return _of_command(asked.place.stack.command(*words, *params, *stage, *restore))


def _backfilled(asked: Asked, *words: str) -> Answer:
    place = asked.place
    span = ("--from", asked.written[0], "--to", asked.written[-1])
    ended = place.stack.command("backfill", place.pipeline, *span, *asked.options, "--yes", *words)
    answer = _of_command(ended)
    if words or answer.end is End.REFUSED:
        return answer
    runs = [run for day, run in _dates(place, asked.dates).items() if f"{day}: " in ended.stderr]
    return replace(ended_runs(place, runs, answer.said), end=answer.end) if runs else answer


def _of_command(ended: subprocess.CompletedProcess[str]) -> Answer:
    """Whether a run began is told by what a command prints before."""
    said = f"{ended.stdout}\n{ended.stderr}"
    if ended.returncode == 0:
        return Answer(End.GREEN, said)
    began = any(word in said for word in ("gate doors", "goes on with it", "intervals in Airflow", "epoch"))
    return Answer(End.RED if began else End.REFUSED, said)


def by_trigger(asked: Asked) -> Answer:
    """Airflow's form: of one run, so it is filled in once for each date."""
    place = asked.place
    body = {"dag_run_id": "", "note": "", "data_interval_start": None, "data_interval_end": None}
    runs: list[DagRun] = []
    try:
        for own, conf in _single(asked):
            logical = moment(own).isoformat() if own else None
            sent = {**body, "conf": conf, "logical_date": logical, "dag_run_id": None}
            made = tried(lambda sent=sent: place.airflow._send("POST", f"/api/v2/dags/{place.pipeline}/dagRuns", sent))
            runs.append(DagRun(place.pipeline, made["dag_run_id"], made["state"]))
    except AirflowRefused as refused:
        return not_begun(str(refused))
    return ended_runs(place, runs)


def by_backfill(asked: Asked) -> Answer:
    """Airflow's form with "All runs" and the override ticked."""
    place = asked.place
    interval = {"interval": asked.dates[1]} if asked.ask.beside else {}
    days = (asked.dates[0],) if asked.ask.beside else asked.written
    first, last = (
        day if "T" in day else f"{day}T{clock}:00Z" for day, clock in ((days[0], "00:00"), (days[-1], "12:00"))
    )
    body = {"from_date": first, "to_date": last, "dag_run_conf": {**asked.conf, **interval}}
    try:
        ask_for_backfill(place.stack, place.pipeline, {**body, "reprocess_behavior": "completed", "max_active_runs": 2})
    except AirflowRefused as refused:
        return not_begun(str(refused))
    return ended_runs(place, runs_of(place, asked.dates[: len(days)]))


def _at(written: str, clock: str) -> str:
    """What is typed as a moment stays one."""
    return written if "T" in written else f"{written}T{clock}:00Z"


def by_clear(asked: Asked) -> Answer:
    """All tasks of the date's run, as Airflow's page clears a run."""
    run = asked.runs[asked.dates[0]]
    tried(lambda: asked.place.airflow.clear(run))
    return ended_runs(asked.place, [run])


def by_dags_trigger(asked: Asked) -> Answer:
    place, runs = asked.place, list[DagRun]()
    for own, conf in _single(asked):
        date = ["--logical-date", moment(own).isoformat()] if own else []
        words = ("dags", "trigger", place.pipeline, "--conf", json.dumps(conf), *date, "--output", "json")
        ended = _airflow(place, *words)
        if ended.returncode != 0:
            return Answer(End.REFUSED, f"{ended.stdout}\n{ended.stderr}")
        (run_id,) = re.findall(r'"dag_run_id":\s*"([^"]+)"', ended.stdout)
        runs.append(DagRun(place.pipeline, run_id, ""))
    return ended_runs(place, runs)


def by_dags_test(asked: Asked) -> Answer:
    """A run in the command's own process; of a day without a time, as people write it."""
    place, said, ends = asked.place, "", set[End]()
    for day in (asked.dates[0],) if asked.ask.beside else asked.written:
        interval = {"interval": asked.dates[1]} if asked.ask.beside else {}
        ended = _airflow(place, "dags", "test", place.pipeline, day, "--conf", json.dumps({**asked.conf, **interval}))
        told = f"{ended.stdout}\n{ended.stderr}"
        said += told
        began = "DagRun failed" in told or "Created dag run" in told
        ends.add(End.GREEN if ended.returncode == 0 else End.RED if began else End.REFUSED)
    return Answer(next(end for end in (End.RED, End.REFUSED, End.GREEN) if end in ends), said)


def _single(asked: Asked) -> list[tuple[str | None, dict[str, object]]]:
    """The date of its own and the conf of each run that Airflow is asked for."""
    if asked.ask.beside:
        return [(asked.dates[0], {**asked.conf, "interval": asked.dates[1]})]
    return [(None, {**asked.conf, "interval": written}) for written in asked.written]


def _airflow(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    environment = dict(service_environment(place.stack.settings))
    program = Path(sys.executable).with_name("airflow")
    return subprocess.run(
        [program, *words], env=environment, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )


def not_begun(said: str) -> Answer:
    """Nothing to do is no failure."""
    return Answer(End.GREEN if NOTHING_TO_DO.search(said) else End.REFUSED, said)


def _dates(place: Place, dates: Sequence[str]) -> dict[str, DagRun]:
    found = place.airflow.dates(place.pipeline, moment(dates[0]), moment(dates[-1]))
    return {day: found[moment(day)] for day in dates if moment(day) in found}


def runs_of(place: Place, dates: Sequence[str]) -> list[DagRun]:
    """Airflow's own runs of these dates, which a backfill has made or started again."""
    return list(_dates(place, dates).values())


def ended_runs(place: Place, runs: Sequence[DagRun], said: str = "") -> Answer:
    ended = [place.airflow.wait(run, RUN_SECONDS) for run in runs]
    for run in ended:
        place.airflow.grid(run.dag_id, run.run_id)  # no page is dead
    end = End.GREEN if all(run.state == "success" for run in ended) else End.RED
    told = "\n".join([said, *map(place.logs, ended)])
    return Answer(end, told, tuple(ended), "\n".join(map(place.note, ended)))


DOORS: Mapping[Door, Callable[[Asked], Answer]] = {
    Door.TAB: by_tab,
    Door.RESUME: by_resume,
    Door.COMMAND: by_command,
    Door.LOCAL: by_local,
    Door.TRIGGER: by_trigger,
    Door.BACKFILL: by_backfill,
    Door.CLEAR: by_clear,
    Door.DAGS_TRIGGER: by_dags_trigger,
    Door.DAGS_TEST: by_dags_test,
}
