"""Notifiers as users write them; imported by Airflow's own processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier


class FileNotifier(BaseNotifier):
    """Writes a line into a file, below Stagehold's home if its path is relative."""

    template_fields = ("text",)

    def __init__(self, path: str, text: str) -> None:
        super().__init__()
        self.path, self.text = path, text

    def notify(self, context: Any) -> None:
        with (Path(os.environ.get("STAGEHOLD_HOME", "")) / self.path).open("a", encoding="utf-8") as file:
            file.write(f"{self.text}\n")


class RaisingNotifier(FileNotifier):
    def notify(self, context: Any) -> None:
        raise RuntimeError("the pager is out of order")


class NoNotifier:
    """Has nothing of a notifier but its place."""

    def __init__(self, **arguments: Any) -> None: ...
