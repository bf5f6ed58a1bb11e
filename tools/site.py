"""Hooks of mkdocs: the documents at the top of the repository are pages of the site.

Links between documents are written for the repository, so that they work on a git forge. Here those that leave docs/
or come into it are turned into links of the site.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

TOP = Path(__file__).resolve().parents[1]
PAGES = {name: name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE")}
PAGES["README.md"] = "index.md"
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)[^)\s]+")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    assert config.nav is not None
    decisions = sorted(path.name for path in (TOP / "docs" / "decisions").glob("0*.md"))
    config.nav[-1]["Decisions"] += [f"decisions/{name}" for name in decisions]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for name, page in PAGES.items():
        text = LINK.sub(lambda link: from_the_top(link[0]), (TOP / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    depth = page.file.src_uri.count("/")
    return LINK.sub(lambda link: out_of_docs(link[0], depth), markdown)


def from_the_top(link: str) -> str:
    """A link of a document at the top, as one of the page that it is in the site."""
    file, mark, anchor = link.partition("#")
    return PAGES.get(file, file.removeprefix("docs/")) + mark + anchor


def out_of_docs(link: str, depth: int) -> str:
    """A link of a document in docs/, which may lead to one at the top."""
    file, mark, anchor = link.partition("#")
    up = "../" * depth
    target = file.removeprefix(f"{up}../")
    return up + PAGES[target] + mark + anchor if file != target and target in PAGES else link
