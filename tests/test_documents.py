"""The documents lead nowhere that is not there, and name no command, file or name that the code does not have."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from tests.documents import (
    DECISIONS,
    DOCUMENTS,
    GUIDES,
    LINK,
    README,
    TOP,
    anchors,
    fences,
    named_commands,
    prose,
    spans,
)

from stagehold.cli.main import app
from stagehold.settings import PROJECT

CHANGES = PROJECT / "CHANGELOG.md"
WRITTEN = [path for path in DOCUMENTS if "reference" not in path.parts or path.name == "expectations.md"]
TODAY = [path for path in WRITTEN if path != CHANGES]  # what changed in a version is told in the names of then
# Where the library's folder is left out, as in ARCHITECTURE.md and the decisions.
ROOTS = (PROJECT, PROJECT / "include" / "stagehold")
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)+\.(?:py|js|md|json|yaml|yml|toml|txt|sh)|tests/[\w/]+")
DOTTED = re.compile(r"(?:stagehold|tests)(?:\.\w+)+")
IMPORTED = re.compile(r"from (stagehold\S*) import (\w+)")
# Groups of entry points, what templates of notifiers find, and metrics.
NO_MODULES = re.compile(
    r"stagehold\.(run_status_listeners|stage_status_listeners|leadership_listeners|checkpoint_listeners|failure_enrichers|message|hook|pipeline|cause"
    r"|progressed|remaining|link|yaml|partitions\.\w+|waves|counter|reuse_share|gate\.verdicts|checkpoint_age)"
)
NOT_OURS = ("my_company", "checks/", "gx/", "config/rates.csv", "jobs/sales.py", "include/suites/orders", "2024/")


def named(path: Path) -> str:
    return str(path.relative_to(PROJECT))


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_each_link_leads_to_a_file_and_a_heading_that_are_there(path: Path) -> None:
    lost = []
    for link in LINK.findall(prose(path)):
        file, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = (path.parent / file).resolve() if file else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("path", TODAY, ids=named)
def test_each_command_exists_with_its_options(path: Path) -> None:
    assert [command for command in named_commands(path) if (problem := unknown(command)) and problem] == []


def unknown(words: str) -> str:
    """The first part of a command line that the command does not have; nothing if it has all."""
    command: Any = typer.main.get_command(app)
    parts = shlex.split(words.replace("[", "").replace("]", ""))
    for part in parts[1:]:
        below = getattr(command, "commands", None)
        if below is not None and not part.startswith("-"):
            if part not in below:
                return "" if part.isupper() else part  # COMMAND stands for any of them
            command = below[part]
        elif part.startswith("--") and part.split("=")[0] not in options(command):
            return part
    return ""


def options(command: Any) -> set[str]:
    return {"--help", *(name for one in command.params for name in (*one.opts, *one.secondary_opts))}


@pytest.mark.parametrize("path", [path for path in TODAY], ids=named)
def test_each_file_that_is_named_exists_and_has_what_is_named_in_it(path: Path) -> None:
    """``file::name`` is a test, function or class of a file."""
    assert [span for span in spans(path) if not exists(span)] == []


def exists(span: str) -> bool:
    file, _, test = span.partition("::")
    if not FILE.fullmatch(file) or file.startswith(NOT_OURS):
        return True
    found = [root / file for root in ROOTS if (root / file).exists()]
    if not found:
        return False
    defined = re.compile(rf"\b(?:def|class) {test}\b")
    return not test or any(defined.search(path.read_text(encoding="utf-8")) for path in found)


@pytest.mark.parametrize("path", [path for path in TODAY], ids=named)
def test_each_module_and_name_that_is_named_exists(path: Path) -> None:
    text = [*spans(path), *fences(path, "python", "yaml", "toml", "sh", "console")]
    names = {name for part in text for name in DOTTED.findall(part)}
    imported = {
        f"{module}.{name}" for part in text for module, name in re.findall(r"from (stagehold\S*) import (\w+)", part)
    }
    assert [name for name in sorted(names | imported) if not is_there(name)] == []


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or a name in one; of a module that is not imported for it."""
    module, _, last = name.rpartition(".")
    if not module:
        return True
    if NO_MODULES.fullmatch(name):
        return True
    path = PROJECT.joinpath("include" if name.startswith("stagehold") else "", *name.split("."))
    if path.with_suffix(".py").exists() or (path / "__init__.py").exists():
        return True
    folder = path.parent
    source = folder.with_suffix(".py") if folder.with_suffix(".py").exists() else folder / "__init__.py"
    return source.exists() and re.search(rf"\b{last}\b", source.read_text(encoding="utf-8")) is not None


