"""What each command answers, in both forms, and which exit code goes with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from levelwind.model.plan import MEASURE_NAMES

Write = Callable[[str, str], Path]
WORKED = "examples/worked.yaml"
MEASURES = set(MEASURE_NAMES)


def test_plan_json_has_the_keys_of_the_contract(run):
    ended = run("plan", WORKED, "--nodes", 2)
    assert ended.code == 0
    assert ended.err == ""
    assert {"planner", "status", "placement", "measures", "notes"} <= set(ended.json)
    assert ended.json["status"] == "placed"
    assert set(ended.json["placement"]) == {"o1", "o2", "o3", "o4"}
    assert set(ended.json["measures"]) == MEASURES


def test_plan_text_names_nodes_loads_and_operators(run, rated):
    ended = run("plan", rated, "--nodes", 2, "--format", "text")
    assert ended.code == 0
    assert "feasible ratio" in ended.out
    assert "\x1b" not in ended.out
    assert "0.300" in ended.out  # n1 bears a and b, or n2 does
    assert "note: " in ended.err


def test_plan_text_counts_kinds_when_there_are_many_operators(run):
    ended = run("plan", "examples/traffic.yaml", "--nodes", 5, "--format", "text")
    assert "160 operators on 5 nodes" in ended.out
    assert " aggregate" in ended.out
    assert "p0_count" not in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80


def test_plan_is_the_same_for_the_same_seed(run):
    first, second = (run("plan", WORKED, "--nodes", 2, "--planner", "random", "--seed", 7) for _ in range(2))
    assert first.out == second.out


def test_plan_writes_the_same_json_to_a_file(run, tmp_path):
    file = tmp_path / "plan.json"
    ended = run("plan", WORKED, "--nodes", 2, "--output", file)
    assert json.loads(file.read_text()) == ended.json
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_plan_without_an_answer_exits_1_and_writes_nothing(run, write: Write, tmp_path):
    network = write(
        "torn.yaml",
        "streams: {I: {}}\noperators:\n"
        "  - {name: a, kind: model, input: I, cost: 1ms, pinned: n1, table: t}\n"
        "  - {name: b, kind: model, input: I, cost: 1ms, pinned: n2, table: t}\n",
    )
    output = tmp_path / "plan.json"
    ended = run("plan", network, "--nodes", 2, "--output", output)
    assert ended.code == 1
    assert ended.json["status"] == "infeasible"
    assert ended.json["placement"] == {}
    assert not output.exists()
    text = run("plan", network, "--nodes", 2, "--format", "text")
    assert text.code == 1
    assert "infeasible" in text.out


def test_plan_from_measures_what_moves(run, rated, write: Write):
    before = write("before.yaml", "{a: n1, b: n1, c: n1, gone: n9}")
    ended = run("plan", rated, "--nodes", 2, "--from", before)
    assert ended.json["measures"]["moved_load"] > 0
    assert "left out: gone" in ended.err


def test_measure_equals_the_plan_s_own_measures(run, rated):
    planned = run("plan", rated, "--nodes", 2)
    ended = run("measure", rated, "--nodes", 2, "--placement", "-", stdin=planned.out)
    assert ended.code == 0
    assert set(ended.json) == MEASURES | {"notes"}
    assert {name: ended.json[name] for name in MEASURES} == planned.json["measures"]


def test_measure_takes_a_bare_mapping_and_from(run, rated, write: Write):
    placement = write("p.json", '{"a": "n1", "b": "n1", "c": "n2"}')
    before = write("q.yaml", "{a: n1, b: n2, c: n2}")
    ended = run("measure", rated, "--nodes", 2, "--placement", placement, "--from", before)
    assert ended.json["moved_load"] == pytest.approx(0.2)
    text = run("measure", rated, "--nodes", 2, "--placement", placement, "--format", "text")
    assert "max load" in text.out


def test_explain_elsewhere_equals_measure_of_that_placement(run, rated, write: Write):
    plan = write("plan.json", run("plan", rated, "--nodes", 3).out)
    ended = run("explain", rated, "--nodes", 3, "--placement", plan, "--operator", "b")
    found = ended.json
    assert {"operator", "node", "reason", "measures", "elsewhere", "notes"} <= set(found)
    stated = json.loads(plan.read_text())
    assert found["reason"] == stated["reasons"]["b"]
    assert found["node"] == stated["placement"]["b"]
    assert set(found["elsewhere"]) == {"n1", "n2", "n3"} - {found["node"]}
    for node, measures in found["elsewhere"].items():
        moved = json.dumps({**stated["placement"], "b": node})
        seen = run("measure", rated, "--nodes", 3, "--placement", "-", stdin=moved).json
        assert {name: seen[name] for name in MEASURES} == measures


def test_explain_text_says_the_reason_and_the_changes(run, rated):
    placement = '{"a": "n1", "b": "n1", "c": "n2"}'
    args = ("explain", rated, "--nodes", 2, "--placement", "-", "--operator", "b", "--format", "text")
    ended = run(*args, stdin=placement)
    assert ended.out.startswith("b stands on n1: the placement was given")
    assert "n1 (here)" in ended.out
    assert "+1" in ended.out  # the stream from a to b would be cut


def test_compare_json_is_a_list_of_plans(run, rated):
    ended = run("compare", rated, "--nodes", 2, "--planners", "rod,llf,random")
    assert [plan["planner"] for plan in ended.json] == ["rod", "llf", "random"]
    assert all(set(plan["measures"]) == MEASURES and plan["placement"] for plan in ended.json)


def test_compare_by_default_leaves_out_who_lacks_rates_and_says_so(run):
    ended = run("compare", WORKED, "--nodes", 2)
    names = [plan["planner"] for plan in ended.json]
    assert {"rod", "random"} <= set(names)
    assert not {"llf", "optimal"} & set(names)
    assert "llf left out: no rate for I1, I2" in ended.err


def test_compare_settings_reach_those_that_know_them(run, rated):
    for key in ("order", "rod.order"):
        ended = run("compare", rated, "--nodes", 2, "--planners", "rod,random", "--set", f"{key}=raw")
        assert ended.code == 0


def test_size_gives_the_fewest_nodes(run):
    ended = run("size", WORKED, "--rates", "I1=0.04,I2=0.05")
    assert ended.code == 0
    assert set(ended.json) == {"nodes", "margin", "loads", "plan", "notes"}
    assert ended.json["nodes"] == 2
    assert ended.json["margin"] == pytest.approx(1 / max(ended.json["loads"].values()))
    assert ended.json["plan"]["status"] == "placed"
    assert run("size", WORKED, "--rates", "I1=0.04,I2=0.05", "--format", "text").out.startswith(
        "2 nodes bear"
    )


def test_size_without_an_answer_exits_1(run):
    ended = run("size", WORKED, "--rates", "I1=1", "--rates", "I2=1")
    assert ended.code == 1
    assert ended.json["nodes"] is None
    assert "o1" in ended.json["notes"][0]


def test_check_network_and_cluster(run):
    network = run("check", WORKED).json
    assert network["ok"] is True
    assert (network["streams"], network["operators"], network["variables"]) == (2, 4, 2)
    assert network["warnings"] == []
    cluster = run("check", "examples/cluster.yaml").json
    assert (cluster["kind"], cluster["nodes"]) == ("cluster", 5)
    scenario = run("check", "examples/bursts.yaml").json
    assert (scenario["kind"], scenario["nodes"], scenario["seconds"]) == ("scenario", 10, 60)
    assert run("check", WORKED, "--format", "text").out.endswith("2 streams, 4 operators, 2 variables\n")


def test_check_warnings_are_in_the_json_or_on_stderr(run, vague):
    ended = run("check", vague)
    assert ended.json["warnings"]
    assert ended.err == ""
    assert "warning: " in run("check", vague, "--format", "text").err


def test_warnings_of_a_network_never_mix_with_the_answer(run, vague):
    ended = run("plan", vague, "--nodes", 1)
    assert ended.json["status"] == "placed"
    assert ended.err.startswith("warning: ")


def test_schema_is_json_in_either_form(run):
    titles = {run("schema", *more).json["title"] for more in ((), ("--format", "text"))}
    assert titles == {"Levelwind network"}
    assert run("schema", "--cluster").json["title"] == "Levelwind cluster"


def test_policies_lists_options_with_defaults(run):
    listed = {policy["name"]: policy for policy in run("policies").json}
    assert {"cor_bal", "cor_re", "cor_se", "cor_re_imp", "cor_se_imp", "llf_bal", "rand_bal"} < set(listed)
    options = {option["name"]: option for option in listed["cor_se_imp"]["options"]}
    assert (options["threshold"]["default"], options["correlated"]["default"]) == (0.1, 0.8)
    assert all(policy["summary"] and policy["origin"] for policy in listed.values())
    text = run("policies", "--format", "text").out
    assert "steady_pairs.worth" in text


def test_planners_lists_options_with_defaults(run):
    listed = {planner["name"]: planner for planner in run("planners").json}
    assert set(listed["rod"]) == {"name", "summary", "origin", "needs", "options"}
    option = next(o for o in listed["rod"]["options"] if o["name"] == "order")
    assert option["default"] == "normalised"
    assert option["choices"] == ["normalised", "raw"]
    text = run("planners", "--format", "text").out
    assert "rod.order" in text
    assert max(map(len, text.splitlines())) <= 80


def test_version(run):
    ended = run("--version")
    assert ended.code == 0
    assert ended.out.startswith("levelwind ")


def test_cost_models_lists_what_they_need(run):
    listed = {model["name"]: model for model in run("cost-models").json}
    assert {"cpu", "memory", "output_rate", "connections"} <= set(listed)
    assert listed["output_rate"]["statistics"] == ["rows_in", "rows_out"]
    assert listed["output_rate"]["origin"] == "seed 003, equations 6.1 and 6.2"
    assert listed["connections"]["needs"] == "nothing"
    assert [option["name"] for option in listed["connections"]["options"]] == ["most"]
    text = run("cost-models", "--format", "text").out
    assert "connections.most" in text
