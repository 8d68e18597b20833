"""Every planner where loads do not follow the streams alone: joins, varying rates, stated series."""

from __future__ import annotations

import math
from typing import Any

import pytest

from levelwind import planning
from levelwind.model import Cluster, Filter, Join, Model, Network, Operator, PlanStatus, Port, Stream
from levelwind.placement import planner_names
from levelwind.testing import meshed

OPTIONS: dict[str, dict[str, Any]] = {"resilient": {"budget": 0.02}}
CLUSTER = meshed(Cluster.equal(3))


def wave(k: int) -> tuple[float, ...]:
    return tuple(4.0 + 3.0 * math.sin(2.1 * k + (k + 1) * t) for t in range(12))


def box(name: str, *inputs: Port, **traits: Any) -> Operator:
    return Operator(
        name=name, inputs=inputs, **{"spec": Model(), "cost_s": 0.01, "selectivity": 0.8, **traits}
    )


def nonlinear() -> Network:
    """Routes, an unreliable selectivity and a join: three variables, one of them a stream."""
    routes = Filter(routes={"small": "size < 10", "rest": "true"})
    small, rest = (Port(source="routed", route=route) for route in ("small", "rest"))
    boxes = (
        box("routed", Port(source="I1"), spec=routes),
        box("unsure", small, varying=True),
        box("reader", Port(source="unsure")),
        box("plain", rest),
        box("pair", Port(source="unsure"), Port(source="I2"), spec=Join(aliases=("a", "b"), within_s=0.5)),
        box("last", Port(source="pair")),
    )
    streams = {f"I{k + 1}": Stream(name=f"I{k + 1}", rate=wave(k)) for k in range(2)}
    return Network(streams=streams, operators={each.name: each for each in boxes})


def series_alone() -> Network:
    """Operators whose load is stated as a series: no variable at all."""
    names = ("s1", "s2", "s3", "s4")
    series = {name: tuple(rate / 100 for rate in wave(k)) for k, name in enumerate(names)}
    return Network(operators={name: Operator(name=name, spec=Model(series=series[name])) for name in names})


@pytest.mark.parametrize("network", [nonlinear, series_alone])
@pytest.mark.parametrize("planner", planner_names())
def test_every_operator_is_placed(planner, network):
    made = network()
    for cluster in (CLUSTER, meshed(Cluster.equal(1))):
        plan = planning.plan(made, cluster, planner, options=OPTIONS.get(planner))
        assert plan.status is PlanStatus.PLACED
        assert set(plan.placement) == set(made.operators)
        assert set(plan.placement.values()) <= set(cluster.names)
        assert set(plan.reasons) == set(made.operators)
        assert plan == planning.plan(made, cluster, planner, options=OPTIONS.get(planner))
