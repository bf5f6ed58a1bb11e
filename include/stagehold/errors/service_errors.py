"""Errors: the services of this machine are not as they should be."""

from __future__ import annotations

from collections.abc import Sequence

from stagehold.errors.base import StageholdError, Terminal, Transient

UNFIT = (400, 409, 422)  # what was asked for does not fit what is there, as HTTP says it
FORBIDDEN = 403
ASK_FOR_RIGHT = (
    "Nothing was changed. Whoever runs that Airflow gives the right, or STAGEHOLD_AIRFLOW_USER, or "
    "STAGEHOLD_AIRFLOW_TOKEN, names a user who has it."
)
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


class PackageMissing(ServiceError, Terminal):
    """A Python package is needed that only an extra of Stagehold's brings.

    :param environment: the folder of the Python that lacks it.
    :param otherwise: what else would do, in a clause.
    """

    def __init__(self, package: str, extra: str, purpose: str, environment: str, otherwise: str = "") -> None:
        self.package, self.extra, self.purpose, self.environment = package, extra, purpose, environment
        way = f", {otherwise}," if otherwise else ""
        super().__init__(
            f"{package} is needed to {purpose}, and is not installed in {environment}. Nothing was computed, and what "
            f"was recorded stays safe to read. Run `pip install 'stagehold[{extra}]'` there{way} and go on."
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
    :param elsewhere: somebody else runs that Airflow.
    """

    def __init__(self, status: int, said: str, look: str, *, elsewhere: bool = False) -> None:
        self.status, self.said, self.look, self.elsewhere = status, said, look, elsewhere
        right = ASK_FOR_RIGHT if status == FORBIDDEN and elsewhere else LOOK_AT_AIRFLOW
        super().__init__(f"{said} {look if status in UNFIT else right}")


class AirflowSilent(ServiceError, Transient):
    """Nobody answered where Airflow should be, or the answer did not come to its end.

    ``elsewhere`` says that somebody else runs it.
    """

    def __init__(self, url: str, what: str, why: str, *, elsewhere: bool = False) -> None:
        self.url, self.what, self.why, self.elsewhere = url, what, why, elsewhere
        super().__init__(
            f"Airflow at {url} gave no answer when it was to {what}: {why}. `stagehold status` shows whether it is up"
            f"{'. Run the command again when it is.' if elsewhere else ' and what it runs; `stagehold up` starts it.'}"
        )


class AirflowMisconfigured(ServiceError, Terminal):
    """An Airflow cannot be spoken to as it is set: its host, port, TLS or credentials are others.

    :param reason: what is wrong, and ``change`` what to set, in a sentence.
    """

    def __init__(self, url: str, reason: str, change: str) -> None:
        self.url, self.reason, self.change = url, reason, change
        super().__init__(
            f"Airflow at {url} cannot be spoken to: {reason}. Nothing was changed there. {change} Then run the command "
            "again."
        )


class KnownSecrets(ServiceError, Terminal):
    """Containers that others can reach would have passwords and keys that everybody knows."""

    def __init__(self, address: str, names: Sequence[str]) -> None:
        self.address, self.names = address, tuple(names)
        super().__init__(
            f"Others can reach these containers, at {address or 'every address'} (BIND_ADDRESS), and "
            f"{', '.join(self.names)} are those of .env.example, which everybody knows. Nothing was started. Set each "
            "in .env, for example to what `openssl rand -base64 32` prints, and for AIRFLOW_FERNET_KEY to what "
            "`openssl rand -base64 32 | tr '+/' '-_'` prints; or leave BIND_ADDRESS at 127.0.0.1. Then start it again."
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