@pytest.mark.parametrize("path", GUIDES, ids=named)
def test_each_example_in_yaml_can_be_read(path: Path) -> None:
    for block in fences(path, "yaml"):
        yaml.safe_load(block)


def test_each_guide_is_in_the_readme_and_in_the_site() -> None:
    site = (PROJECT / "mkdocs.yml").read_text(encoding="utf-8")
    linked = {link for link in LINK.findall(README.read_text(encoding="utf-8")) if link.startswith("docs/guide/")}
    assert linked == {f"docs/guide/{path.name}" for path in GUIDES}
    assert [path.name for path in GUIDES if f"guide/{path.name}" not in site] == []


def longer(path: Path, columns: int) -> list[str]:
    """Lines of the prose, but for rows of tables, and links and pictures that cannot be broken."""
    lines = prose(path).splitlines()
    return [line for line in lines if len(line) > columns and not line.startswith(("|", "![")) and " " in line.strip()]


@pytest.mark.parametrize("path", WRITTEN, ids=named)
def test_lines_have_at_most_120_columns(path: Path) -> None:
    assert longer(path, 120) == []


@pytest.mark.parametrize(("name", "most"), [("README.md", 150), ("ARCHITECTURE.md", 300)])
def test_a_page_that_everybody_reads_is_short(name: str, most: int) -> None:
    assert len((PROJECT / name).read_text(encoding="utf-8").splitlines()) <= most


def test_the_readme_can_be_read_in_a_terminal() -> None:
    assert [line for line in README.read_text(encoding="utf-8").splitlines() if len(line) > 120] == []


def test_each_decision_says_what_was_so_what_was_chosen_and_what_follows() -> None:
    pages = [path for path in DECISIONS if path.name != "index.md"]
    index = (PROJECT / "docs" / "decisions" / "index.md").read_text(encoding="utf-8")
    assert [path.name[:4] for path in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == ["Context", "Choice", "Consequence"], path.name
        title = text.splitlines()[0].removeprefix("# ")
        assert f"[{title}]({path.name})" in index


def test_versions_are_told_newest_first_and_the_newest_is_this_one() -> None:
    text = CHANGES.read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)$", text, flags=re.MULTILINE)
    numbers = [tuple(map(int, version[:3])) for version in versions]
    assert numbers == sorted(numbers, reverse=True)
    assert [date for *_, date in versions] == sorted((date for *_, date in versions), reverse=True)
    assert f'version = "{".".join(versions[0][:3])}"' in (PROJECT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_documents_at_the_top_are_pages_of_the_site() -> None:
    pages = (PROJECT / "tools" / "site.py").read_text(encoding="utf-8")
    assert [path.name for path in TOP if f'"{path.name}"' not in pages] == []
    assert find_spec("mkdocs") is not None


def test_the_make_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    shown = {word for path in TODAY for word in make_targets(path)}
    assert {"demo", "test"} <= shown
    assert shown <= targets


def make_targets(path: Path) -> set[str]:
    lines = [line.removeprefix("$ ") for block in fences(path, "console", "sh", "text") for line in block.splitlines()]
    return {found[1] for text in (*lines, *spans(path)) if (found := re.match(r"make ([a-z-]+)(?: |$)", text))}
