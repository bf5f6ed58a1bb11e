"""Where in the lake the pages of an interval lie, how they come there, and how they are read."""

from __future__ import annotations

import logging
import os
import re

from stagehold.gates.docs.contents import DocSite
from stagehold.gates.docs.rendering import INDEX, render_index, render_page
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import lake_root, path_safe

FOLDER = "_docs"  # no table, stage or checkpoint can be called so: such names begin with a letter or digit
NAME = re.compile(r"(?:index|\d{1,6})\.html", re.ASCII)


def docs_uri(lake_uri: str, pipeline: str, interval: str) -> str:
    return f"{lake_root(lake_uri)}/{FOLDER}/{path_safe(pipeline)}/{path_safe(interval)}"


def write_docs(site: DocSite, lake_uri: str) -> str:
    """Render and write all pages, in place of those that are there. Says where the first one is.

    Importing Great Expectations takes some seconds, each page some hundredths of one. The index comes last; who reads
    meanwhile may find a page missing, and who dies leaves pages without an index, until it is done again.
    """
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    # it says at import what it registers
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    uri = docs_uri(lake_uri, site.pipeline, site.interval)
    pages = {page.file: render_page(page, site) for page in site.pages} | {INDEX: render_index(site)}
    files = files_at(uri)
    files.delete("")
    for name, text in pages.items():
        files.create(name, text.encode())
    return f"{uri}/{INDEX}"


def read_page(name: str, lake_uri: str, pipeline: str, interval: str) -> bytes | None:
    """A page that was written; None if there is none. No other name than those of pages is looked for."""
    if not NAME.fullmatch(name):
        return None
    try:
        return files_at(docs_uri(lake_uri, pipeline, interval)).read(name)
    except FileNotFoundError:
        return None


def have_docs(lake_uri: str, pipeline: str, interval: str) -> bool:
    return INDEX in files_at(docs_uri(lake_uri, pipeline, interval)).names()
