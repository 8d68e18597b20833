"""Figure 6.12's workload: who can fall behind for good at the highest rates, by the model."""

from levelwind.model import Cluster
from levelwind.planning import plan
from levelwind.reproduce import figure_6_12, traffic_engine
from levelwind.reproduce.traffic_engine import CAP, WORKERS, fullest_mean, network

# What the engine needed for itself when the figure was measured.
OWN_USE = 0.16


def test_at_the_highest_rates_only_connected_has_a_node_that_is_overloaded_in_the_mean():
    told = network([1.0], 10, figure_6_12.BATCH_S)
    nodes = Cluster.equal(WORKERS, cpu=CAP)
    found = {}
    for name in figure_6_12.PLANNERS:
        placement = plan(told, nodes, name).placement
        found[name] = OWN_USE + fullest_mean(placement, figure_6_12.FULL_USE - OWN_USE, 40)
    print("\n" + ", ".join(f"{name} {load:.2f}" for name, load in found.items()))
    assert [name for name, load in found.items() if load > 1] == ["connected"]


def test_the_fullest_node_of_a_plan_that_has_everything_on_one():
    operators = {f"o{k}_{n}": "n1" for k in range(10) for n in range(len(traffic_engine.COSTS))}
    assert fullest_mean(operators, 0.5, 40) == 0.5 * WORKERS
