"""A page of verdicts by Great Expectations' own renderers, in a frame of ours that needs nothing from the internet.

Their frame loads styles, scripts and pictures from seven sites, and their templates take values of data and names of
columns for markup. So of their page the body is taken, without its scripts; such texts are escaped before; and a policy
in the page's head, which a browser keeps for a file on disk as well, lets it run and load nothing at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from stagehold.gates.docs.contents import DocPage, DocSite
from stagehold.gates.docs.styles import STYLES
from stagehold.gates.outcomes import Outcome
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import GateResult

if TYPE_CHECKING:
    from great_expectations.core.expectation_validation_result import (
        ExpectationSuiteValidationResult,
        ExpectationValidationResult,
    )

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


def render_page(page: DocPage, site: DocSite) -> str:
    """One page, with what Great Expectations says of the first of its partitions.

    Of an expectation that it does not know here, such as one of the project's own, a line is told.
    """
    known, unknown = _shown(page.results)
    body = _their_body(page, site, known) if known else ""
    return _framed(f"{page.title} of {site.pipeline}", f"{_heading(page, site)}<main class=gx>{body}{unknown}</main>")


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
        f"<p class=waiver>{escape(f'{one.waived_by} waived {one.expectation}: {one.reason}')}"
        f"{f', until {one.until:%Y-%m-%d %H:%M} UTC' if one.until else ''}"
        for one in page.waivers
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

    met = sum(bool(one.success) for one in known)
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
    """What Great Expectations can render, and a table of all else."""
    known: list[ExpectationValidationResult] = []
    rows = ""
    for one in results:
        if theirs := _theirs(one):
            known.append(theirs)
        else:
            came = "met" if one.passed else f"not met ({one.severity})"
            rows += f"<tr><td>{escape(one.expectation)}<td>{came}<td>{escape(one.observed)}"
    table = f"<h5 class=alert>Told without Great Expectations' words</h5><table class=table>{rows}</table>"
    return known, table if rows else ""


def _theirs(result: GateResult) -> ExpectationValidationResult | None:
    """None if it does not know such an expectation here, or not with these arguments."""
    import great_expectations.expectations.core  # noqa: F401 - registers those that there are
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    configuration = ExpectationConfiguration(**_configuration(result))
    try:
        configuration.to_domain_obj()
    except Exception:  # noqa: BLE001 - it has no common class of these
        return None
    return ExpectationValidationResult(
        success=result.passed,
        expectation_config=configuration,
        result=_escaped(json.loads(result.result or "{}")),
        meta={},
        exception_info={"raised_exception": False, "exception_message": None, "exception_traceback": None},
    )


def _configuration(result: GateResult) -> dict[str, Any]:
    """Of a verdict whose version did not keep it, the type is all that is known."""
    kept = json.loads(result.configuration or "{}")
    kwargs = {name: value for name, value in kept.get("kwargs", {}).items() if name != "batch_id"}
    # Their templates escape arguments, but for this one where it is a heading.
    kwargs |= {"column": _escaped(kwargs["column"])} if "column" in kwargs else {}
    named = str(kept.get("type") or result.expectation.partition("(")[0])
    return {"type": escape(named), "kwargs": kwargs, "meta": {}, "severity": result.severity.value}


def _escaped(value: Any) -> Any:
    """All texts in it as markup that shows them."""
    if isinstance(value, str):
        return escape(value, quote=False)
    if isinstance(value, dict):
        return {escape(str(name)): _escaped(one) for name, one in value.items()}
    return [_escaped(one) for one in value] if isinstance(value, list) else value
