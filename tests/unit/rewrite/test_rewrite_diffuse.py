"""Joins that are to be spread become operators that planners place."""

from __future__ import annotations

import levelwind as lw
from levelwind.rewrite import diffused, split

TOLD = {
    "name": "t",
    "streams": {name: {"rate": 10} for name in "ab"},
    "operators": [
        {
            "name": "near",
            "kind": "multijoin",
            "inputs": {"a": "a", "b": "b"},
            "windows": {"a": "2s", "b": "3s"},
            "cost": 1e-3,
            "selectivity": 0.1,
        },
        {"name": "after", "kind": "model", "input": "near", "cost": 1e-3},
    ],
}


def network(**diffuse):
    join = {**TOLD["operators"][0], **({"diffuse": diffuse} if diffuse else {})}
    return lw.parse({**TOLD, "operators": [join, TOLD["operators"][1]]})


def names(**diffuse):
    return [operator.name for operator in split(network(**diffuse)).operators]


def test_parts_of_each_method():
    assert names() == ["near", "after"]
    assert names(method="atr", instances=2) == ["near[in]", "near[0]", "near[1]", "near", "after"]
    assert names(method="ctr", instances=2) == ["near[in]", "near[0]", "near[1]", "near", "after"]
    both = names(method="auto", instances=2)
    assert both == ["near[in]", "near[0]", "near[1]", "near[0>0]", "near[1>0]", "near", "after"]


def test_a_network_is_spread_once():
    once = diffused(network(method="atr", instances=3))
    assert diffused(once) is once
    plain = network()
    assert diffused(plain) is plain


def test_parts_share_the_load_of_the_join():
    whole = lw.plan(network(), 1).measures.max_load
    for method in ("atr", "ctr", "auto"):
        spread = lw.plan(network(method=method, instances=2), 1).measures.max_load
        # What sends and what fuses costs a little of its own: a microsecond per row.
        assert whole <= spread <= whole + 1e-3
    two = lw.plan(network(method="atr", instances=2), 2, "llf")
    assert two.placement["near[0]"] != two.placement["near[1]"]


def test_a_pin_holds_what_sends_and_what_fuses():
    told = {**TOLD["operators"][0], "pinned": "n3", "diffuse": {"method": "atr", "instances": 3}}
    pinned = lw.parse({**TOLD, "operators": [told, TOLD["operators"][1]]})
    for seed in range(5):
        plan = lw.plan(pinned, 4, "random_node", seed=seed)
        assert plan.placement["near[in]"] == plan.placement["near"] == "n3"
    free = lw.plan(pinned, 4, "llf").placement
    assert len({free[f"near[{i}]"] for i in range(3)}) == 3


def test_parts_have_the_properties_of_the_join():
    diffuse = {"method": "auto", "instances": 2}
    told = {**TOLD["operators"][0], "properties": {"licence": "x"}, "diffuse": diffuse}
    *parts, after = split(lw.parse({**TOLD, "operators": [told, TOLD["operators"][1]]})).operators
    assert all(part.logical.properties == {"licence": "x"} for part in parts)
    assert after.logical.properties == {}
