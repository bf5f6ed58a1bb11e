"""Pages of verdicts: which pages an interval has, where they are in the lake, and how Great Expectations' own renderers
make them, in a frame of ours that needs nothing from the internet.

Their frame loads styles, scripts and pictures from seven sites, and their templates take values of data and names of
columns for markup. So we take the body of their page without its scripts, and escape such texts before. A policy in the
page's head lets it run and load nothing at all; a browser obeys it for a file on disk as well.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

from stagehold.errors import DocsNotWritten
from stagehold.extras import Extra, require
from stagehold.gates.verdicts import ROWS, Outcome, Waived, outcome_of
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import lake_root, path_safe
from stagehold.model.choices import Waiver
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import GateResult

if TYPE_CHECKING:
    from great_expectations.core.expectation_validation_result import (
        ExpectationSuiteValidationResult,
        ExpectationValidationResult,
    )

MOST_PAGES = 40  # of a stage; pages with the most unmet expectations come first
FOLDER = "_docs"  # no table, stage or checkpoint has this name: theirs begin with a letter or digit
PAGE_NAME = re.compile(r"(?:index|\d{1,6})\.html", re.ASCII)
INDEX = "index.html"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
BODY = re.compile(r"<body>(.*)</body>", re.DOTALL)
UNWANTED = re.compile(
    r"<script\b.*?</script>|<link\b[^>]*>|<img\b[^>]*>|<footer\b.*?</footer>|Data asset: None<br>| onclick=\"[^\"]*\"",
    re.DOTALL,
)
LINKS_AWAY = re.compile(r'href="(?!#)[^"]*"')
WORDS = {
    Outcome.PASSED: "met",
    Outcome.FAILED: "not met: blocks",
    Outcome.WAIVED: "not met, and waived",
    Outcome.WARNING: "not met: warning",
    Outcome.INFO: "not met: info",
}


@dataclass(frozen=True)
class DocPage:
    """A page for partitions on which every expectation has the same verdict. ``results`` and ``waivers`` are those of
    the first of them.
    """

    file: str
    stage: str
    partitions: tuple[int, ...]
    results: tuple[GateResult, ...]
    outcomes: Mapping[Outcome, int]
    waivers: tuple[Waiver, ...]

    @property
    def title(self) -> str:
        return f"{self.stage}[{PartitionSet(self.partitions)}]"

    @property
    def suite(self) -> str:
        return self.results[0].suite

    @property
    def judged_at(self) -> datetime:
        return max(result.recorded_at for result in self.results)


@dataclass(frozen=True)
class DocSite:
    """The pages of one interval. ``left_out`` are partitions, by stage, that have no page, because there would be too
    many.
    """

    pipeline: str
    interval: str
    pages: tuple[DocPage, ...]
    left_out: Mapping[str, tuple[int, ...]]


def site_of(
    pipeline: str, interval: str, results: Mapping[str, Sequence[GateResult]], waived: Mapping[str, Waived]
) -> DocSite:
    """The pages of an interval: partitions with the same verdicts share a page.

    :param results: by stage, the verdicts of each partition when it was last judged.
    :param waived: by stage, the waivers that hold for the data on record.
    """
    pages: list[DocPage] = []
    left_out: dict[str, tuple[int, ...]] = {}
    for stage, found in results.items():
        of_stage = _pages(stage, found, waived.get(stage, {}), len(pages))
        pages += of_stage[:MOST_PAGES]
        others = sorted(number for page in of_stage[MOST_PAGES:] for number in page.partitions)
        left_out |= {stage: tuple(others)} if others else {}
    return DocSite(pipeline, interval, tuple(pages), left_out)


def _pages(stage: str, results: Iterable[GateResult], waived: Waived, before: int) -> Sequence[DocPage]:
    by_partition: dict[int, list[GateResult]] = {}
    for result in results:
        by_partition.setdefault(result.partition, []).append(result)
    alike: dict[tuple[tuple[str, Outcome], ...], list[int]] = {}
    for partition, said in by_partition.items():
        alike.setdefault(tuple((result.expectation, outcome_of(result, waived)) for result in said), []).append(
            partition
        )
    worst_first = sorted(
        alike.items(), key=lambda kind: sum(came is Outcome.PASSED for _, came in kind[0]) - len(kind[0])
    )
    return [
        DocPage(
            file=f"{before + place}.html",
            stage=stage,
            partitions=tuple(sorted(partitions)),
            results=tuple(by_partition[partitions[0]]),
            outcomes={outcome: count for outcome in Outcome if (count := sum(came is outcome for _, came in kind))},
            waivers=tuple(waived[key] for name, _ in kind if (key := (partitions[0], name)) in waived),
        )
        for place, (kind, partitions) in enumerate(worst_first)
    ]


def docs_uri(lake_uri: str, pipeline: str, interval: str) -> str:
    return f"{lake_root(lake_uri)}/{FOLDER}/{path_safe(pipeline)}/{path_safe(interval)}"


def write_docs(site: DocSite, lake_uri: str) -> str:
    """Render and write all pages in place of those that are there; return where the first one is.

    Importing Great Expectations takes some seconds, each page some hundredths of a second. The index is written last: a
    reader may find a page missing meanwhile, and a writer that dies leaves pages without an index until they are
    written again.

    :raises PackageMissing: Great Expectations is not installed.
    """
    require(Extra.GATES)
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    # at import it logs what it registers
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    uri = docs_uri(lake_uri, site.pipeline, site.interval)
    pages = {page.file: render_page(page, site) for page in site.pages} | {INDEX: render_index(site)}
    files = files_at(uri)
    files.delete("")
    for name, text in pages.items():
        files.create(name, text.encode())
    return f"{uri}/{INDEX}"


APART = """
import pickle, sys
from stagehold.gates.verdict_pages import write_docs
write_docs(*pickle.load(sys.stdin.buffer))
"""
MOST_SECONDS = 300  # to write all pages


def write_docs_apart(site: DocSite, lake_uri: str) -> None:
    """Write the pages in a process of its own, for a caller that lives on: Great Expectations takes hundreds of
    megabytes.

    :raises DocsNotWritten: with the last line of that process's errors.
    :raises PackageMissing: Great Expectations is not installed.
    """
    require(Extra.GATES)
    paths = os.pathsep.join(filter(None, sys.path))
    try:
        done = subprocess.run(
            [sys.executable, "-c", APART],
            input=pickle.dumps((site, lake_uri)),
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            timeout=MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DocsNotWritten(site.pipeline, site.interval, f"it took more than {MOST_SECONDS} seconds") from error
    if done.returncode:
        raise DocsNotWritten(site.pipeline, site.interval, done.stderr.decode(errors="replace"))


def read_page(name: str, lake_uri: str, pipeline: str, interval: str) -> bytes | None:
    """A page that was written; None if there is none. Only names of pages are looked for."""
    if not PAGE_NAME.fullmatch(name):
        return None
    try:
        return files_at(docs_uri(lake_uri, pipeline, interval)).read(name)
    except FileNotFoundError:
        return None


def have_docs(lake_uri: str, pipeline: str, interval: str) -> bool:
    return INDEX in files_at(docs_uri(lake_uri, pipeline, interval)).names()


def render_page(page: DocPage, site: DocSite) -> str:
    """One page, with Great Expectations' view of the first of its partitions.

    An expectation that Great Expectations does not know here, such as one of the project's own, has a line of ours.
    """
    known, unknown = _shown(page.results)
    body = _their_body(page, site, known) if known else ""
    rows = "".join(map(_rows_seen, page.results))
    return _framed(
        f"{page.title} of {site.pipeline}", f"{_heading(page, site)}<main class=gx>{body}{unknown}{rows}</main>"
    )


def _rows_seen(result: GateResult) -> str:
    """Unexpected rows by the keys that the suite names; Great Expectations shows values alone."""
    rows = json.loads(result.result or "{}").get(ROWS) or ()
    if not rows:
        return ""
    heads = "".join(f"<th>{escape(str(name))}" for name in rows[0])
    cells = "".join(f"<tr>{''.join(f'<td>{escape(str(value))}' for value in row.values())}" for row in rows)
    title = f"<h5 class=alert>Rows that do not meet {escape(result.expectation)}</h5>"
    return f"{title}<table class=table><tr>{heads}{cells}</table>"


def _their_body(page: DocPage, site: DocSite, known: list[ExpectationValidationResult]) -> str:
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view.view import DefaultJinjaPageView

    document = ValidationResultsPageRenderer().render(_validation(page, site, known))
    found = BODY.search(DefaultJinjaPageView().render(document))  # type: ignore[no-untyped-call]
    assert found, "a page of Great Expectations has a body"
    return LINKS_AWAY.sub(f'href="{INDEX}"', UNWANTED.sub("", found.group(1)))


def render_index(site: DocSite) -> str:
    rows = "".join(
        f'<tr><td><a href="{page.file}">{escape(page.title)}</a><td>{escape(page.suite)}'
        f"<td>{escape(_counts(page))}<td>{page.judged_at:%Y-%m-%d %H:%M:%S} UTC"
        for page in site.pages
    )
    left_out = "".join(
        f"<p>{escape(stage)}[{PartitionSet(numbers)}] have no page, since there would be too many: "
        "<code>stagehold gates RUN --json</code> tells of each."
        for stage, numbers in site.left_out.items()
    )
    heading = f"<h1>Gates of {escape(site.pipeline)} for {escape(site.interval)}</h1>"
    about = "<p>One page for all partitions of which every expectation says the same."
    table = f"<table class=table><tr><th>Partitions<th>Gate<th>Expectations<th>Judged{rows}</table>"
    return _framed(f"Gates of {site.pipeline}", f"<header>{heading}{about}</header><main>{table}{left_out}</main>")


def _framed(title: str, body: str) -> str:
    return (
        "<!DOCTYPE html><html lang=en><meta charset=utf-8>"
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLES}</style><body>{body}</body></html>"
    )


def _heading(page: DocPage, site: DocSite) -> str:
    which = f"{site.pipeline} for {site.interval}, gate {page.suite}: {_counts(page)}"
    others = f" What was seen is that of partition {page.partitions[0]}." if len(page.partitions) > 1 else ""
    waivers = "".join(
        f"<p class=waiver>{escape(f'{waiver.waived_by} waived {waiver.expectation}: {waiver.reason}')}"
        f"{f', until {waiver.until:%Y-%m-%d %H:%M} UTC' if waiver.until else ''}"
        for waiver in page.waivers
    )
    return (
        f'<header><a href="{INDEX}">All pages</a><h1>{escape(page.title)}</h1><p>{escape(which)}.{others}'
        f"{waivers}</header>"
    )


def _counts(page: DocPage) -> str:
    return ", ".join(f"{count} {WORDS[outcome]}" for outcome, count in page.outcomes.items())


def _validation(
    page: DocPage, site: DocSite, known: list[ExpectationValidationResult]
) -> ExpectationSuiteValidationResult:
    import great_expectations
    from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult

    met = sum(bool(result.success) for result in known)
    statistics = {
        "evaluated_expectations": len(known),
        "successful_expectations": met,
        "unsuccessful_expectations": len(known) - met,
        "success_percent": 100 * met / len(known),
    }
    meta = {
        "great_expectations_version": great_expectations.__version__,
        "run_id": {"run_name": escape(site.interval), "run_time": page.judged_at.isoformat()},
    }
    return ExpectationSuiteValidationResult(
        success=met == len(known),
        results=known,
        suite_name=escape(page.suite),
        statistics=statistics,
        meta=meta,
    )


def _shown(results: Sequence[GateResult]) -> tuple[list[ExpectationValidationResult], str]:
    """The results that Great Expectations can render, and a table of all others."""
    known: list[ExpectationValidationResult] = []
    rows = ""
    for result in results:
        if theirs := _theirs(result):
            known.append(theirs)
        else:
            came = "met" if result.passed else f"not met ({result.severity})"
            rows += f"<tr><td>{escape(result.expectation)}<td>{came}<td>{escape(result.observed)}"
    table = f"<h5 class=alert>Told without Great Expectations' words</h5><table class=table>{rows}</table>"
    return known, table if rows else ""


def _theirs(result: GateResult) -> ExpectationValidationResult | None:
    """The result as an object of Great Expectations; None if it does not know such an expectation here, or not with
    these arguments.
    """
    import great_expectations.expectations.core  # noqa: F401 - registers its expectations
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    configuration = ExpectationConfiguration(**_configuration(result))
    try:
        configuration.to_domain_obj()
    except Exception:  # noqa: BLE001 - its errors have no common class
        return None
    return ExpectationValidationResult(
        success=result.passed,
        expectation_config=configuration,
        result=_escaped(json.loads(result.result or "{}")),
        meta={},
        exception_info={"raised_exception": False, "exception_message": None, "exception_traceback": None},
    )


def _configuration(result: GateResult) -> dict[str, Any]:
    """The expectation of a verdict. An old version recorded verdicts without it; then only its type is known."""
    kept = json.loads(result.configuration or "{}")
    kwargs = {name: value for name, value in kept.get("kwargs", {}).items() if name != "batch_id"}
    # Their templates escape all arguments but this one where it is a heading.
    kwargs |= {"column": _escaped(kwargs["column"])} if "column" in kwargs else {}
    named = str(kept.get("type") or result.expectation.partition("(")[0])
    return {"type": escape(named), "kwargs": kwargs, "meta": {}, "severity": result.severity.value}


def _escaped(value: Any) -> Any:
    """The value with all its texts escaped, so that they are shown as they are."""
    if isinstance(value, str):
        return escape(value, quote=False)
    if isinstance(value, dict):
        return {escape(str(name)): _escaped(part) for name, part in value.items()}
    return [_escaped(part) for part in value] if isinstance(value, list) else value


# The few classes of Bootstrap and Font Awesome that Great Expectations' templates use.
STYLES = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1200px; padding: 0 24px 48px }
header { border-bottom: 1px solid #8886; margin-bottom: 16px; padding: 16px 0 }
h1 { font-size: 24px; margin: 8px 0 } h4, h5, h6 { font-size: 16px; margin: 8px 0 }
a { color: #2b6cb0 } @media (prefers-color-scheme: dark) { a { color: #90cdf4 } }
p { margin: 4px 0 } ul { margin: 0; padding-left: 20px }
table { border-collapse: collapse; width: 100% }
td, th { border-bottom: 1px solid #8884; padding: 4px 8px; text-align: left; vertical-align: top }
code, .badge, .code-snippet { background: #8882; border-radius: 4px; font-family: monospace; padding: 1px 5px }
pre { overflow: auto; white-space: pre-wrap }
.waiver { border-left: 4px solid #d69e2e; padding-left: 8px }
.alert { background: #8881; border-radius: 6px; margin: 16px 0 8px; padding: 8px 12px }
.text-success { color: #2f855a } .text-danger { color: #c53030 } .text-warning { color: #b7791f }
.fas { font-style: normal; font-weight: bold } .fa-times::before { content: "\\2715" }
.fa-check-circle::before { content: "\\2713" } .fa-exclamation-triangle::before { content: "!" }
.table-responsive { overflow-x: auto } .show-scrollbars { overflow: auto } thead[hidden] { display: none }
.list-group { list-style: none; padding: 0 } .gx .float-right { float: right }
.gx nav, .gx .sticky, .gx .card, .gx .modal, .gx .lead, .gx .d-none, .gx [data-toggle="collapse"] { display: none }
.gx .collapse .card, .gx .collapse .card-body { display: block }
"""
