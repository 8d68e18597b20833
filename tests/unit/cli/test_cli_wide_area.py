"""Placing across a wide area as a user does it: published networks, reuse, and what does not fit."""

from __future__ import annotations

import json

import pytest

CLUSTER = "nodes: [{name: n1CPU}, {name: n2CPU}, {name: n3CPU}]\nlatency: latency.csv\n"
LATENCY = "n1,n2,n3\n0,10,40\n10,0,30\n40,30,0\n"
# The same aggregate for two users in one place, one of them in another spelling.
QUERIES = """
streams:
  p: {schema: {ts: timestamp, k: string, v: bigint}, time: ts, rate: 100, bytes: 50, node: n1}
operators:
  - {name: a, kind: filter, input: p, where: "v > 1 and k = 'x'", selectivity: 0.5, cost: COST, bytes: 50}
  - {name: b, kind: filter, input: p, where: "k = 'x' AND 1 < v", selectivity: 0.5, cost: COST, bytes: 50}
outputs: {one: {input: a, node: n3}, two: {input: b, node: n3}}
"""
GTITM = """\
GRAPH (#nodes #edges id uu vv ww xx yy zz):
3 4 transtub

VERTICES (index name u v w x y z):
0 T:0.0 12 114
1 S:0.0/0.0 60 187
2 S:0.0/0.1 71 82

EDGES (from-node to-node length a b):
0 1 10 7
1 2 5 1
"""


@pytest.fixture
def world(tmp_path):
    def make(cpu="1", cost="1ms", more=""):
        (tmp_path / "cluster.yaml").write_text(CLUSTER.replace("CPU", f", cpu: {cpu}{more}"))
        (tmp_path / "latency.csv").write_text(LATENCY)
        (tmp_path / "net.yaml").write_text(QUERIES.replace("COST", cost))
        return tmp_path / "net.yaml", "--cluster", tmp_path / "cluster.yaml"

    return make


def test_reuse_spares_the_network_and_measure_agrees(world, run, tmp_path):
    given = world()
    apart = run("plan", *given, "--planner", "network").json
    found = run("plan", *given, "--planner", "network", "--reuse")
    assert found.code == 0
    assert found.json["shared"] == {"b": "a"}
    assert found.json["usage_apart"] == pytest.approx(apart["measures"]["network_usage"])
    assert found.json["measures"]["network_usage"] < found.json["usage_apart"]
    (tmp_path / "plan.json").write_text(found.out)
    (tmp_path / "apart.json").write_text(json.dumps(apart))
    measured = run(
        "measure", *given, "--placement", tmp_path / "plan.json", "--from", tmp_path / "apart.json"
    )
    assert measured.code == 0, measured.err
    assert measured.json["network_usage"] == found.json["measures"]["network_usage"]
    explained = run("explain", *given, "--placement", tmp_path / "plan.json", "--operator", "a")
    assert explained.json["measures"]["network_usage"] == found.json["measures"]["network_usage"]


def test_multicast_operators_are_measured_too(world, run, tmp_path):
    given = world()
    text = (tmp_path / "net.yaml").read_text()
    (tmp_path / "net.yaml").write_text(text.replace("one: {input: a, node: n3}", "one: {input: a, node: n2}"))
    found = run("plan", *given, "--planner", "network", "--reuse").json
    (tmp_path / "plan.json").write_text(json.dumps(found))
    measured = run("measure", *given, "--placement", tmp_path / "plan.json").json
    assert measured["network_usage"] == found["measures"]["network_usage"] <= found["usage_apart"]


def test_what_does_not_fit_apart_may_fit_shared(world, run, tmp_path):
    given = world(cpu="0.1", cost="6ms")
    text = (tmp_path / "cluster.yaml").read_text()
    (tmp_path / "cluster.yaml").write_text(text.replace("n1, cpu: 0.1", "n1, cpu: 1"))
    assert run("plan", *given, "--planner", "network").json["status"] == "infeasible"
    found = run("plan", *given, "--planner", "network", "--reuse").json
    assert (found["status"], found["placement"], found["usage_apart"]) == ("placed", {"a": "n1"}, None)


def test_a_plan_that_shares_what_is_not_there_is_refused(world, run, tmp_path):
    given = world()
    (tmp_path / "plan.json").write_text(
        '{"placement": {"a": "n1", "b": "n1"}, "shared": {"x": "a"}, "multicast": []}'
    )
    assert run("measure", *given, "--placement", tmp_path / "plan.json").problem_keys() == ["shared"]


def test_reuse_needs_latencies(world, run):
    network, *_ = world()
    assert run("plan", network, "--nodes", 3, "--reuse").problem_keys() == ["--reuse"]


@pytest.mark.parametrize(
    ("more", "cost", "named"),
    [("", "20ms", "CPU"), (", bandwidth: 8kbps", "1ms", "bandwidth")],
)
@pytest.mark.parametrize("planner", ["network", "relaxation", "producer", "random_node", "optimal_network"])
def test_the_scarce_resource_is_named(world, run, planner, more, cost, named):
    answer = run("plan", *world(cost=cost, more=more), "--planner", planner)
    assert answer.code == 1
    assert answer.json["status"] == "infeasible"
    assert answer.json["placement"] == {}
    assert f"{named} is short" in answer.json["notes"][0]


@pytest.mark.parametrize("limit", [39, 40, 100])
def test_delay_is_kept_or_no_plan_is_made(world, run, limit):
    answer = run("plan", *world(), "--planner", "resilient_near", "--set", f"delay_ms={limit}")
    if limit < 40:  # a row cannot get from n1 to n3 any faster
        assert answer.code == 1
        assert "40 ms" in answer.json["notes"][0]
    else:
        assert answer.code == 0
        assert answer.json["measures"]["delay"] <= limit


def test_a_published_network_becomes_a_cluster(run, tmp_path):
    (tmp_path / "g.alt").write_text(GTITM)
    found = run("topology", tmp_path / "g.alt", "--output", tmp_path / "made", "--scale", 2)
    assert found.code == 0, found.err
    assert (found.json["kind"], found.json["nodes"], found.json["longest_ms"]) == ("gtitm", 3, 30.0)
    (tmp_path / "net.yaml").write_text(
        "streams: {s: {rate: 1, bytes: 8, node: n0}}\n"
        "operators: [{name: o, kind: model, input: s, cost: 1ms, selectivity: 0.5, bytes: 8}]\n"
        "outputs: {t: {input: o, node: n2}}\n"
    )
    cluster = tmp_path / "made" / "cluster.yaml"
    for planner in ("ip_multicast", "network"):
        answer = run("plan", tmp_path / "net.yaml", "--cluster", cluster, "--planner", planner)
        assert answer.json["measures"]["delay"] == 30.0


def test_broken_published_networks(run, tmp_path):
    (tmp_path / "g.alt").write_text(GTITM + "0 1 near 1\n")
    asked = ("topology", tmp_path / "g.alt", "--output", tmp_path / "made")
    answer = run(*asked)
    assert answer.problem_keys() == [""]
    assert answer.json[0]["line"] == 12
    assert not (tmp_path / "made").exists()
    assert run(*asked, "--scale", 0).problem_keys() == ["--scale"]
    assert run("topology", tmp_path / "none.alt", "--output", tmp_path / "made").problem_keys() == [""]
    (tmp_path / "made").write_text("")
    assert run(*asked).problem_keys() == ["--output"]
