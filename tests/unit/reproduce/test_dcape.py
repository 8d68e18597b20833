"""The query plans of seed 003 and the figures that run them: what can be told without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from levelwind import plan
from levelwind.frontend import load_network, parse_network
from levelwind.model import Cluster
from levelwind.planning import measure
from levelwind.reproduce import registry
from levelwind.reproduce.dcape import FIGURES, SET_UP
from levelwind.reproduce.dcape_curves import at_least
from levelwind.reproduce.dcape_pass import EFFORTS
from levelwind.reproduce.dcape_runs import SETTLE, Case, last_join
from levelwind.reproduce.query_plans import SIZES, depth_of, query_plan, side_by_side

EXAMPLES = Path(__file__).parents[3] / "examples"
SHAPES = {1: (5, 5, 3, 1), 2: (20, 9, 6, 1), 3: (40, 14, 8, 1), 4: (80, 14, 16, 2)}


@pytest.mark.parametrize("number", SIZES)
def test_plans_have_the_papers_size_depth_streams_and_outputs(number):
    document = query_plan(number, rate=40.0)
    found = len(document["operators"]), depth_of(document), len(document["streams"]), len(document["outputs"])
    assert found == SHAPES[number]
    assert parse_network(document).warnings == ()


@pytest.mark.parametrize("number", SIZES)
def test_the_examples_are_these_plans(number):
    path = EXAMPLES / f"query_plan_{number}.yaml"
    assert yaml.safe_load(path.read_text()) == query_plan(number, rate=40.0, duration_s=60.0)
    assert load_network(path).network.hops == "next"


@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_grouping_opens_fewer_connections_on_every_plan(number, nodes):
    network, cluster = parse_network(query_plan(number, rate=40.0)).network, Cluster.equal(nodes)
    cut = {
        name: measure(network, cluster, plan(network, cluster, planner=name)).cut_streams
        for name in ("round_robin", "grouping")
    }
    assert cut["grouping"] <= 2 * (nodes - 1)
    assert cut["grouping"] < cut["round_robin"] / 2


def test_figures_share_names_titles_and_cases():
    assert set(FIGURES) <= set(registry.names())
    assert len(FIGURES) == 22
    for name, figure in FIGURES.items():
        assert figure.TITLE
        (cell,) = figure.cells(True, 0)
        names = [Case(**case).name for case in cell["cases"]]
        assert len(names) == len(set(names)), name
        for case in cell["cases"]:
            assert Case(**case).network.operators
    assert side_by_side(3, 10.0)["outputs"].keys() == {"out1", "out2", "out3"}


RUN = {"throughput": 100.0, "connections": 4, "connections_at_the_end": 3}


def made_up(figure, throughput, quick):
    step = {
        "wall_s": 2.0, "rows": 10, "moves": 0, "fullest_state": 5, "sent": 1, "fullest_s": 0.1,
        "working_s": 0.2, "cpu_s": 0.4,
        "manager": {"cpu_s": 0.001, "bytes_in": 10.0, "bytes_out": 1.0, "memory_bytes": 1e4},
    }  # fmt: skip
    runs = {
        case.name: [{**RUN, "throughput": throughput[label], "steps": [step] * 3}] * 3
        for label, case in figure.chosen(quick).items()
    }
    return [{"runs": runs, "capped": True, "quick": quick}]


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", FIGURES)
def test_figures_judge_what_was_measured(name, quick):
    figure = FIGURES[name]
    outcome = figure.summarise(made_up(figure, dict.fromkeys(figure.cases, 100.0), quick))
    assert outcome.ours["capped"]
    assert outcome.ours["rounds"] == 3
    assert set(outcome.ours["spread"]) == set(figure.chosen(quick))
    assert {own["fullest_cpu_s"] for own in outcome.ours["batch"].values()} == {0.1}
    assert set(outcome.ours["batch"]) == set(figure.chosen(quick))
    assert len(outcome.set_up) >= len(SET_UP)
    # Nothing differs from anything: what must be more is not, and what must not be less is not.
    more = {"dcape_5_7", "dcape_5_8", "dcape_5_9", "dcape_5_10", "dcape_6_4", "dcape_6_5", "dcape_6_6"}
    more |= {"dcape_6_3", "dcape_5_11"}  # nothing was moved; one node holds as much as five
    assert outcome.holds is (name not in more), outcome.why


def test_what_a_move_adds_is_told_from_where_the_join_stands():
    """Batches that are longer wherever the join stands cost nothing; those right after a move do."""
    figure = FIGURES["dcape_6_3"]
    (result,) = made_up(figure, dict.fromkeys(figure.cases, 100.0), False)
    step = result["runs"][figure.cases["moved"].name][0]["steps"][0]

    def judged(extra_s):
        walls = [3.0 + extra_s, 3.0 + extra_s, 3.0, 3.0, 3.0, 2.0 + extra_s, 2.0 + extra_s, 2.0, 2.0, 2.0]
        steps = [{**step, "wall_s": wall, "moves": int(k % 5 == 0)} for k, wall in enumerate(walls)]
        runs = result["runs"] | {figure.cases["moved"].name: [{**RUN, "steps": steps}] * 3}
        return figure.summarise([{**result, "runs": runs}])

    # As made up, nothing was moved: that is not what the claim is about.
    assert not figure.summarise([result]).holds
    assert judged(0.0).ours["moved"] == pytest.approx(1.0)
    assert judged(0.8).holds
    assert not judged(1.0).holds  # two batches of a second more: 2 s of a minute


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_join_apart_has_a_node_for_itself_and_one_to_go_to(number):
    case = Case(number=number, nodes=4, planner="grouping", apart=True)
    network, nodes = case.network, Cluster.equal(4)
    placement, moved = case.placement(nodes), last_join(network)
    assert {name for name, node in placement.items() if node == "n2"} == set(moved)
    assert set(placement.values()) == {"n2", "n3", "n4"}
    # A join, and of the others whatever reads it: nothing behind it stands elsewhere.
    assert [network.operators[name].is_join for name in moved] == [True] + [False] * (len(moved) - 1)
    behind = {
        name for name in network.order for port in network.operators[name].inputs if port.source in moved
    }
    assert behind == set(moved[1:])
    # From either node, as many streams are cut.
    there = {**placement, **dict.fromkeys(moved, "n1")}
    assert measure(network, nodes, there).cut_streams == measure(network, nodes, placement).cut_streams


def test_what_was_not_written_down_of_a_run_is_not_drawn(tmp_path):
    figure = FIGURES["dcape_5_11"]
    results = made_up(figure, dict.fromkeys(figure.cases, 100.0), False)
    for label, case in figure.cases.items():
        own = results[0]["runs"][case.name]
        held = 9e6 if label == "1 node" else 4e6
        full = [{**step, "fullest_state": held} for step in own[0]["steps"]]
        bare = [{key: step[key] for key in step if key != "fullest_state"} for step in own[0]["steps"]]
        results[0]["runs"][case.name] = [{**own[0], "steps": steps} for steps in (bare, bare, full)]
    outcome = figure.summarise(results)
    assert outcome.holds
    assert outcome.ours["rounds"] == 1
    assert outcome.ours["5 nodes"] == 4e6
    figure.draw(results, tmp_path / "figure.png")


@pytest.mark.parametrize(
    "name", ["dcape_4_3", "dcape_4_6", "dcape_4_8", "dcape_5_9", "dcape_5_11", "dcape_6_4"]
)
def test_figures_draw_what_was_measured(name, tmp_path):
    figure = FIGURES[name]
    results = made_up(figure, dict.fromkeys(figure.cases, 100.0), False)
    # At first nobody knows yet what the manager spends.
    for runs in results[0]["runs"].values():
        for run in runs:
            unknown = dict.fromkeys(("cpu_s", "bytes_in", "bytes_out"))
            first = run["steps"][0]
            run["steps"] = [{**first, "manager": first["manager"] | unknown}, *run["steps"][1:]]
    figure.draw(results, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_a_run_is_steady_when_its_windows_are_full_and_rows_have_made_their_hops():
    one = Cluster.equal(1)
    alone = Case(number=2, nodes=1, planner="round_robin")
    # Three levels of joins with windows of 10 s, in batches of 4 s.
    assert alone.settle(alone.placement(one)) == SETTLE + 8
    longer = Case(number=2, nodes=1, planner="round_robin", window_s=60.0)
    assert longer.settle(longer.placement(one)) == SETTLE + 45
    chain = Case(number=0, nodes=5, planner="round_robin")
    assert chain.settle(chain.placement(Cluster.equal(5))) == SETTLE + 4


def test_claims_fail_where_the_figures_say_so():
    check = at_least("grouping", "round_robin")
    assert check({"grouping": [3.0, 1.0, 2.0], "round_robin": [2.0, 2.0, 2.0]})[0].passed
    assert not check({"grouping": [1.0], "round_robin": [2.0]})[0].passed


def test_a_manager_of_which_nothing_is_known_meets_no_limit():
    figure = FIGURES["dcape_4_8"]
    results = made_up(figure, dict.fromkeys(figure.cases, 100.0), False)
    assert figure.summarise(results).holds
    for runs in results[0]["runs"].values():
        for run in runs:
            run["steps"] = [{**step, "manager": step["manager"] | {"cpu_s": None}} for step in run["steps"]]
    assert not figure.summarise(results).holds


def test_figures_that_are_asked_for_together_are_measured_in_one_pass(monkeypatch, tmp_path):
    asked = []

    def in_no_time(figures, effort, directory, *, most_s, tick):
        asked.append((list(figures), effort, directory, most_s))
        found = {
            name: made_up(FIGURES[name], dict.fromkeys(FIGURES[name].cases, 9.0), True)[0] for name in figures
        }
        return {name: {**result, "seconds": 7.0} for name, result in found.items()}

    monkeypatch.setattr(registry, "run_together", in_no_time)
    answers = registry.run(["dcape_5_15", "dcape_5_7"], quick=True, out=tmp_path, minutes=2.0)
    assert asked == [(["dcape_5_15", "dcape_5_7"], EFFORTS[True], tmp_path, 120.0)]
    assert [answer["name"] for answer in answers] == ["dcape_5_15", "dcape_5_7"]
    assert [answer["holds"] for answer in answers] == [True, False]
    for answer in answers:
        assert answer["seconds"] >= 7.0
        record = json.loads((tmp_path / f"{answer['name']}.json").read_text())
        assert record["set_up"] == answer["set_up"] != []
        assert record["quick"]
        assert (tmp_path / f"{answer['name']}.png").exists()
