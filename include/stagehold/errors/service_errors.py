"""Errors: the services of this machine are not as they should be."""

from __future__ import annotations

from collections.abc import Sequence

from stagehold.errors.base import StageholdError, Terminal, Transient

UNFIT = (400, 409, 422)  # what was asked for does not fit what is there, as HTTP says it
LOOK_AT_AIRFLOW = "`stagehold status` shows whether Airflow is well, and its newest runs."


class ServiceError(StageholdError):
    """A program or service on this machine is not there, or not as it should be."""


class ToolMissing(ServiceError, Terminal):
    """A program that is needed is not installed."""

    def __init__(self, tool: str, purpose: str, command: str) -> None:
        self.tool, self.purpose, self.command = tool, purpose, command
        super().__init__(
            f"{tool} is needed to {purpose} and is not installed. Nothing was changed. `{command}` "
            "installs it and goes on."
        )


class PortTaken(ServiceError, Terminal):
    """A port that a service is about to listen on is in use."""

    def __init__(self, *, port: int, service: str, setting: str, free: int) -> None:
        self.port, self.service, self.setting, self.free = port, service, setting, free
        super().__init__(
            f"Port {port}, which {service} wants, is taken by another program. Nothing was started. "
            f"Stop that program, or choose another port, for example {setting}={free}, and run the command again."
        )


class AlreadyUp(ServiceError, Terminal):
    """Another supervisor runs the services of this home."""

    def __init__(self, home: str) -> None:
        self.home = home
        super().__init__(
            f"The services of {home} are already up; a second set was not started. `stagehold status` shows them."
        )


class AirflowRefused(ServiceError, Terminal):
    """Airflow's API, or ours in it, did not do what it was asked for.

    :param said: what was refused and why, in a sentence.
    :param look: where to look if the request does not fit what is there, in a sentence.
    """

    def __init__(self, status: int, said: str, look: str) -> None:
        self.status, self.said, self.look = status, said, look
        super().__init__(f"{said} {look if status in UNFIT else LOOK_AT_AIRFLOW}")


class AirflowSilent(ServiceError, Transient):
    """Nobody answered where Airflow should be, or the answer did not come to its end."""

    def __init__(self, url: str, what: str, why: str) -> None:
        self.url, self.what, self.why = url, what, why
        super().__init__(
            f"Airflow at {url} gave no answer when it was to {what}: {why}. `stagehold status` shows whether it is up "
            "and what it runs; `stagehold up` starts it."
        )


class NotInTime(ServiceError, Terminal):
    """Something that was waited for did not happen within its time."""

    def __init__(self, what: str, seconds: float) -> None:
        self.what, self.seconds = what, seconds
        super().__init__(
            f"Waited {seconds:.0f} s for {what}. Nothing was stopped. `stagehold status` shows how far things are."
        )


class ServicesFailed(ServiceError, Terminal):
    """A local service cannot be started, or ended so often that it was not started again."""

    def __init__(self, service: str, what: str, log_lines: Sequence[str] = ()) -> None:
        self.service, self.what, self.log_lines = service, what, tuple(log_lines)
        log = "".join(f"\n  {line}" for line in self.log_lines)
        super().__init__(
            f"{service} {what}; the other services were stopped. The end of its log:{log}\n"
            "What was recorded stays safe. Mend the cause, then run `stagehold up`."
        )


class DemoFailed(ServiceError, Terminal):
    """The demo's run ended otherwise than it should, or not at all."""

    def __init__(self, run_id: str, state: str, expected: str) -> None:
        self.run_id, self.state, self.expected = run_id, state, expected
        super().__init__(
            f"The demo's run {run_id} is {state}, not {expected}. Airflow is still up; its task logs say why. "
            "`stagehold status` shows services and runs; `make clean` and `make demo` start afresh."
        )
