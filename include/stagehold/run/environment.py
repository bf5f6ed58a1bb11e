"""What another Python process needs in its environment to find the same code and the same settings."""

from __future__ import annotations

import os
from collections.abc import Mapping

from stagehold.settings import PROJECT, Settings


def python_environment(settings: Settings) -> Mapping[str, str]:
    """This process's environment, with ``settings`` spelled out and the library and the project on the Python path."""
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = (str(PROJECT / "include"), settings.project, *inherited)
    return {**os.environ, **settings.environment, "PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, paths)))}
