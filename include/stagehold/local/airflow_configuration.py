"""How the embedded Airflow is set up: one function gives every variable it is started with."""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from stagehold.settings import Settings
from stagehold.spark.processes import python_environment
from stagehold.spark.server.configuration import ADDRESS
from stagehold.spark.server.server_record import write_private

USER = "admin"


def airflow_home(settings: Settings) -> Path:
    return settings.home_path / "airflow"


def airflow_database(settings: Settings) -> Path:
    return airflow_home(settings) / "airflow.db"


def airflow_url(settings: Settings) -> str:
    return f"http://{ADDRESS}:{settings.airflow_port}"


def airflow_environment(settings: Settings) -> Mapping[str, str]:
    """Every variable of Airflow's own, for each of its processes.

    Writes the home's secrets and the password file when they are not there yet.
    """
    home, project, keys = airflow_home(settings), Path(settings.project), _secrets(settings)
    admin_password(settings)
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(project / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(project / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "8",
        "AIRFLOW__CORE__FERNET_KEY": keys["fernet_key"],
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(_password_file(settings)),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{airflow_database(settings)}",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        "AIRFLOW__API__HOST": ADDRESS,
        "AIRFLOW__API__PORT": str(settings.airflow_port),
        "AIRFLOW__API__BASE_URL": airflow_url(settings),  # tasks find the api-server by it, not by the port
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": keys["session_key"],
        "AIRFLOW__API_AUTH__JWT_SECRET": keys["jwt_secret"],
        # The default of 1 s is what most of the time between two tasks consists of. At 0.1 s a scheduler that has
        # nothing to do keeps a sixth of a core busy.
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
        # A task whose supervisor is gone is tried again when its lease has ended, not after five minutes.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(settings.lease_seconds),
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "1",
        # So are the tasks of a scheduler that was killed, which the next one takes over; it beats every 5 s.
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": str(max(settings.lease_seconds, 15)),
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "3",
        "AIRFLOW__WORKERS__SOCKET_CLEANUP_TIMEOUT": "5",
        # A task that has ended holds its slot for up to this long.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        # How soon an edited pipeline is seen. Reading all files every 5 s keeps a sixth of a core busy.
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "2",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
        "AIRFLOW__LOGGING__UVICORN_LOGGING_LEVEL": "WARNING",
    }


def service_environment(settings: Settings) -> Mapping[str, str]:
    """The whole environment of an Airflow process. Another Airflow of this machine has no say and takes no harm."""
    inherited = {name: text for name, text in python_environment(settings).items() if not name.startswith("AIRFLOW_")}
    return {**inherited, **airflow_environment(settings)}


def admin_password(settings: Settings) -> str:
    """The password of user admin: the one set, else the one made up before, else a new one. Airflow reads its file."""
    file = _password_file(settings)
    known = json.loads(file.read_text()).get(USER) if file.exists() else None
    password = settings.admin_password or known or secrets.token_urlsafe(9)
    if password != known:
        write_private(file, json.dumps({USER: password}))
    return password


def _password_file(settings: Settings) -> Path:
    return airflow_home(settings) / "passwords.json"


def _secrets(settings: Settings) -> Mapping[str, str]:
    """Secrets by name, made up once per home: a restarted service accepts what another one has signed or encrypted."""
    file = airflow_home(settings) / "secrets.json"
    if not file.exists():
        keys = {
            "jwt_secret": secrets.token_hex(32),
            "session_key": secrets.token_hex(32),
            "fernet_key": base64.urlsafe_b64encode(os.urandom(32)).decode(),
        }
        write_private(file, json.dumps(keys))
    found: Mapping[str, str] = json.loads(file.read_text())
    return found
