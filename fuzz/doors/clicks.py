"""Some doors as a person uses them, in Chromium: what is typed and clicked, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import quote

from fuzz.doors.doors import Answer, Asked, ended_runs, not_begun, runs_of
from fuzz.doors.wishes import Door, End
from playwright.sync_api import Page, Response, expect
from tests.e2e.browser import log_in, new_page
from tests.e2e.forms import end_earlier, fill, open_form

from stagehold.local.airflow_client import DagRun


def click_tab(asked: Asked) -> Answer:
    """Fill in the card of the tab Stagehold intervals, look at the plan, and start it."""
    place = asked.place
    end_earlier(place.stack, place.pipeline)
    with _logged_in(asked) as page:
        page.goto(f"/dags/{place.pipeline}/plugin/stagehold-intervals")
        card = page.get_by_test_id("backfill")
        for field, written in {"From": asked.written[0], "To": asked.written[-1]}.items():
            card.get_by_label(field, exact=True).fill(written)
        if asked.ask.everything:
            card.get_by_role("combobox", name="Compute").select_option("all")
        if asked.ask.stage:
            card.get_by_role("combobox", name="Anew from").select_option(asked.ask.stage)
        card.get_by_role("button", name="Show the plan").click()
        expect(card.get_by_test_id("backfill-totals")).to_be_visible()
        shown = card.inner_text()
        if card.get_by_test_id("backfill-start").is_disabled():
            return not_begun(shown)
        running = "[data-testid^='plan-{}-']:not([data-runs='0'])"
        begun = [day for day in asked.dates if page.locator(running.format(day)).count()]
        card.get_by_test_id("backfill-start").click()
        expect(card.get_by_test_id("backfill-started")).to_contain_text("Started: ")
    return ended_runs(place, runs_of(place, begun), shown)


def click_trigger(asked: Asked) -> Answer:
    """Airflow's trigger form, with the interval typed and the stage chosen from its list."""
    place = asked.place
    with _logged_in(asked) as page:
        open_form(page, place.pipeline)
        fill(page, "interval", asked.written[0])
        form = page.get_by_role("dialog")
        if asked.stage:
            form.locator("#element_restore_from_stage input").first.focus()
            page.keyboard.press("ArrowDown")
            page.get_by_role("option", name=asked.stage, exact=True).click()
        with page.expect_response(lambda answer: _is_post(answer, "/dagRuns")) as got:
            form.get_by_role("button", name="Trigger", exact=True).click()
        if not got.value.ok:
            return Answer(End.REFUSED, got.value.text())
        made = got.value.json()
    return ended_runs(place, [DagRun(place.pipeline, made["dag_run_id"], made["state"])])


def click_resume(asked: Asked) -> Answer:
    """The button of the run page, and the question that it may ask; where there is nothing to do, it is not there or
    cannot be pressed.
    """
    place, run = asked.place, asked.runs[asked.dates[0]]
    with _logged_in(asked) as page:
        page.goto(f"/dags/{run.dag_id}/runs/{quote(run.run_id, safe='')}/plugin/stagehold")
        expect(page.get_by_test_id("explanation")).to_be_visible()
        button = page.get_by_test_id("resume")
        if not button.count() or button.is_disabled():
            return not_begun(page.locator("body").inner_text())
        button.click()
        answered = page.get_by_test_id("cleared").or_(page.get_by_test_id("confirmation"))
        expect(answered).to_be_visible()
        if page.get_by_test_id("confirmation").count():
            page.get_by_test_id("confirmation").get_by_role("button").first.click()
        expect(page.get_by_test_id("cleared")).to_contain_text("cleared")
    return ended_runs(place, [run])


@contextmanager
def _logged_in(asked: Asked) -> Iterator[Page]:
    with new_page(asked.place.stack) as page:
        log_in(page, asked.place.stack)
        yield page


def _is_post(answer: Response, end: str) -> bool:
    return answer.request.method == "POST" and bool(re.search(f"{end}$", answer.url))


CLICKED_DOORS: Mapping[Door, Callable[[Asked], Answer]] = {
    Door.TAB_CLICKED: click_tab,
    Door.TRIGGER_CLICKED: click_trigger,
    Door.RESUME_CLICKED: click_resume,
}
