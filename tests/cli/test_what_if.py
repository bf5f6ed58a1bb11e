from __future__ import annotations

import contextlib
import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ledger.samples import record, run
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.errors import StageholdError
from stagehold.ledger import Ledger
from stagehold.model.records import Cell
from stagehold.plan.imagined.what_if import what_if_graph
from stagehold.topology.file import parse_topology

SAMPLE = "shipping_priority"
GRAPH = {
    "vertices": ["a", {"id": "b", "state": "FINISHED"}, {"id": "c", "state": "running", "co_location": "x"}],
    "partitions": [
        {"id": "p", "producer": "a", "type": "BLOCKING", "consumers": ["b"]},
        {"id": "q", "producer": "b", "type": "PIPELINED", "consumers": ["c"]},
        {"id": "r", "producer": "c", "type": "blocking_persistent"},
    ],
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def graph(tmp_path):
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(GRAPH))
    return str(file)


def invoke(*arguments, code=0):
    result = CliRunner().invoke(app, ["what-if", *arguments])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def test_a_pipeline_is_explained_by_stage_in_plain_words(home):
    text = invoke(SAMPLE, "--fail", "orders_by_customer:3", "--lost", "lineitem:2")
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]
    assert ["orders_by_customer", "run", "1 of 16", "3", "it failed"] in rows
    assert ["lineitem", "heal", "1 of 16", "2", "its data is gone from the lake and is needed"] in rows
    assert ["shipping_priority", "run", "16 of 16", "0-15", "reads orders_by_customer[3], which runs again"] in rows
    assert "19 partitions would run, 62 need not; how long that takes is not known before they have run once" in text
    assert not home.exists()


def test_a_pipeline_as_json():
    document = json.loads(invoke(SAMPLE, "--fail", "top_orders", "--changed", "shipping_priority", "--json"))
    assert document["pipeline"] == SAMPLE
    assert {"id": "top_orders:0", "reason": "it failed"} in document["restart"]
    assert {"id": "shipping_priority:0", "reason": "the code of jobs.tpch:shipping_priority changed"} in document[
        "restart"
    ]
    assert ["top_orders:0"] in document["regions"]
    assert "customer:0" in document["releasable"]
    assert document["summary"][-1]["stage"] == "top_orders"
    assert (document["cost"]["runs"], document["cost"]["saved"]) == (17, 64)


def test_a_graph_as_json(graph):
    assert json.loads(invoke("--topology", graph, "--fail", "c", "--missing", "p", "--json")) == {
        "regions": [["a"], ["b", "c"]],
        "restart": [
            {"id": "a", "reason": "p is needed and is not available"},
            {"id": "b", "reason": "it failed, or runs together with what failed"},
            {"id": "c", "reason": "it failed, or runs together with what failed"},
        ],
        "releasable": [],
        "spared": [],
        "early_cutoff": False,
    }


def test_a_graph_as_a_table(graph, tmp_path):
    text = invoke("--topology", graph, "--fail", "c", "--lost", "p")
    assert "What would restart in graph.json" in text
    assert "p is needed and is not available" in text
    assert "2 regions; may be deleted: nothing" in text
    finished = tmp_path / "finished.json"
    finished.write_text(
        json.dumps({"vertices": [{"id": v, "state": "FINISHED"} for v in "ab"], "partitions": GRAPH["partitions"][:1]})
    )
    assert "2 regions; may be deleted: p" in invoke("--topology", str(finished))


REFUSED = [
    ((), "PIPELINE is ''; allowed: the name of a pipeline, or --topology FILE instead of it"),
    ((SAMPLE, "--topology", "graph.json"), "or --topology FILE instead of it"),
    (("nothing",), "There is no pipeline 'nothing'"),
    ((SAMPLE, "--fail", "orders:16"), "There is no partition of orders '16'. Known: 0 to 15."),
    ((SAMPLE, "--lost", "orders"), "--lost is 'orders'; allowed: STAGE:PARTITION"),
    ((SAMPLE, "--missing", "p"), "--missing is 'p'; allowed: nothing"),
    (
        ("--topology", "no/such/file.json"),
        "no/such/file.json: file: got No such file or directory; allowed: a JSON document",
    ),
    (("--topology", "graph.json", "--changed", "a"), "--changed is 'a'; allowed: nothing"),
    ((SAMPLE, "--early-cutoff"), "--early-cutoff is 'given'; allowed: nothing: a pipeline says `early_cutoff` itself"),
]


@pytest.mark.parametrize(("arguments", "text"), REFUSED)
def test_bad_input_is_refused_in_words(arguments, text):
    assert text in invoke(*arguments, code=1)


def test_a_graph_that_is_none_is_refused_with_all_its_problems(tmp_path):
    file = tmp_path / "graph.json"
    file.write_text(
        json.dumps(
            {"vertices": ["a"], "partitions": [{"id": "p", "producer": "z", "type": "BLOCKING", "consumers": ["y"]}]}
        )
    )
    text = invoke("--topology", str(file), code=1)
    assert "2 problem(s)" in text
    file.write_text('{"vertices": ["a"], "partitions": [{"id": "p", "producer": "a", "type": "CLOUDY"}]}')
    assert "partitions[0].type: got 'cloudy'" in invoke("--topology", str(file), code=1)


