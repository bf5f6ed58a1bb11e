"""The routes of gates inside Airflow's own app: who may call them, what they record, and what they refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.airflow.made_runs import MEAN, NULLS, RANGE, SEEN, SPLITS, HalfDone, observe, publish

from stagehold.airflow.telling.untold import note_untold, untold
from stagehold.gates.verdict_pages import docs_uri
from stagehold.lake.store.files import files_at
from stagehold.ledger.ledger import Ledger
from stagehold.ledger.partitions import Partitions
from stagehold.model.choices import Waiver
from stagehold.plan.resume.waiving import in_force
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

STAGE = "shipping_priority"
ROLES = [("admin", True), ("op", True), ("user", False), ("viewer", False), (None, False)]
WISH = {"stage": STAGE, "expectation": NULLS, "partitions": [[3, 4]], "reason": "known since March"}


def post(api, headers, run: HalfDone, **changes):
    return api.post(f"{run.url}/waive", headers=headers, json={**WISH, **changes})


def words(run: HalfDone) -> tuple[Waiver, ...]:
    with Ledger.open(load_settings().ledger_url) as ledger:
        return ledger.waivers.of(run.dag_id, run.run_id)


def shown(api, bearer, run: HalfDone) -> dict:
    return api.get(f"{run.url}/grid", headers=bearer("viewer")).json()


def groups(grid: dict) -> list[tuple[str, str, list[list[int]]]]:
    return [(one["expectation"], one["standing"], one["partitions"]) for one in grid["gate_failures"]]


READS = ["gates", "gates/history?stage=shipping_priority&expectation=any", "docs/index.html"]


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize(
    ("role", "expected"), [("admin", 200), ("op", 200), ("user", 200), ("viewer", 200), (None, 403)]
)
def test_looking_needs_the_right_to_see_runs(api, bearer, refused_run, path, role, expected):
    write_pages(refused_run)
    assert api.get(f"{refused_run.url}/{path}", headers=bearer(role)).status_code == expected


@pytest.mark.parametrize("path", READS)
def test_nobody_looks_without_logging_in(api, refused_run, path):
    assert api.get(f"{refused_run.url}/{path}").status_code == 401


@pytest.mark.parametrize(("role", "may"), ROLES)
def test_waiving_needs_a_right_of_its_own(api, bearer, refused_run, role, may):
    assert post(api, bearer(role), refused_run).status_code == (200 if may else 403)
    assert bool(words(refused_run)) == may


def test_the_refusal_says_which_role_it_takes_and_the_page_does_not_offer_it(api, bearer, refused_run):
    answer = post(api, bearer("user"), refused_run)
    assert answer.json()["detail"] == (
        "Waiving what a gate refuses needs the role admin or op, and user user has user. Ask somebody who has it; "
        "STAGEHOLD_RIGHTS (waive=...) of the api-server says which roles do."
    )
    seen = {role: api.get(f"{refused_run.url}/grid", headers=bearer(role)).json() for role in ("op", "user", "viewer")}
    assert {role: (grid["may_change"], grid["may_waive"]) for role, grid in seen.items()} == {
        "op": (True, True), "user": (True, False), "viewer": (False, False),
    }  # fmt: skip


def test_roles_with_the_right_are_a_setting(api, bearer, refused_run, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_RIGHTS", "waive=user")
    assert post(api, bearer("op"), refused_run).status_code == 403
    assert post(api, bearer("user"), refused_run).status_code == 200


def test_nobody_waives_without_logging_in(api, refused_run):
    assert post(api, {}, refused_run).status_code == 401
    assert words(refused_run) == ()


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_another_site_waives_nothing(api, bearer, refused_run, headers, code):
    assert (
        post(api, {"Content-Type": "application/json", **bearer("admin"), **headers}, refused_run).status_code == code
    )
    assert words(refused_run) == ()


@pytest.fixture
def cells_read(monkeypatch) -> list[str]:
    """The stages of which records of partitions were read; "*" is all of an interval."""
    read: list[str] = []
    newest, newest_of = Partitions.newest, Partitions.newest_of
    monkeypatch.setattr(Partitions, "newest", lambda self, cell: read.append(cell.stage) or newest(self, cell))
    monkeypatch.setattr(Partitions, "newest_of", lambda self, *place: read.append("*") or newest_of(self, *place))
    return read


def test_what_gates_said_is_shown_without_reading_what_is_on_record_of_partitions(api, bearer, refused_run, cells_read):
    (stage,) = api.get(f"{refused_run.url}/gates", headers=bearer("viewer")).json()["stages"]
    assert (stage["stage"], stage["partitions"]) == (STAGE, SPLITS)
    assert cells_read == []


def test_of_a_stage_of_which_something_is_waived_its_records_alone_are_read(api, bearer, refused_run, cells_read):
    post(api, bearer("admin"), refused_run)
    cells_read.clear()
    api.get(f"{refused_run.url}/gates", headers=bearer("viewer"))
    assert cells_read == [STAGE]


def test_what_fails_alike_is_one_group_on_the_page(api, bearer, refused_run):
    grid = shown(api, bearer, refused_run)
    assert groups(grid) == [(NULLS, "blocked", [[3, 7]]), (RANGE, "blocked", [[7, 7]])]
    assert grid["gate_failures"][0]["observed"] == SEEN
    assert (grid["gate_failures"][0]["suite"], grid["gate_failures"][0]["count"]) == ("made", 5)
    assert not grid["may_change"]


def test_the_ledger_and_the_page_say_who_waived_what(api, bearer, refused_run):
    answer = post(api, bearer("op"), refused_run, until="2999-01-31")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["partitions"], answer.json()["waiver"]["waived_by"]) == ([[3, 4]], "op user")
    assert [(one.partition, one.expectation, one.waived_by) for one in words(refused_run)] == [
        (number, NULLS, "op user") for number in (3, 4)
    ]
    assert words(refused_run)[0].until == datetime(2999, 1, 31, tzinfo=UTC)
    grid = shown(api, bearer, refused_run)
    assert groups(grid) == [
        (NULLS, "to_publish", [[3, 4]]),
        (NULLS, "blocked", [[5, 7]]),
        (RANGE, "blocked", [[7, 7]]),
    ]
    told = grid["gate_failures"][0]["waiver"]
    assert (told["waived_by"], told["reason"], told["until"]) == (
        "op user",
        "known since March",
        "2999-01-31T00:00:00Z",
    )
    (stage,) = [one for one in grid["stages"] if one["name"] == STAGE]
    assert [cell["partition"] for cell in stage["cells"] if cell["waived"]] == [3, 4]
    assert [cell["partition"] for cell in stage["cells"] if cell["action"] == "judge"] == [3, 4]
    assert grid["resume"]["judge"] == 2


def test_a_resume_is_possible_as_soon_as_there_is_something_to_publish(api, bearer, refused_run):
    refusal = api.post(f"{refused_run.url}/resume", headers=bearer("admin"), json={"dry_run": True})
    assert (refusal.status_code, "a gate blocked shipping_priority[3]" in refusal.text) == (409, True)
    assert post(api, bearer("admin"), refused_run).status_code == 200
    allowed = api.post(f"{refused_run.url}/resume", headers=bearer("admin"), json={"dry_run": True}).json()
    assert ([one["task_id"] for one in allowed["cleared"]], allowed["judge"]) == (["shipping_priority"], 2)


def test_a_waiver_can_be_taken_back(api, bearer, refused_run):
    post(api, bearer("admin"), refused_run)
    assert (
        post(api, bearer("user"), refused_run, end=True, reason="I was wrong", partitions=[[4, 4]]).status_code == 200
    )
    assert groups(shown(api, bearer, refused_run))[:2] == [
        (NULLS, "to_publish", [[3, 3]]),
        (NULLS, "blocked", [[4, 7]]),
    ]
    later = datetime.now(UTC) + timedelta(seconds=1)
    assert [one.partition for one in in_force(words(refused_run), later)] == [3]


def test_after_a_waiver_was_used_all_still_name_who_why_and_until_when(api, bearer, refused_run):
    """Of what was published by it, of what it was taken back of, and in the history of the run."""
    post(api, bearer("op"), refused_run, until="2999-01-31")
    publish(refused_run, STAGE, [3, 4])
    post(api, bearer("user"), refused_run, end=True, reason="I was wrong", partitions=[[4, 4]])
    told = api.get(f"{refused_run.url}/gates", headers=bearer("viewer")).json()
    nulls = told["stages"][0]["expectations"][0]
    assert [
        (one["waiver"]["waived_by"], one["waiver"]["reason"], one["holds"], one["partitions"]) for one in nulls["words"]
    ] == [
        ("op user", "known since March", False, [[4, 4]]),
        ("op user", "known since March", True, [[3, 3]]),
        ("user user", "I was wrong", False, [[4, 4]]),
    ]
    assert {one["waiver"]["until"] for one in nulls["words"][:2]} == {"2999-01-31T00:00:00Z"}
    failures = {one["standing"]: one for one in shown(api, bearer, refused_run)["gate_failures"]}
    assert failures["published"]["waiver"]["waived_by"] == "op user"
    assert [one["waiver"]["waived_by"] for one in failures["ended"]["past"]] == ["op user", "user user"]
    assert {tuple(map(tuple, one["partitions"])) for one in failures["ended"]["past"]} == {((4, 4),)}
    lines = api.get(f"{refused_run.url}/timeline", headers=bearer("viewer")).json()["lines"]
    words = [(one["of"], one["text"]) for one in lines if "waived" in one["text"]]
    assert words == [
        (f"{STAGE}[3-4]", f"op user waived {NULLS} until 2999-01-31 00:00 (UTC): known since March"),
        (f"{STAGE}[4]", f"user user took back what was waived of {NULLS}: I was wrong"),
    ]


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"reason": "  "}, 422, "string_too_short"),
        ({"reason": "x" * 1001}, 422, "string_too_long"),
        ({"partitions": []}, 422, "too_short"),
        ({"partitions": [[0, 10**9]]}, 422, "less_than_equal"),
        ({"expectation": ""}, 422, "string_too_short"),
        ({"forever": True}, 422, "extra_forbidden"),
        ({"until": "soon"}, 422, "datetime"),
        ({"until": "2001-01-01"}, 409, "later than now"),
        ({"until": "9999-12-31T23:59:00-12:00"}, 409, "later than now"),
        ({"stage": "nowhere"}, 404, "There is no stage of shipping_priority 'nowhere'"),
        ({"stage": "orders"}, 409, "It refuses nothing"),
        ({"partitions": [[2, 4]]}, 409, "its gate does not refuse shipping_priority[2]"),
        ({"partitions": [[3, 1000000]]}, 409, "its gate does not refuse"),
        ({"expectation": "unheard of"}, 409, "none of them fails unheard of"),
        ({"expectation": "expect_", "partitions": [[7, 7]]}, 409, "more than one expectation may be meant"),
    ],
)
def test_a_refused_waiver_has_a_reason(api, bearer, refused_run, changes, code, said):
    answer = post(api, bearer("admin"), refused_run, **changes)
    assert (answer.status_code, said in answer.text) == (code, True), answer.text
    assert words(refused_run) == ()


def test_nothing_can_be_waived_in_a_run_that_does_not_exist(api, bearer):
    answer = post(api, bearer("admin"), HalfDone("shipping_priority", "never"))
    assert (answer.status_code, "There is no run" in answer.text) == (404, True)


def test_verdicts_are_listed_by_ranges_with_waivers_and_samples(api, bearer, refused_run):
    post(api, bearer("admin"), refused_run)
    told = api.get(f"{refused_run.url}/gates", headers=bearer("viewer")).json()
    (stage,) = told["stages"]
    assert not told["docs"]
    assert (stage["stage"], stage["gate"], stage["partitions"]) == (STAGE, STAGE, 16)
    nulls, between = stage["expectations"]
    assert [(one["outcome"], one["count"], one["partitions"]) for one in nulls["outcomes"]] == [
        ("failed", 3, [[5, 7]]),
        ("waived", 2, [[3, 4]]),
    ]
    assert nulls["outcomes"][0]["samples"][0] == {"partition": 5, "observed": SEEN, "values": ["-1", "-2"], "rows": []}
    assert (between["expectation"], between["judged"], between["numeric"]) == (RANGE, 1, False)


def test_the_history_of_an_expectation_has_earlier_intervals_and_no_later_ones(api, bearer, refused_run):
    """Made runs have intervals that are no dates: when a run of them began tells their order."""
    for before, value in ((1, "10.5"), (0, "12"), (-1, "99")):
        observe(refused_run, STAGE, value, before)
    wanted = {"stage": STAGE, "expectation": MEAN}
    told = api.get(f"{refused_run.url}/gates/history", headers=bearer("viewer"), params=wanted).json()
    assert [(one["interval"], one["middle"], one["least"], one["most"]) for one in told["points"]] == [
        (f"{refused_run.run_id}-1", 10.5, 0, 50),
        (refused_run.run_id, 12, 0, 50),
    ]


@pytest.mark.parametrize("path", READS)
def test_a_run_that_does_not_exist_has_no_verdicts(api, bearer, path):
    answer = api.get(f"/stagehold/api/dags/shipping_priority/runs/never/{path}", headers=bearer("admin"))
    assert (answer.status_code, "There is no run" in answer.text) == (404, True)


def test_a_stage_that_does_not_exist_has_no_history(api, bearer, refused_run):
    wanted = {"stage": "nowhere", "expectation": NULLS}
    answer = api.get(f"{refused_run.url}/gates/history", headers=bearer("admin"), params=wanted)
    assert (answer.status_code, "There is no stage of" in answer.text) == (404, True)


def write_pages(run: HalfDone) -> None:
    """Stand-ins, since Great Expectations takes seconds to import; how it renders is tested where it is used."""
    files = files_at(docs_uri(load_settings().lake_uri, run.dag_id, run.run_id))
    files.create("index.html", b"<p>all")
    files.create("0.html", b"<p>one")


def test_pages_are_served_as_they_were_written_and_can_do_nothing(api, bearer, refused_run):
    headers = bearer("viewer")
    missing = api.get(f"{refused_run.url}/docs/index.html", headers=headers)
    assert (missing.status_code, "The card Gates of the run's page makes" in missing.json()["detail"]) == (404, True)
    write_pages(refused_run)
    answer = api.get(f"{refused_run.url}/docs/0.html", headers=headers)
    assert (answer.status_code, answer.content) == (200, b"<p>one")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert answer.headers["content-security-policy"].endswith("frame-ancestors 'none'; sandbox")
    assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-store")
    assert api.get(f"{refused_run.url}/gates", headers=headers).json()["docs"]


@pytest.mark.parametrize(
    "path",
    [
        "1.html",
        "secret.html",
        ".index.html",
        "../index.html",
        "..%2Findex.html",
        "%2e%2e%2f%2e%2e%2fsecret.html",
        "..%5csecret.html",
        "%2Fetc%2Fpasswd",
        "index.html%00",
        "0.html%0a",
        "",
    ],
)
def test_only_pages_are_served(api, bearer, refused_run, path):
    write_pages(refused_run)
    root = files_at(docs_uri(load_settings().lake_uri, refused_run.dag_id, ""))
    root.create("secret.html", b"secret")
    files_at(docs_uri(load_settings().lake_uri, refused_run.dag_id, refused_run.run_id)).create(
        "secret.html", b"secret"
    )
    answer = api.get(f"{refused_run.url}/docs/{path}", headers=bearer("admin"))
    assert (answer.status_code, b"secret" in answer.content) == (404, False)


@pytest.mark.parametrize(("role", "code"), [("admin", 200), ("op", 200), ("user", 200), ("viewer", 403), (None, 403)])
def test_making_pages_needs_the_right_to_change_the_run_and_reading_them_the_right_to_see_it(
    api, bearer, refused_run, role, code
):
    answer = api.post(f"{refused_run.url}/gates/docs", headers=bearer(role), json={})
    assert answer.status_code == code, answer.text
    there = api.get(f"{refused_run.url}/docs/index.html", headers=bearer("viewer"))
    assert there.status_code == (200 if code == 200 else 404)
    if code == 200:
        pages = answer.json()["pages"]
        assert pages == there.text.count('<tr><td><a href="') > 0
        page = api.get(f"{refused_run.url}/docs/{pages - 1}.html", headers=bearer("viewer"))
        assert NULLS.partition("(")[0] in page.text
        assert api.get(f"{refused_run.url}/gates", headers=bearer("viewer")).json()["docs"] is True


def test_pages_are_not_made_twice_at_once_nor_for_another_site_nor_without_verdicts(
    api, bearer, refused_run, half_done
):
    headers = bearer("admin")
    with Ledger.open(load_settings().ledger_url) as ledger:
        lease = ledger.leases.acquire(f"docs of {refused_run.dag_id}/{refused_run.run_id}", "ann", 60)
        busy = api.post(f"{refused_run.url}/gates/docs", headers=headers, json={})
        ledger.leases.release(lease)
    assert (busy.status_code, "ann" in busy.text) == (409, True)
    away = api.post(
        f"{refused_run.url}/gates/docs", headers={**headers, "Origin": "https://elsewhere.example"}, json={}
    )
    assert away.status_code == 403
    nothing = api.post(f"{half_done.url}/gates/docs", headers=headers, json={})
    assert (nothing.status_code, "nothing to make pages of" in nothing.text) == (409, True)


def test_why_pages_could_not_be_made_is_told(api, bearer, refused_run, monkeypatch):
    monkeypatch.setattr("stagehold.gates.verdict_pages.APART", "raise OSError('the lake is full')")
    answer = api.post(f"{refused_run.url}/gates/docs", headers=bearer("admin"), json={})
    assert (answer.status_code, "OSError: the lake is full" in answer.text) == (409, True)


def test_reports_that_could_not_be_sent_are_on_the_page_of_the_run(api, bearer, refused_run):
    with Ledger.open(load_settings().ledger_url) as ledger:
        found = [
            untold("OpenLineage, of orders", TimeoutError("no answer from https://bob:pw@lineage.example/api?k=v"))
        ]
        note_untold(f"{refused_run.dag_id}/{refused_run.run_id}", found, ledger)
    (line,) = shown(api, bearer, refused_run)["untold"]
    assert line["of"] == "OpenLineage, of orders"
    assert line["text"] == "TimeoutError: no answer from https://lineage.example/..."
    lines = api.get(f"{refused_run.url}/timeline", headers=bearer("viewer")).json()["lines"]
    assert [one["text"] for one in lines if one["of"] == line["of"]] == [f"untold: {line['text']}"]
