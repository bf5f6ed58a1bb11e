"""The DAG that cleans up and looks for damage each day, once a person switches it on."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, BaseOperator, Param
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from stagehold.airflow.dag.dag_schedule import wait_for_the_next_time
from stagehold.model.units import DURATION_ALLOWED

if TYPE_CHECKING:
    from airflow.sdk import Context

LINES_TOLD = 20
RETRIES = 3  # of commands that were killed; problems that a command finds are not tried again
DOCUMENTATION = """\
`gc` runs `stagehold gc`: it deletes what no run, no checkpoint and nobody who reads needs any more.

`verify` runs `stagehold verify`: it reads recorded data again, marks what is damaged, and fails if there is any. The
next run heals what it needs of it.
"""


class CommandOperator(BaseOperator):
    """Runs a `stagehold` command as a person would; its output is the task's log.

    :param words: the command's arguments.
    """

    template_fields: Sequence[str] = ("words",)

    def __init__(self, *, words: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**{"retries": RETRIES, **kwargs})
        self.words = words
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def execute(self, context: Context) -> None:  # noqa: ARG002
        command = (sys.executable, "-m", "stagehold", *self.words)
        self.log.info("stagehold %s", " ".join(self.words))
        last: deque[str] = deque(maxlen=LINES_TOLD)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as self._process:
            for line in self._process.stdout or ():
                self.log.info("%s", line.rstrip())
                last.append(line)
        if self._process.returncode < 0 or self._stopped:
            raise AirflowException(f"stagehold {' '.join(self.words)} was told to end before it had ended by itself.")
        if self._process.returncode:
            raise AirflowFailException(f"stagehold {' '.join(self.words)} found something:\n{''.join(last)}")

    def on_kill(self) -> None:
        """If a person marked or cleared the task, its state has changed by now. Any other end is tried again."""
        self._stopped = True
        if self._process is not None:
            self._process.terminate()


def maintenance_dag() -> DAG:
    """The DAG, which is paused at first. Problems that one task finds do not keep the others from running."""
    dag = DAG(
        dag_id="stagehold_maintenance",
        schedule="@daily",
        catchup=False,
        is_paused_upon_creation=True,
        max_active_runs=1,
        tags=["stagehold"],
        params={
            "older_than": Param("30d", type="string", title="Older than", description=f"For gc: {DURATION_ALLOWED}."),
            "sample": Param("5%", type="string", title="Sample", description="For verify: a share, or a number."),
        },
        doc_md=DOCUMENTATION,
    )
    wait_for_the_next_time(dag)
    CommandOperator(task_id="gc", words=("gc", "--older-than", "{{ params.older_than }}"), dag=dag)
    CommandOperator(task_id="verify", words=("verify", "--sample", "{{ params.sample }}"), dag=dag)
    return dag
