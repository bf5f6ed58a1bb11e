"""``python -m stagehold.local.setup``: what `make setup` does after the Python packages are there."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import Progress

from stagehold.errors import StageholdError
from stagehold.local.setup.jars import STEPS_PER_JAR, check_jars, fetch_jars
from stagehold.local.setup.training import lacking_archive, make_archive
from stagehold.settings import Settings, load_settings
from stagehold.spark.server.java import jar_folder, pinned_jars


def prepare(settings: Settings, console: Console) -> None:
    """Make the cache complete; says nothing and takes no time when it already is."""
    if any(check_jars(jar_folder(settings))):
        _fetch(settings, console)
    if place := lacking_archive(settings):
        console.print("Making the archive of classes that halves each start of Spark, once (about a minute)")
        made = make_archive(settings, place)
        console.print("Archive made" if made else "Not made: Spark starts more slowly, and tries to make it again")


def _fetch(settings: Settings, console: Console) -> None:
    console.print(f"Fetching the {len(pinned_jars())} JARs that Spark needs (27 MB), once, into {jar_folder(settings)}")
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("about a minute", total=len(pinned_jars()) * STEPS_PER_JAR)
        fetch_jars(settings, step=lambda: progress.advance(task))
    console.print("JARs fetched and checked")


def main() -> int:
    try:
        prepare(load_settings(), Console(soft_wrap=True))
    except StageholdError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
