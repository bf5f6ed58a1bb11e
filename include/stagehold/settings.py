"""Every setting, with its default and type side by side. Read from STAGEHOLD_* environment variables."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from stagehold.errors import InvalidSetting
from stagehold.project_file import ProjectFile, project_file, read_project_file

LIBRARY = Path(__file__).resolve().parents[1]  # the folder that the package is imported from
_HERE, _SOURCE_TREE = Path.cwd(), LIBRARY.parent
_PIPELINES = Path("include", "pipelines")
# The folder in which a command is called; where that is no project, the source tree if there is one.
PROJECT = _SOURCE_TREE if (_SOURCE_TREE / _PIPELINES).is_dir() and not (_HERE / _PIPELINES).is_dir() else _HERE
PREFIX = "STAGEHOLD_"
SECRET_PREFIX = "STAGEHOLD_SECRET_"  # noqa: S105 - how variables with secrets begin
OF_NO_TARGET = ("project", "pipelines", "target", "sandbox")  # what is settled before a target is looked for
SPARK_POOL = "stagehold"  # the Airflow pool of the Spark server's slots
TEST_PREFIX = "STAGEHOLD_TEST_"  # read by the tests alone
_OBJECT_STORE = "s3://"  # as `lake.store.location` has it, which is above this
_PATHS = (
    "home",
    "cache",
    "ivy_settings",
    "lake",
    "pipelines",
    "suites",
    "sandboxes",
    "airflow_credentials",
    "spark_token_file",
    "spark_folder",
    "secrets",
    "local_state",
)
_SQLITE_FILE = re.compile(r"(sqlite(?:\+\w+)?:///)([^/?:][^?:]*)(\?.*)?")  # a relative one
_ADDRESS = re.compile(r"\w[\w+.-]*:")  # what no path of this machine begins with
SANDBOX_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")  # also that of a schema, with the prefix
SANDBOX_SCHEMA = "sandbox_"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """Settings: a field for each STAGEHOLD_<FIELD> variable; an empty string means the default that follows from
    ``home``.

    The text below a field is its row in docs/reference/settings.md, which `make docs` writes.
    """

    home: str = str(PROJECT / ".stagehold")
    """All state lives under this folder. Default: `.stagehold` in the project."""
    cache: str = str(Path.home() / ".cache" / "stagehold")
    """JARs, the Java shim and archives of Java's classes (215 MB each), shared by checkouts. Default:
    `~/.cache/stagehold`."""
    ivy_settings: str = ""
    """Ivy settings file of a mirror that `make setup` gets the JARs from. Default: the public repository."""
    lake: str = ""
    """Folder or `s3://` prefix of the Delta tables. Default: `HOME/lake`."""
    ledger: str = ""
    """SQLAlchemy URL of the ledger. Default: SQLite in `HOME/ledger.db`."""
    pipelines: str = str(PROJECT / "include" / "pipelines")
    """Folder of pipeline files. Default: `include/pipelines` in the project."""
    suites: str = str(PROJECT / "include" / "suites")
    """Folder of gate suites. Default: `include/suites` in the project."""
    project: str = str(PROJECT)
    """Folder that `jobs.x:y` is imported from; its code counts in keys. Default: the current folder if it has
    `include/pipelines`, else the source tree."""
    spark_remote: str = ""
    """Spark Connect URL of a server that somebody else runs. Default: the local server that Stagehold runs."""
    spark_token_file: str = ""
    """File with the token of that server, in place of `token=` in the URL. Default: none."""
    spark_port: int = 0
    """Port of the local Spark server. Default: 15002, or another if a program listens there."""
    spark_memory: str = "2g"
    """Heap of the local Spark server."""
    spark_java_options: str = ""
    """More options of its Java; `-XX:TieredStopAtLevel=1` makes short work quicker and long work slower. Default:
    none."""
    spark_jars: str = ""
    """More JARs for it, such as JDBC drivers, separated by commas. Default: none."""
    spark_master: str = ""
    """Master that the local server's work runs on, such as `spark://host:7077`; a bad host is then left out for a
    while. Default: the server's own threads."""
    spark_conf: str = ""
    """More settings of Spark for it, as a JSON object of texts by names; those that change results are each session's,
    whatever is said here. Default: none."""
    spark_folder: str = ""
    """Its folder, with its log and what it shuffles. Default: `HOME/spark`, and `HOME/logs/spark.log`."""
    spark_start_seconds: int = 180
    """Seconds that this server, or a region's own application, may take to start; on YARN with its wait in a queue."""
    spark_linger: int = 60
    """Seconds that this server is kept for who resumes, when its user was killed; it ends behind a user that leaves."""
    spark_ui: str = ""
    """Where the pages of the Spark server are, as `http://host:4040`, for the link to them below a task. Default:
    no links."""
    spark_cores: int = 2
    """Task slots of the local server; the smallest wave is twice as many partitions."""
    only_spark_writer: bool = False
    """Whether one Spark server makes every commit to an S3 lake, which allows `committer: delta_spark` there."""
    airflow_port: int = 8080
    """Port of Airflow's api-server that `stagehold up` starts."""
    admin_password: str = ""
    """Password of the user `admin` of the Airflow that `stagehold up` starts. Default: made up once and kept in
    HOME."""
    airflow_url: str = ""
    """Address of the Airflow that commands resume, backfill and cancel runs in, such as `https://airflow.example`.
    Default: the one of `stagehold up`; inside Airflow's own processes the one of Airflow's configuration."""
    airflow_token: str = ""
    """Token for it, as `POST /auth/token` gives. Default: one is asked for with a user and a password."""
    airflow_user: str = ""
    """User for it. Default: the one of the file of credentials."""
    airflow_password: str = ""
    """Password of that user. Default: the one of the file of credentials."""
    airflow_credentials: str = ""
    """File with users and passwords by hosts in the form of `.netrc`, which only its owner may read; the user
    `__token__` has a token for a password. Default: none."""
    lease_seconds: int = 15
    """An attempt that is silent for longer has lost its region."""
    lease_wait_seconds: int = 3600
    """How many seconds an attempt waits for somebody else who works on the same region and interval."""
    sweep_after_seconds: int = 3600
    """Files of dead attempts that nothing knows of are deleted when they are older than so many seconds."""
    attempt_retries: int = 2
    """Restarts of one region, where the restart strategy has no limit of its own."""
    restart: str = ""
    """Restart strategy of pipelines that declare no `restart`: its name, or `{strategy: fixed-delay, attempts: 3}`;
    `as-flink`: `exponential-delay` with a `checkpoint.interval`, else `none`. Default: `exponential-delay`."""
    spark_slots: int = 0
    """Slots of the Airflow pool `stagehold` that region tasks share; `stagehold up` makes it, elsewhere `airflow
    pools set` does; 0 is no pool."""
    input_seconds: int = 3600
    """How many seconds a task of an eager pipeline waits for what it reads."""
    kept_megabytes: int = 64
    """Megabytes that a process may keep at most of what it has read and made, so that the next request is answered
    sooner: pipelines, plans, pages. `stagehold/api/health` on the api-server says what is kept."""
    rights: str = ""
    """Which roles of Airflow may do what not everybody may who may resume a run, as `waive=op,admin;
    dispose_savepoint=admin`; `*` is everybody. Default: `op` and `admin`."""
    target: str = ""
    """Which of `targets` in `stagehold.yaml` of the project gives the settings that no variable gives, as `--target`.
    Default: none."""
    sandbox: str = ""
    """Name of the sandbox that commands work in, as `--sandbox`. Default: production."""
    sandboxes: str = ""
    """Folder or `s3://` prefix of the lakes of sandboxes. Default: `HOME/sandboxes`; `LAKE-sandboxes` for a lake in
    a bucket."""

    local_state: str = ""
    """Folder on a disk of this worker for copies of the newest outputs and state that it wrote: what the lake loses of
    them, or has otherwise, is put back from there. Default: none are kept."""
    local_state_megabytes: int = 4096
    """Megabytes of that folder; the oldest copies go first."""
    secrets: str = ""
    """Folder of files with secrets, each called like its secret and with mode 0600. Default: `HOME/secrets`."""

    @property
    def home_path(self) -> Path:
        return Path(self.home).absolute()

    @property
    def lake_uri(self) -> str:
        """Where everything is written that is no row of the ledger."""
        if self.sandbox:
            return f"{self.sandboxes_uri}/{self.sandbox}/lake"
        return self.lake or str(self.home_path / "lake")

    @property
    def ledger_url(self) -> str:
        if self.sandbox:
            return self._sandbox_ledger
        return self.ledger or f"sqlite:///{self.home_path / 'ledger.db'}"

    @property
    def secrets_folder(self) -> str:
        return self.secrets or str(self.home_path / "secrets")

    @property
    def production(self) -> Settings:
        """The settings that are in no sandbox. A sandbox reads that lake, and never writes there."""
        return replace(self, sandbox="")

    @property
    def sandboxes_uri(self) -> str:
        """The folder of the sandboxes' lakes."""
        lake = self.production.lake_uri.rstrip("/")
        beside = f"{lake}-sandboxes" if lake.startswith(_OBJECT_STORE) else str(self.sandboxes_folder)
        return self.sandboxes.rstrip("/") or beside

    @property
    def sandboxes_folder(self) -> Path:
        """Where sandboxes have on this machine what lies in no object store and on no server."""
        return self.home_path / "sandboxes"

    def in_sandbox(self, name: str) -> Settings:
        """The settings with a lake and a ledger of the sandbox's own, in place of production's.

        :raises InvalidSetting: no sandbox can be called so, or its lake and production's would overlap.
        """
        if not SANDBOX_NAME.fullmatch(name):
            allowed = "small letters, digits and -, at most 40 of them, with no - in front"
            raise InvalidSetting(_variable("sandbox"), name, allowed)
        found = replace(self, sandbox=name)
        _keep_apart(found.production, found)
        return found

    def reads_only(self, table: str) -> bool:
        """Whether a table is production's, and these settings are a sandbox's."""
        lake = self.production.lake_uri
        root = lake.rstrip("/") if lake.startswith(_OBJECT_STORE) else str(Path(lake).absolute())
        return bool(self.sandbox) and table.startswith(f"{root}/")

    @property
    def _sandbox_ledger(self) -> str:
        if self.ledger and not self.ledger.startswith("sqlite"):
            return _in_schema(self.ledger, self._schema)
        return f"sqlite:///{self.sandboxes_folder / self.sandbox / 'ledger.db'}"

    @property
    def _schema(self) -> str:
        return f"{SANDBOX_SCHEMA}{self.sandbox.replace('-', '_')}"

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables with which `load_settings` gives these settings in another process, whatever its folder."""
        return {_variable(field.name): str(getattr(self, field.name)) for field in fields(self)} | {
            "STAGEHOLD_HOME": str(self.home_path)
        }


def load_settings(environment: Mapping[str, str] = os.environ, project: str = "") -> Settings:
    """Read settings from ``environment``; refuse a number that is none,
    and warn of a STAGEHOLD_ variable that does not exist.

    Folders that are not named are those of the project, and relative ones are seen from its folder; that itself is
    seen from the current one.

    :param project: its folder or that of its pipelines, which counts more than what the environment says of both.
    """
    known = tuple(_variable(field.name) for field in fields(Settings))
    for name in environment:
        if name.startswith(PREFIX) and not name.startswith((TEST_PREFIX, SECRET_PREFIX)) and name not in known:
            _warn_of_unknown(name, known)
    named = {
        field.name: _read(field.name, field.type, environment)
        for field in fields(Settings)
        if _variable(field.name) in environment
    }
    place = project or named.get("project", "")
    usual = _folders(Path(place).absolute()) if place else {}
    nearer = {field: folder for field, folder in usual.items() if project and field != "home"}
    plain = replace(Settings(), **{**usual, **named, **nearer})
    found = _on_target(plain, named) if plain.target else _from_project(plain)
    return found.in_sandbox(found.sandbox) if found.sandbox else found


def _on_target(plain: Settings, named: Mapping[str, Any]) -> Settings:
    """The settings with those of their target, where the environment says nothing else.

    :raises InvalidSetting: there is no such target, or one of its values is outside what is allowed
    :raises InvalidSpec: the project's file has something that no target can have
    """
    types = {field.name: field.type for field in fields(Settings) if field.name not in OF_NO_TARGET}
    said = checked_project_file(plain.project)
    if plain.target not in said.targets:
        known = f"targets of {project_file(Path(plain.project))}: {', '.join(said.targets) or 'it has none'}"
        raise InvalidSetting(_variable("target"), plain.target, known)
    texts = {_variable(name): text for name, text in said.settings_of(plain.target).items()}
    given = {name: _read(name, kind, texts) for name, kind in types.items() if _variable(name) in texts}
    wanted = _from_project(replace(plain, **given))
    found = _from_project(replace(plain, **{name: value for name, value in given.items() if name not in named}))
    for name in given:
        if getattr(wanted, name) != getattr(found, name):
            _tell_of_stronger(plain.target, _variable(name))
    return found


def checked_project_file(project: str) -> ProjectFile:
    """What the project's file says, with all of its targets, chosen or not.

    :raises InvalidSpec: it has something that no target can have, or is no such file
    """
    named = (field.name for field in fields(Settings) if field.name not in OF_NO_TARGET)
    return read_project_file(Path(project), tuple(named))


@cache
def _tell_of_stronger(target: str, variable: str) -> None:
    """Once per process, and without values: an address may have a password in it."""
    log.warning("%s is set, so it counts, and not what target %s says.", variable, target)


def _from_project(settings: Settings) -> Settings:
    """The settings with whole paths. Links to the project are followed, as a shell does that tells its folder."""
    root = Path(settings.project).resolve()
    paths: Mapping[str, Any] = {field: _whole(getattr(settings, field), root) for field in _PATHS}
    jars = ",".join(_whole(jar, root) for jar in settings.spark_jars.split(","))
    ledger = settings.ledger
    if database := _SQLITE_FILE.fullmatch(ledger):
        ledger = f"{database[1]}{root / database[2]}{database[3] or ''}"
    project = str(Path(settings.project).absolute())
    return replace(settings, **paths, project=project, spark_jars=jars, ledger=ledger)


def _whole(path: str, root: Path) -> str:
    return path if not path or path.startswith("/") or _ADDRESS.match(path) else str(root / path)


def _folders(place: Path) -> Mapping[str, str]:
    """The folders of a project, or of a project's folder of pipelines; its state lies in it, too."""
    usual = place / _PIPELINES
    pipelines = usual if usual.is_dir() or not any(place.glob("*.yaml")) else place
    include = pipelines.parent
    project = include.parent if include.name == "include" else include
    folders = {"project": project, "home": project / ".stagehold", "pipelines": pipelines, "suites": include / "suites"}
    return {field: str(folder) for field, folder in folders.items()}


