"""Every benchmark in a tiny version: it runs, and its numbers mean what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from levelwind.bench import balance, plan_file, resilient, rod_scale, simulator, start, volume
from levelwind.bench.files import write_trees
from levelwind.bench.literal_rod import literal_rod
from levelwind.bench.plan_once import peak_memory_mb
from levelwind.bench.result import Settings
from levelwind.frontend import load_network
from levelwind.frontend.generate import random_trees
from levelwind.loads import make_problem
from levelwind.model import Cluster
from levelwind.placement import make_planner

ONCE = Settings(repeat=1)


def test_rod_scale_reports_time_memory_and_the_large_size():
    middle = replace(rod_scale.MIDDLE, operators=60, nodes=4, streams=3)
    large = replace(rod_scale.LARGE, operators=80, nodes=5, streams=3, limit_s=1e-9)
    answer = rod_scale.run(ONCE, middle=middle, large=large).as_dict()
    assert answer["ratio"] == pytest.approx(answer["baseline"] / answer["ours"])
    labels = [figure["label"] for figure in answer["figures"]]
    assert labels[0] == "60 operators on 4 nodes"
    assert "peak memory, 60 operators on 4 nodes" in labels
    # The limit of a nanosecond is missed: a result like any other.
    assert answer["ok"] is False
    assert any(text.startswith("limit missed: 80 operators on 5 nodes") for text in answer["notes"])
    ratios = answer["details"]["feasible_ratio"]
    assert ratios[rod_scale.SAME] == ratios["literal"]


@pytest.mark.parametrize("seed", range(3))
def test_the_literal_baseline_is_rod_with_the_first_class_one_node(seed: int):
    network = random_trees(np.random.default_rng(seed), operators=200, streams=6)
    problem = make_problem(network, Cluster.equal(7))
    ours = make_planner("rod", {"class_one": "first"}).plan(problem, rng=np.random.default_rng(0))
    assert ours.assignment is not None
    assert ours.assignment.tolist() == literal_rod(problem).tolist()


def test_peak_memory_is_in_megabytes():
    block = np.ones(25_000_000)
    assert block.nbytes / 1e6 < peak_memory_mb() < 20_000


def test_plan_file_times_the_whole_command():
    result = plan_file.run(ONCE, operators=100, streams=3)
    assert result.ours.value > 0
    assert result.ours.limit == plan_file.LIMIT_S


def test_the_written_file_holds_the_generated_network(tmp_path):
    file = tmp_path / "trees.yaml"
    write_trees(file, operators=50, streams=5, seed=1)
    loaded = load_network(file)
    made = random_trees(np.random.default_rng(1), operators=50, streams=5)
    assert loaded.warnings == ()
    assert list(loaded.network.operators) == list(made.operators)
    for name, box in made.operators.items():
        assert loaded.network.operators[name].inputs == box.inputs
        assert loaded.network.operators[name].cost_s == pytest.approx(box.cost_s, abs=1e-9)


def test_start_takes_the_slowest_command():
    result = start.run(ONCE, only=("--help", "plan"))
    taken = result.details["rounds_s"]
    assert set(taken) == {"--help", "plan", start.BASELINE}
    assert result.ours.value == max(taken["--help"][0], taken["plan"][0])
    assert [figure.limit for figure in result.figures] == [start.LIMIT_S]


def test_every_command_of_start_runs():
    assert len(start.run(ONCE).figures) == 4


def test_rays_err_less_than_hit_or_miss():
    result = volume.run(Settings(repeat=3), graphs=2)
    assert result.ours.unit == "%"
    assert result.ratio > 4  # ERRATA.md saw 8; measured here: above 20
    assert result.ours.value < 0.2


def test_hull_is_exact():
    spatial = pytest.importorskip("scipy.spatial")
    cube = 2.0 * np.eye(2)  # two planes that leave half of the triangle
    assert volume.hull_ratio(cube, spatial) == pytest.approx(0.5)


def test_volume_does_without_scipy(monkeypatch):
    exact = volume.run(ONCE, graphs=1).details["exact"]
    monkeypatch.setattr(volume, "_hull", lambda: None)
    far = volume.run(ONCE, graphs=1)
    assert far.details["exact"] == pytest.approx(exact, rel=2e-3)
    assert "true volumes along a million rays" in far.notes


def test_resilient_gains_and_counts_its_time():
    result = resilient.run(Settings(repeat=2), sizes=(25,), budget=0.05)
    points = result.details["points"]
    assert len(points) == 2
    assert result.ratio > 0.999
    assert result.figures[0].value == max(point["cpu_s"][0] for point in points)
    assert result.figures[0].limit == 0.05


def test_full_adds_the_large_budget():
    result = resilient.run(Settings(repeat=1, full=True), sizes=(25,), budget=0.01)
    assert result.details["budgets_s"] == pytest.approx([0.01, 0.1])
    assert len(result.details["points"][0]["resilient"]) == 2
    assert result.figures[-1].limit == pytest.approx(0.1)


def test_simulator_compares_time_per_event():
    result = simulator.run(ONCE, seconds=2.0, plain_seconds=0.05)
    assert result.ratio == pytest.approx(result.baseline.value / result.ours.value)
    assert result.ratio > 3
    assert result.ours.limit == pytest.approx(333.33, rel=1e-3)
    assert "million events per second" in result.notes[0]


def test_balance_measures_planners_policies_and_the_manager():
    sizes = balance.Sizes(nodes=(3, 4), many=60, managed_nodes=4, managed_operators=40)
    answer = balance.run(ONCE, sizes=sizes).as_dict()
    labels = [figure["label"] for figure in answer["figures"]]
    assert {"correlation, 60 nodes by sub-domains", "steady_pairs, one pair"} <= set(labels)
    assert any("a report of 40 operators on 4 nodes" in label for label in labels)
    assert any("in sub-domains of" in note for note in answer["notes"])
    assert answer["ratio"] > 1
