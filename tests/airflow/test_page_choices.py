"""The pages keep to what was chosen in Airflow, in a real browser: zone, form of moments, language, titles."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
TOKYO = "Asia/Tokyo"


def choose(page, *, zone: str | None = None, language: str | None = None) -> None:
    """As Airflow's menu keeps it, from the next page on."""
    for name, value in {"timezone": zone and json.dumps(zone), "i18nextLng": language}.items():
        if value:
            page.add_init_script(f"localStorage.setItem({name!r}, {value!r})")


def open_run(page, half_done) -> None:
    page.goto(f"/dags/{half_done.dag_id}/runs/{half_done.run_id}/plugin/stagehold")


def test_moments_are_in_the_zone_that_was_chosen_and_name_it(page, half_done):
    choose(page, zone=TOKYO)
    open_run(page, half_done)
    page.get_by_test_id("attempts").locator("summary").click()
    started = page.get_by_test_id("attempts").get_by_role("row").nth(1).get_by_role("cell").nth(3)
    expect(page.get_by_test_id("attempts")).to_contain_text(f"Started ({TOKYO})")
    expect(started).to_have_text(re.compile(f"^{MOMENT}$"))
    there = started.inner_text()
    page.evaluate("localStorage.setItem('timezone', '\"UTC\"')")  # as Airflow's own form does it
    expect(page.get_by_test_id("attempts")).to_contain_text("Started (UTC)")
    hours = [int(moment[11:13]) for moment in (there, started.inner_text())]
    assert (hours[0] - hours[1]) % 24 == 9


def test_a_moment_in_a_sentence_names_its_zone(page, half_done):
    choose(page, zone=TOKYO)
    open_run(page, half_done)
    page.get_by_test_id("cell-customer-3").click()
    expect(page.get_by_test_id("chosen")).to_contain_text(re.compile(rf"Recorded\s*{MOMENT} GMT\+9"))


def test_what_is_kept_and_is_no_zone_counts_as_none(page, half_done):
    choose(page, zone=TOKYO)
    open_run(page, half_done)
    page.get_by_test_id("cell-customer-3").click()
    expect(page.get_by_test_id("chosen")).to_contain_text("GMT+9")
    page.evaluate("localStorage.setItem('timezone', '\"Mars/Olympus\"')")
    expect(page.get_by_test_id("chosen")).to_contain_text(re.compile(rf"Recorded\s*{MOMENT} UTC"))


def test_numbers_and_texts_follow_the_language(page, half_done):
    open_run(page, half_done)
    written = """async () => {
        const { bytes } = await import('/stagehold/static/formats.js');
        const { number } = await import('/stagehold/static/numbers.js');
        return [number(1234567), number(0.5), bytes(1536), bytes(12)];
    }"""
    assert page.evaluate(written) == ["1,234,567", "0.5", "1.5 KiB", "12 B"]
    expect(page.get_by_role("link", name="Skip to Stagehold")).to_have_count(1)
    page.evaluate("localStorage.setItem('i18nextLng', 'de')")
    expect(page.get_by_role("link", name="Zu Stagehold springen")).to_have_count(1)
    assert page.evaluate(written) == ["1.234.567", "0,5", "1,5 KiB", "12 B"]
    page.evaluate("localStorage.setItem('i18nextLng', 'fr')")  # in which there are no texts
    expect(page.get_by_role("link", name="Skip to Stagehold")).to_have_count(1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (3.44, "3.4 s"), (9.96, "10 s"), (59.7, "1 min 0 s"), (125, "2 min 5 s"), (7325, "2 h 2 min")],
)
def test_how_long_something_took_has_one_form(page, synced_airflow, seconds, text):
    page.goto("/")
    lasted = "async (seconds) => (await import('/stagehold/static/formats.js')).lasted(seconds)"
    assert page.evaluate(lasted, seconds) == text


def test_titles_name_the_page_and_what_it_is_about(page, half_done):
    page.goto(f"/dags/{half_done.dag_id}/plugin/stagehold-intervals")
    expect(page).to_have_title(re.compile(rf"^Stagehold intervals - .*{half_done.dag_id}.*Airflow$"))
    page.goto("/plugin/stagehold-pipelines")
    expect(page).to_have_title(re.compile("^Stagehold pipelines - Airflow$"))
    open_run(page, half_done)
    expect(page).to_have_title(re.compile("^Stagehold - .*Airflow$"))
    page.get_by_role("link", name="Home").first.click()
    expect(page).not_to_have_title(re.compile("Stagehold"))


def test_words_of_stageholds_say_what_they_mean_to_whoever_points_at_them(page, half_done):
    open_run(page, half_done)
    attempts = page.get_by_test_id("attempts")
    attempts.locator("summary").click()
    for word, begins in (
        ("Region", "stages fused"),
        ("Epoch", "the number of an attempt"),
        ("Waves", "the partitions"),
    ):
        expect(attempts.get_by_text(word, exact=True)).to_have_attribute("title", re.compile(f"^{begins}"))
    expect(page.get_by_test_id("grid").get_by_title("committed, gated and recorded: safe to read")).to_be_visible()
    page.evaluate("localStorage.setItem('i18nextLng', 'de')")
    expect(attempts.get_by_text("Epoche", exact=True)).to_have_attribute("title", re.compile("^die Nummer eines Ver"))
