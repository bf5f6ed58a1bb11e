"""`make compose-test`: the containers of docker-compose.yaml are brought up, killed one kind after the other in the
middle of runs of the sample's pipeline, and each answer is compared with DuckDB's.

Nobody starts a container again or resumes a run: that is up to the engine, Airflow and Stagehold. Containers and
volumes have a name of their own, and are taken down at the end. It takes an engine and half an hour, so it is no test.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from fuzz.compose.containers import STAYING, Containers, chosen_command, own_environment

from stagehold.errors import AirflowRefused, AirflowSilent
from stagehold.local.airflow_client import AirflowClient, DagRun
from stagehold.local.demo.demo_run import PIPELINE
from stagehold.spark.processes import wait_until

AWAY_SECONDS = 20
RUN_SECONDS, PARSE_SECONDS = 1200, 300
UNDISTURBED = ("nobody", "nobody-again")  # the first one loads what the others find loaded
AWAY = f"postgres-for-{AWAY_SECONDS}-s"
INSIDE = Path(__file__).with_name("inside.py")


@dataclass(frozen=True)
class Drill:
    """Runs of the pipeline, each of an interval of its own, in which one thing goes wrong at a moment that the seed
    chooses.
    """

    containers: Containers
    airflow: AirflowClient
    seed: int
    wait: Callable[[float], None] = time.sleep

    def all(self, kinds: list[str]) -> bool:
        """The moments are those of the shortest run so far.

        :param kinds: of containers, or `AWAY`.
        """
        undisturbed = [self.one(name, 0) for name in UNDISTURBED]
        usual, good = min(seconds for seconds, _ in undisturbed), all(well for _, well in undisturbed)
        for kind in kinds:
            after = Random(f"{self.seed}/{kind}").uniform(0.1, 0.7) * usual
            seconds, well = self.one(kind, after)
            usual, good = min(usual, seconds), good and well
        return good

    def one(self, kind: str, after: float) -> tuple[float, bool]:
        """How long the run took, and whether all was right."""
        interval, began = f"drill-{kind}", datetime.now(UTC)
        begun = self.airflow.trigger(PIPELINE, conf={"interval": interval})
        self.wait(after)
        disturbed = self._disturb(kind)
        wait_until(lambda: self._now(begun).ended, RUN_SECONDS, 1)
        self.containers.await_health(STAYING)
        run = self.airflow.run(begun.dag_id, begun.run_id)
        ended = run.ended_at or datetime.now(UTC)
        found = json.loads(self.containers.python("-", interval, given=INSIDE.read_text()).splitlines()[-1])
        seconds, shown = (ended - began).total_seconds(), disturbed < ended
        _tell(kind if kind in UNDISTURBED else f"{kind} after {after:.0f} s", seconds, run.state, shown, found)
        return seconds, run.state == "success" and shown and found["same"] and not found["twice"]

    def _disturb(self, kind: str) -> datetime:
        """:returns: when the disturbance was there."""
        if kind in STAYING:
            return self.containers.kill(kind)
        disturbed = datetime.now(UTC)
        if kind == AWAY:
            self.containers.do("stop", "postgres")
            disturbed = datetime.now(UTC)
            self.wait(AWAY_SECONDS)
            self.containers.do("start", "postgres")
        return disturbed

    def _now(self, run: DagRun) -> DagRun:
        """As it was when it began, while Airflow is away."""
        try:
            return self.airflow.run(run.dag_id, run.run_id)
        except (AirflowSilent, AirflowRefused):
            return run


def _tell(what: str, seconds: float, state: str, shown: bool, found: Mapping[str, object]) -> None:
    same = "DuckDB's answer" if found["same"] else "NOT DuckDB's answer"
    twice = f"computed twice: {found['twice']}" if found["twice"] else "none twice"
    counts = f"{found['partitions']} partitions by {found['attempts']} attempts, {twice}"
    late = "" if shown else "; NOT SHOWN: the run had ended before"
    print(f"{what}: {state} in {seconds:.0f} s; {same}; {counts}{late}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.compose", description=__doc__)
    parser.add_argument("--compose", default="", help="the command; by default the first of those known that answers")
    parser.add_argument("--kinds", nargs="*", default=[*STAYING, AWAY], choices=[*STAYING, AWAY], metavar="KIND")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave all of it up")
    asked = parser.parse_args()
    containers = Containers(chosen_command(asked.compose), own_environment())
    with containers.up(asked.keep):
        print(f"all containers are healthy; Airflow is at {containers.url}", flush=True)
        containers.python("-m", "stagehold.local.demo.sample")
        print("the sample is in the bucket", flush=True)
        with containers.client() as airflow:
            airflow.await_dag(PIPELINE, PARSE_SECONDS)
            return 0 if Drill(containers, airflow, asked.seed).all(asked.kinds) else 1


if __name__ == "__main__":
    sys.exit(main())
