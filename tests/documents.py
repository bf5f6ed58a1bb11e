"""What tests ask of the documents: their text, fences, commands, links and the files that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from stagehold.settings import PROJECT

TOP = tuple(sorted(PROJECT.glob("*.md")))
GUIDES = tuple(sorted((PROJECT / "docs" / "guide").glob("*.md")))
DECISIONS = tuple(sorted((PROJECT / "docs" / "decisions").glob("*.md")))
DOCUMENTS = (*TOP, *sorted((PROJECT / "docs").rglob("*.md")))
README = PROJECT / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^\$ (.+)$", flags=re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SPAN = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")


def fences(path: Path, *kinds: str) -> list[str]:
    """The texts of code blocks, of these kinds or of any."""
    return [text for kind, text in FENCE.findall(path.read_text(encoding="utf-8")) if not kinds or kind in kinds]


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def spans(path: Path) -> list[str]:
    """What stands between backticks in the prose, each in one line."""
    return [" ".join(span.split()) for span in SPAN.findall(prose(path))]


def run_commands(path: Path) -> list[str]:
    """The commands that the document shows to be run, in its order: a test runs each of them."""
    return [command for block in fences(path, "console") for command in SHOWN.findall(block)]


def named_commands(path: Path) -> Iterator[str]:
    """Every ``stagehold ...`` that the document names, in a block or in the prose."""
    for block in fences(path, "console", "text", "sh"):
        lines = (line.removeprefix("$ ").partition("  #")[0].strip() for line in block.splitlines())
        yield from (part for line in lines for part in line.split(" && ") if part.startswith("stagehold "))
    yield from (span for span in spans(path) if span.startswith("stagehold "))


def anchors(path: Path) -> set[str]:
    """The anchors of the document's headings, as git forges and the site make them."""
    headings = re.findall(r"^#+ (.+)$", prose(path), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
