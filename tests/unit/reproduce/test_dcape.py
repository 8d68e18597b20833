"""The query plans of seed 003 and the figures that run them: what can be told without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from levelwind import plan
from levelwind.frontend import load_network, parse_network
from levelwind.model import Cluster
from levelwind.planning import measure
from levelwind.reproduce import registry
from levelwind.reproduce.dcape import FIGURES
from levelwind.reproduce.dcape_curves import at_least
from levelwind.reproduce.dcape_runs import Case
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


def made_up(figure, throughput):
    step = {
        "wall_s": 2.0, "rows": 10, "memory": 5, "sent": 1, "fullest_s": 0.1, "working_s": 0.2, "cpu_s": 0.4,
        "manager": {"cpu_s": 0.001, "bytes_in": 10.0, "bytes_out": 1.0, "memory_bytes": 1e4},
    }  # fmt: skip
    runs = {
        case.name: [{"throughput": throughput[label], "steps": [step] * 3, "connections": 4}] * 3
        for label, case in figure.cases.items()
    }
    return [{"runs": runs, "capped": True}]


@pytest.mark.parametrize(
    "name", ["dcape_4_3", "dcape_4_6", "dcape_4_8", "dcape_5_9", "dcape_5_11", "dcape_6_4"]
)
def test_figures_judge_and_draw_what_was_measured(name, tmp_path):
    figure = FIGURES[name]
    results = made_up(figure, dict.fromkeys(figure.cases, 100.0))
    outcome = figure.summarise(results)
    assert outcome.ours["capped"]
    figure.draw(results, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_claims_fail_where_the_figures_say_so():
    check = at_least("grouping", "round_robin")
    assert check({"grouping": [3.0, 1.0, 2.0], "round_robin": [2.0, 2.0, 2.0]})[0].passed
    assert not check({"grouping": [1.0], "round_robin": [2.0]})[0].passed
