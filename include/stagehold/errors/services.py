"""Errors: the services of this machine are not as they should be."""

from __future__ import annotations

from collections.abc import Sequence

from stagehold.errors.base import StageholdError, Terminal


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
    """Airflow's REST API answered with an error."""

    def __init__(self, method: str, path: str, status: int, answer: str) -> None:
        self.method, self.path, self.status, self.answer = method, path, status, answer
        super().__init__(
            f"Airflow answered {method} {path} with {status}: {answer[:500]}. This call changed nothing. "
            "`stagehold status` shows whether Airflow is well."
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
