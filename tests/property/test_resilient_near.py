"""The most resilient plan within a delay, against enumeration and against `resilient`."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind import planning
from levelwind.frontend.generate import random_trees
from levelwind.loads import make_problem
from levelwind.model import Cluster, Node, Output, PlanStatus, Port
from levelwind.placement import make_units, measure
from levelwind.placement.delays import delay_of, make_paths

NEAR, FAR = 1.0, 30.0
FEW = settings(deadline=None, max_examples=10)


def two_centres(count):
    """Half of the nodes here, half there: 1 ms within, 30 ms between."""
    side = [i % 2 for i in range(count)]
    latency = tuple(
        tuple(0.0 if i == j else NEAR if side[i] == side[j] else FAR for j in range(count))
        for i in range(count)
    )
    return Cluster(nodes=tuple(Node(name=f"n{i}") for i in range(count)), latency_ms=latency)


def network_of(seed, operators, streams=2):
    from dataclasses import replace

    made = random_trees(np.random.default_rng(seed), operators=operators, streams=streams)
    read = {port.source for operator in made.operators.values() for port in operator.inputs}
    leaves = [name for name in made.operators if name not in read]
    outputs = {f"to_{name}": Output(name=f"to_{name}", input=Port(source=name), node="n0") for name in leaves}
    entries = {
        name: replace(stream, node=f"n{i % 2}") for i, (name, stream) in enumerate(made.streams.items())
    }
    return replace(made, streams=entries, outputs=outputs)


@FEW
@given(st.integers(0, 10_000))
def test_delays_are_those_of_the_measure(seed):
    rng = np.random.default_rng(seed)
    problem = make_problem(network_of(seed, 12), two_centres(4))
    units = make_units(problem)
    nodes = rng.integers(4, size=units.count)
    expected = measure(problem, units.assignment(nodes)).delay
    assert delay_of(make_paths(units, 1.0), nodes) == pytest.approx(expected)


@FEW
@given(st.integers(0, 10_000), st.sampled_from([31.0, 33.0, 61.0]))
def test_the_optimum_where_it_can_be_enumerated(seed, limit):
    network, cluster = network_of(seed, 6), two_centres(3)
    problem = make_problem(network, cluster)
    every = [np.array(nodes, dtype=np.int64) for nodes in product(range(3), repeat=6)]
    found = [measure(problem, nodes) for nodes in every]
    near = [m.feasible_ratio for m in found if m.delay <= limit]
    plan = planning.plan(network, cluster, "resilient_near", options={"delay_ms": limit, "budget": 0.02})
    if not near:
        assert plan.status is PlanStatus.INFEASIBLE
        assert f"{min(m.delay for m in found):.4g} ms" in plan.notes[0]
        return
    assert plan.measures.delay <= limit
    assert plan.measures.feasible_ratio == pytest.approx(max(near), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_never_beyond_the_limit_and_better_with_more(seed):
    network, cluster = network_of(seed, 40, streams=3), two_centres(4)
    ratios = []
    for limit in (32.0, 62.0, 95.0, 1e6):
        options = {"delay_ms": limit, "budget": 0.3}
        plan = planning.plan(network, cluster, "resilient_near", options=options)
        assert plan.status is PlanStatus.PLACED
        assert plan.measures.delay <= limit
        ratios.append(plan.measures.feasible_ratio)
    assert all(b >= 0.97 * a for a, b in pairwise(ratios))
    assert ratios[0] < ratios[-1]
    loose = planning.plan(network, cluster, "resilient", options={"budget": 0.3})
    assert ratios[-1] == loose.measures.feasible_ratio


def test_what_cannot_be_kept_is_said():
    plan = planning.plan(network_of(0, 40), two_centres(4), "resilient_near", options={"delay_ms": 5.0})
    assert plan.status is PlanStatus.INFEASIBLE
    assert "5 ms" in plan.notes[0]
