"""Writes a small project that runs: a pipeline, its functions, a suite, tests, a DAG file, and files to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from stagehold.errors import FolderInUse, InvalidSetting
from stagehold.settings import load_settings
from stagehold.spec.pipeline_schema import FILE as SCHEMA

TEMPLATE = Path(__file__).with_name("template")
SUFFIX = ".txt"  # what is in the template is no part of the library
HIDDEN = {"gitignore": ".gitignore"}
FILES, ORDERS = 4, 25
CUSTOMERS = ("ann", "bob", "carol", "dan", "eve")


def write_project(folder: Path) -> tuple[Path, ...]:
    """Write a new project, all files or none; gives the files.

    :raises FolderInUse: one of them is there already, and nothing was written.
    :raises InvalidSetting: the lake is in an object store, which the sample's files are not put into.
    """
    lake = load_settings(project=str(folder)).lake_uri
    if "://" in lake:
        raise InvalidSetting("STAGEHOLD_LAKE", lake, "a folder of this machine, since files to read are written there")
    texts = {folder / name: text for name, text in _project_files()}
    texts[folder / "include" / "pipelines" / SCHEMA.name] = SCHEMA.read_text(encoding="utf-8")
    texts |= {Path(lake) / "raw" / "orders" / name: text for name, text in _sample_files()}
    taken = sorted(str(path) for path in texts if path.exists())
    if taken:
        raise FolderInUse(str(folder), taken)
    _write(texts)
    return tuple(texts)


def _write(texts: Mapping[Path, str]) -> None:
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _project_files() -> Iterator[tuple[str, str]]:
    for path in sorted(TEMPLATE.rglob(f"*{SUFFIX}")):
        name = str(path.relative_to(TEMPLATE)).removesuffix(SUFFIX)
        yield HIDDEN.get(name, name), path.read_text(encoding="utf-8")


def _sample_files() -> Iterator[tuple[str, str]]:
    for part in range(FILES):
        rows = (_order(number) for number in range(part * ORDERS, (part + 1) * ORDERS))
        yield f"part-{part}.csv", "\n".join(["order_id,customer,amount", *rows, ""])


def _order(number: int) -> str:
    return f"{number},{CUSTOMERS[number % len(CUSTOMERS)]},{number * 37 % 1000 / 10:.2f}"