@cache
def _warn_of_unknown(name: str, known: tuple[str, ...]) -> None:
    """Warn of variables that no setting knows, once per process: settings are read again and again. A variable may also
    be of a newer or an older Stagehold.
    """
    (nearest,) = get_close_matches(name, known, n=1, cutoff=0)
    log.warning(
        "%s is set, but there is no such setting, so it does nothing. The nearest name is %s; "
        "docs/reference/settings.md lists all.",
        name,
        nearest,
    )


def _keep_apart(production: Settings, sandbox: Settings) -> None:
    """Refuse a sandbox that is not apart from production: whatever lies below a sandbox's lake is the sandbox's own,
    and nothing else is; likewise its ledger.

    :raises InvalidSetting: one of the two lakes lies in the other, or in a bucket that may be somebody else's, or
        production's ledger has the place of the sandbox's.
    """
    ledger = unquote(production.ledger_url)
    if ledger == sandbox.ledger_url or f"search_path={sandbox._schema}" in ledger:
        raise InvalidSetting(_variable("sandbox"), sandbox.sandbox, "another name: production's ledger lies there")
    lake = production.lake_uri
    here, there = _real(lake), _real(sandbox.lake_uri)
    whole_bucket = lake.startswith(_OBJECT_STORE) and "/" not in lake.removeprefix(_OBJECT_STORE).rstrip("/")
    if here.startswith(there) or there.startswith(here) or (whole_bucket and not sandbox.sandboxes):
        allowed = f"a folder or prefix that is not in {lake}, and has that not in it"
        raise InvalidSetting(_variable("sandboxes"), sandbox.sandboxes, allowed)


def _real(uri: str) -> str:
    """The real path of a folder, whatever links lead to it."""
    return f"{uri.rstrip('/') if uri.startswith(_OBJECT_STORE) else Path(uri).resolve()}/"


def _in_schema(url: str, schema: str) -> str:
    """A PostgreSQL database as who sees this schema alone; of two options with one name the last counts."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query)
    options = [value for name, value in query if name == "options"]
    others = [(name, value) for name, value in query if name != "options"]
    mine = ("options", " ".join((*options, f"-csearch_path={schema}")))
    return urlunsplit(parts._replace(query=urlencode([*others, mine])))


def _variable(field: str) -> str:
    return f"{PREFIX}{field.upper()}"


def _read(field: str, kind: object, environment: Mapping[str, str]) -> Any:
    text = environment[_variable(field)]
    if kind == "bool":
        return _read_switch(_variable(field), text)
    if kind != "int":
        return text
    if not text.isdigit():
        raise InvalidSetting(_variable(field), text, "a whole number, 0 or more")
    return int(text)


def _read_switch(variable: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidSetting(variable, text, "true or false")
    return text.lower() == "true"
