"""A small client of Airflow's public REST API and ours, for commands and the demo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote as in_shell
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from stagehold.airflow.answering.http_refusal import Refusal
from stagehold.airflow.context.dag_places import DagPlace
from stagehold.errors import AirflowRefused, AirflowSilent, NotInTime
from stagehold.local.airflow_configuration import USER, admin_password, airflow_url
from stagehold.local.airflow_elsewhere import misunderstood, no_api, unspeakable
from stagehold.settings import Settings
from stagehold.spark.processes import wait_until

ENDED = ("success", "failed")
POLL_SECONDS = 0.25
PAGE = 100
NO_JSON = "what answered is not its API"
SECONDS = 30
LOGIN = "/auth/token"


@dataclass(frozen=True)
class DagRun:
    dag_id: str
    run_id: str
    state: str
    ended_at: datetime | None = None  # as far as Airflow was asked

    @property
    def ended(self) -> bool:
        return self.state in ENDED


Purpose = tuple[str, str]  # what a call is to do, and where to look if it is refused: both for the text of an error


class AirflowClient:
    """Calls as the one user whom ``http`` names in its headers. A ``place`` is that of a pipeline, as text.

    :raises AirflowRefused: by each call that was not carried out.
    :raises AirflowSilent: by each call that nobody answered.
    """

    def __init__(self, http: httpx.Client, *, elsewhere: bool = False) -> None:
        """:param elsewhere: somebody else runs it, so that its address and credentials may be set wrongly."""
        self._http, self._elsewhere = http, elsewhere

    @classmethod
    def with_token(cls, url: str, token: str, *, elsewhere: bool = False) -> Self:
        http = httpx.Client(base_url=url, timeout=SECONDS, headers={"Authorization": f"Bearer {token}"})
        return cls(http, elsewhere=elsewhere)

    @classmethod
    def logged_in(cls, url: str, user: str, password: str, *, elsewhere: bool = False) -> Self:
        """A token is asked for once."""
        purpose = (f"let {user} in", "`stagehold status` shows which Airflow this is.")
        with cls(httpx.Client(base_url=url, timeout=SECONDS), elsewhere=elsewhere) as asking:
            answer = asking._send("POST", LOGIN, {"username": user, "password": password}, purpose)
        return cls.with_token(url, answer["access_token"], elsewhere=elsewhere)

    @classmethod
    def local(cls, settings: Settings) -> Self:
        """A client of the Airflow that `stagehold up` runs, as its admin."""
        return cls.logged_in(airflow_url(settings), USER, admin_password(settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def await_dag(self, dag_id: str, seconds: float = 60) -> None:
        """Wait until Airflow has parsed the DAG and can run it, then unpause it."""
        wait_for(
            f"DAG {dag_id} to be parsed",
            seconds,
            lambda: self._http.get(path_of_dag(dag_id)).status_code == httpx.codes.OK,
        )
        self._send("PATCH", path_of_dag(dag_id), {"is_paused": False})

    def trigger(
        self, dag_id: str, *, conf: Mapping[str, Any] | None = None, logical_date: datetime | None = None
    ) -> DagRun:
        body = {"conf": dict(conf or {}), "logical_date": logical_date.isoformat() if logical_date else None}
        return _run(self._send("POST", f"{path_of_dag(dag_id)}/dagRuns", body))

    def run(self, dag_id: str, run_id: str) -> DagRun:
        return _run(self._send("GET", path_of_run(dag_id, run_id)))

    def fail_run(self, dag_id: str, run_id: str) -> None:
        """What "mark run as failed" does in the UI: its tasks that run are stopped, and none starts."""
        purpose = _of_run("mark {} as failed", dag_id, run_id)
        self._send("PATCH", path_of_run(dag_id, run_id), {"state": "failed"}, purpose)

    def grid(self, place: str, run_id: str) -> dict[str, Any]:
        """What the run's Stagehold page shows."""
        return dict(self._send("GET", f"{_stagehold_run(place, run_id)}/grid"))

    def plugin_health(self) -> dict[str, Any]:
        """What the plugin says of itself: that it is there, and that the caller is let in."""
        return dict(self._send("GET", "/stagehold/api/health", purpose=("say how its Stagehold is", "")))

    def resume(self, place: str, run_id: str, *, dry_run: bool = False) -> dict[str, Any]:
        """What the page's Resume button does: clear the least that brings the run to its end, and say what that was."""
        purpose = _of_run("resume {}", place, run_id)
        return dict(self._send("POST", f"{_stagehold_run(place, run_id)}/resume", {"dry_run": dry_run}, purpose))

    def backfill(self, place: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Begin a backfill of which the plan was shown."""
        again = f"stagehold backfill {place} --from {wanted['first']} --to {wanted['last']} --dry-run"
        purpose = (f"start the backfill of {place}", f"`{again}` shows what would run now.")
        return dict(self._send("POST", f"/stagehold/api/dags/{quote(place, safe='')}/backfill", wanted, purpose))

    def dates(self, dag_id: str, first: datetime, last: datetime) -> Mapping[datetime, DagRun]:
        """The runs for these moments and all between them, by logical date."""
        found: dict[datetime, DagRun] = {}
        span = f"logical_date_gte={_text(first)}&logical_date_lte={_text(last)}&limit={PAGE}"
        while True:
            answer = self._send("GET", f"{path_of_dag(dag_id)}/dagRuns?{span}&offset={len(found)}")
            runs = {datetime.fromisoformat(run["logical_date"]): _run(run) for run in answer["dag_runs"]}
            found.update(runs)
            if not runs or len(found) >= answer["total_entries"]:
                return found

    def again(self, place: str, run_id: str, stages: Sequence[str], *, dry_run: bool = False) -> dict[str, Any]:
        """Resume the run, and have it compute these stages once more."""
        body = {"dry_run": dry_run, "stages": list(stages)}
        purpose = _of_run("resume {}", place, run_id)
        return dict(self._send("POST", f"{_stagehold_run(place, run_id)}/again", body, purpose))

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, purpose: Purpose | None = None
    ) -> Any:
        what, look = purpose or (f"carry out {method} {path}", "`stagehold status` shows services and runs.")
        url = str(self._http.base_url).rstrip("/")
        try:
            answer = self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            wrong = unspeakable(error, url) if self._elsewhere else None
            raise wrong or AirflowSilent(url, what, _why(error), elsewhere=self._elsewhere) from error
        if not answer.is_success:
            wrong = misunderstood(answer, path, url) if self._elsewhere else None
            raise wrong or _refused(answer, what, look, elsewhere=self._elsewhere)
        try:
            return answer.json()
        except ValueError:
            raise (no_api(url) if self._elsewhere else AirflowSilent(url, what, NO_JSON)) from None


def _refused(answer: httpx.Response, what: str, look: str, *, elsewhere: bool) -> AirflowRefused:
    said = Refusal.of(answer.status_code, answer.headers.get("content-type", ""), answer.text)
    return AirflowRefused(answer.status_code, said.sentence(what), look, elsewhere=elsewhere)


def _why(error: httpx.HTTPError) -> str:
    """A timeout has no text of its own."""
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {SECONDS} s"
    if isinstance(error, httpx.TimeoutException):
        return f"nothing within {SECONDS} s"
    return str(error).rstrip(".") or type(error).__name__


def _of_run(what: str, place: str, run_id: str) -> Purpose:
    """:param what: is to be done, with a place for the run."""
    run = DagPlace.parse(place).run(run_id)
    return what.format(run), f"`stagehold status {in_shell(run)}` shows the run."


def wait_for(what: str, seconds: float, condition: Callable[[], bool]) -> None:
    if not wait_until(condition, seconds, POLL_SECONDS):
        raise NotInTime(what, seconds)


def path_of_dag(dag_id: str) -> str:
    return f"/api/v2/dags/{quote(dag_id, safe='')}"


def path_of_run(dag_id: str, run_id: str) -> str:
    return f"{path_of_dag(dag_id)}/dagRuns/{quote(run_id, safe='')}"


def _stagehold_run(place: str, run_id: str) -> str:
    return f"/stagehold/api/dags/{quote(place, safe='')}/runs/{quote(run_id, safe='')}"


def _text(moment: datetime) -> str:
    return quote(moment.isoformat(), safe="")


def _run(answer: Mapping[str, Any]) -> DagRun:
    ended_at = datetime.fromisoformat(answer["end_date"]) if answer.get("end_date") else None
    return DagRun(answer["dag_id"], answer["dag_run_id"], answer["state"], ended_at)
