"""What another Python process needs in its environment to find the same code and the same settings."""

from __future__ import annotations

import os
from collections.abc import Mapping

from stagehold.settings import LIBRARY, Settings


def python_environment(settings: Settings) -> Mapping[str, str]:
    """This process's environment, with ``settings`` spelled out and the library and the project on the Python path."""
    paths = (*_own_paths(settings), *_inherited_paths())
    return {**os.environ, **settings.environment, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def foreign_environment(settings: Settings) -> Mapping[str, str]:
    """The same for Spark's server, which must not find our code: its workers are sent what they import."""
    paths = [path for path in _inherited_paths() if path not in _own_paths(settings)]
    return {**os.environ, **settings.environment, "PYTHONPATH": os.pathsep.join(paths)}


def _own_paths(settings: Settings) -> tuple[str, str]:
    return str(LIBRARY), settings.project


def _inherited_paths() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
