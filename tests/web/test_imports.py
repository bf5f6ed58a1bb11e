"""The pages have no build step, so nothing but a browser would notice a name that a module does not have."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

WEB = Path(__file__).resolve().parents[2] / "include" / "stagehold" / "web"
MODULES = sorted(WEB.rglob("*.js"))
VENDORED = WEB / "vendor"
IMPORT = re.compile(r'^import (\w+|\{[^}]*\}) from "([^"]+)";', re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)


def imported(module: Path) -> list[tuple[str, Path]]:
    """Each name that a module imports, and the module that it is from."""
    return [
        (name.split(" as ")[0].strip(), (module.parent / source).resolve())
        for names, source in IMPORT.findall(module.read_text())
        for name in names.strip("{}").split(",")
        if name.strip()
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(WEB)))
def test_a_module_imports_what_exists_and_imports_it_once(module: Path) -> None:
    names = imported(module)
    assert [name for name, count in Counter(name for name, _ in names).items() if count > 1] == []
    missing = [
        (name, source.name)
        for name, source in names
        if not source.exists() or (source.parent != VENDORED and name not in EXPORT.findall(source.read_text()))
    ]
    assert missing == []


def test_every_module_belongs_to_a_page() -> None:
    reached, left = set[Path](), [*WEB.glob("*_page/*_page.js")]
    while left:
        module = left.pop()
        if module not in reached:
            reached.add(module)
            left += [source for _, source in imported(module)]
    assert {str(path.relative_to(WEB)) for path in MODULES if path not in reached} == set()


def test_no_two_modules_have_one_name() -> None:
    assert [name for name, count in Counter(path.name for path in MODULES).items() if count > 1] == []


@pytest.mark.parametrize("module", [path for path in MODULES if path.parent != VENDORED], ids=lambda path: path.name)
def test_the_types_of_every_module_of_ours_are_checked(module: Path) -> None:
    assert module.read_text().startswith("// @ts-check\n")