def timed(home, stage, seconds, run_id="run-1", minutes=0):
    """One run in which all of a stage took this long."""
    home.mkdir(exist_ok=True)
    with Ledger.open(f"sqlite:///{home / 'ledger.db'}") as ledger:
        ledger.runs.start(run(run_id, pipeline=SAMPLE, minutes=minutes))
        facts = {"run_id": run_id, "seconds": seconds / 16}
        lease = ledger.leases.acquire(f"{run_id}.lease", "me", 60)
        ledger.partitions.record(
            [record(index, cell=Cell(SAMPLE, stage, f"2024-{minutes}"), **facts) for index in range(16)], lease
        )


def test_what_earlier_runs_took_tells_the_cost(home):
    timed(home, "orders", 160)
    timed(home, "lineitem", 320, "run-2", 1)
    timed(home, "orders", 32, "run-3", 2)
    text = invoke(SAMPLE, "--fail", "orders:0")
    assert (
        "about 2.0 s of work, and 350.0 s saved, not counting customer, orders_by_customer, shipping_priority, "
        "top_orders" in text
    )


def test_when_every_stage_was_timed_nothing_is_left_out(home):
    for number, stage in enumerate(("customer", "orders", "lineitem", "orders_by_customer", "shipping_priority")):
        timed(home, stage, 16, f"run-{number}", number)
    cost = json.loads(invoke(SAMPLE, "--fail", "customer:0", "--json"))["cost"]
    assert cost["unknown"] == ["top_orders"]
    assert (cost["run_seconds"], cost["saved_seconds"]) == (33, 47)


def test_a_ledger_that_cannot_be_read_does_not_matter(monkeypatch):
    monkeypatch.setenv("STAGEHOLD_LEDGER", "mysql://u:secret@h/d")
    assert "is not known before they have run once" in invoke(SAMPLE, "--fail", "orders:0")


PIECES = st.sampled_from(
    [None, 0, -1, "", "a", "z", "p", "FINISHED", "CLOUDY", [], {}, ["a"], ["a", "a"], {"id": "a"}, 1e999, True]
)


def places(document):
    """Every place in a document, as the keys that lead there."""
    found = [()]
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        found += [(key, *rest) for rest in places(value)]
    return found


def mutated(document, place, piece):
    if not place:
        return piece
    changed = copy.deepcopy(document)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = piece
    return changed


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 99), PIECES), min_size=1, max_size=3),
    st.sampled_from("abcz"),
    st.binary(max_size=2),
)
def test_whatever_is_wrong_with_a_graph_it_is_our_error(mutations, fail, junk):
    document = GRAPH
    for number, piece in mutations:
        known = places(document)
        document = mutated(document, known[number % len(known)], piece)
    with contextlib.suppress(StageholdError):
        topology, states = parse_topology(json.dumps(document).encode() + junk, file="graph.json")
        what_if_graph(topology, states, failed=[fail], lost=["p"], missing=["q"])


@pytest.fixture
def siblings(tmp_path):
    """Two that read the output of one; one of them has finished."""
    file = tmp_path / "siblings.json"
    vertices = [{"id": "a", "state": "FINISHED"}, {"id": "b", "state": "FINISHED"}, {"id": "c", "state": "RUNNING"}]
    part = {"id": "p", "producer": "a", "type": "BLOCKING", "consumers": ["b", "c"]}
    file.write_text(json.dumps({"vertices": vertices, "partitions": [part]}))
    return str(file)


def test_the_rule_about_what_has_finished_and_reads_what_is_produced_again_is_said_and_chosen(siblings):
    asked = ("--topology", siblings, "--fail", "c", "--lost", "p")
    flink = json.loads(invoke(*asked, "--json"))
    assert [vertex["id"] for vertex in flink["restart"]] == ["a", "b", "c"]
    assert (flink["early_cutoff"], flink["spared"]) == (False, [])
    assert "By Flink's rule, what has finished restarts" in invoke(*asked)
    cut = json.loads(invoke(*asked, "--early-cutoff", "--json"))
    assert [vertex["id"] for vertex in cut["restart"]] == ["a", "c"]
    reason = "p, which its region reads, was lost and comes out equal (early cutoff)"
    assert (cut["early_cutoff"], cut["spared"]) == (True, [{"id": "b", "reason": reason}])
    assert "Early cutoff spares: b" in invoke(*asked, "--early-cutoff")


def test_a_pipeline_says_the_same_of_what_stays_though_it_reads_what_is_healed():
    asked = (SAMPLE, "--fail", "shipping_priority:3", "--lost", "lineitem:3")
    document = json.loads(invoke(*asked, "--json"))
    assert document["early_cutoff"] is False
    assert "lineitem:3" in [vertex["id"] for vertex in document["restart"]]
