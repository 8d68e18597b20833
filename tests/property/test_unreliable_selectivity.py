"""Loads are linear in the variables whatever unreliable selectivities turn out to be.

At the stated selectivities a load model that took them for reliable would give the same numbers, so here
each varying operator really has another one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import naive_load, naive_pairs, naive_rate

from levelwind.loads import make_problem
from levelwind.model import Cluster, Filter, Join, Model, Network, Operator, Port, Stream
from levelwind.rewrite.linearise import PAIRS
from levelwind.testing import strategies

SETTINGS = settings(deadline=None, max_examples=150)


def as_it_turns_out(network, factors):
    """The network with the selectivities that its varying operators really have."""
    boxes = {}
    for name, operator in network.operators.items():
        factor = factors.get(name, 1.0)
        whole = 1.0 if operator.selectivity is None else operator.selectivity
        routes = operator.route_selectivity
        boxes[name] = replace(
            operator,
            selectivity=whole * factor,
            route_selectivity=None if routes is None else {r: s * factor for r, s in routes.items()},
        )
    return replace(network, operators=boxes)


def value(problem, real, rates, variable):
    """A variable's value in the real network: the weighted sum of rates that it says it stands for."""
    if variable in rates:
        return rates[variable]
    total = 0.0
    for candidate, weight in problem.linear.introduced[variable].items():
        name, route = problem.linear.candidates[candidate]
        operator = real.operators[name]
        if operator.is_join and route == PAIRS:
            rows = [naive_rate(real, rates, port.source, port.route) for port in operator.inputs]
            total += weight * naive_pairs(operator, rows)
        else:
            total += weight * naive_rate(real, rates, name, route)
    return total


@SETTINGS
@given(st.data())
def test_loads_do_not_depend_on_the_stated_figure(data):
    network = data.draw(strategies.networks(operators=(1, 10)))
    rates = data.draw(strategies.rates(network))
    varying = [name for name, operator in network.operators.items() if operator.varying]
    factors = {name: data.draw(st.sampled_from([0.0, 0.3, 1.0, 2.5]), label=name) for name in varying}
    real = as_it_turns_out(network, factors)
    problem = make_problem(network, Cluster.equal(2))
    values = np.array([value(problem, real, rates, variable) for variable in problem.variables])
    for j, operator in enumerate(problem.physical.operators):
        expected = naive_load(real, rates, operator.logical.name) * operator.share
        assert float(problem.operator_load[j] @ values) == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_the_routes_of_a_varying_filter_vary_one_by_one():
    boxes = (
        Operator(
            name="f",
            spec=Filter(routes={"x": "a", "y": "b"}),
            inputs=(Port(source="I"),),
            cost_s=0.0,
            varying=True,
        ),
        Operator(name="a", spec=Model(), inputs=(Port(source="f", route="x"),), cost_s=1.0),
        Operator(name="b", spec=Model(), inputs=(Port(source="f", route="y"),), cost_s=1.0),
    )
    made = Network(streams={"I": Stream(name="I")}, operators={box.name: box for box in boxes})
    assert make_problem(made, Cluster.equal(2)).variables == ("f.x", "f.y")


def test_a_merged_variable_counts_once_whichever_member_is_read_first():
    def box(name, *sources, **traits):
        inputs = tuple(Port(source=source) for source in sources)
        return Operator(name=name, spec=Model(), inputs=inputs, **traits)

    boxes = (
        box("a", "I", cost_s=1.0, varying=True),
        box("b", "I", cost_s=1.0, varying=True),
        box("half", "a", cost_s=0.0, selectivity=0.5),
        box("both", "b", "half", cost_s=1.0),  # b first, though a was written first
    )
    made = Network(streams={"I": Stream(name="I")}, operators={each.name: each for each in boxes})
    problem = make_problem(made, Cluster.equal(2))
    assert problem.variables == ("I", "a+b")
    assert problem.linear.introduced["a+b"] == {"a": 1.0, "b": 2.0}
    # The load is b + a/2, and the variable a + 2b.
    assert problem.operator_load[3].tolist() == [0.0, 0.5]


def test_the_load_of_a_varying_join_follows_its_pairs():
    join = Operator(
        name="j",
        spec=Join(aliases=("a", "b"), within_s=1.0),
        inputs=(Port(source="I"), Port(source="J")),
        cost_s=1.0,
        selectivity=0.5,
        varying=True,
    )
    made = Network(streams={name: Stream(name=name) for name in "IJ"}, operators={"j": join})
    problem = make_problem(made, Cluster.equal(2))
    assert problem.variables == ("j.pairs",)
    assert problem.operator_load.tolist() == [[1.0]]
