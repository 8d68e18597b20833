"""The public names of the top-level package, as a notebook uses them."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

import levelwind as lw
from levelwind.errors import InputError

TWO = {
    "streams": {"I": {}},
    "operators": [
        {"name": "a", "kind": "model", "input": "I", "cost": 0.1, "selectivity": 1},
        {"name": "b", "kind": "model", "input": "a", "cost": 0.2, "selectivity": 1},
    ],
}


def test_every_public_name_is_there():
    for name in lw.__all__:
        assert getattr(lw, name) is not None
    with pytest.raises(AttributeError):
        lw.no_such_name  # noqa: B018


def test_load_stays_a_function_after_planning(tmp_path):
    # A sub-package of the same name would take its place as soon as anything imports it.
    file = tmp_path / "net.json"
    file.write_text(json.dumps(TWO))
    code = (
        "import sys, levelwind as lw\n"
        "network = lw.load(sys.argv[1])\n"
        "plan = lw.plan(network, 2)\n"
        "assert lw.load(sys.argv[1]) == network and len(plan.placement) == 2\n"
    )
    subprocess.run([sys.executable, "-c", code, str(file)], check=True)


def test_assumed_figures_are_python_warnings():
    with pytest.warns(lw.InputWarning, match="cost"):
        lw.parse({"streams": {"I": {}}, "operators": [{"name": "a", "kind": "model", "input": "I"}]})


@pytest.mark.parametrize("cluster", [0, -1, True, 2.0, "2", None])
def test_a_cluster_that_is_none(cluster):
    with pytest.raises(InputError, match="number of nodes"):
        lw.plan(lw.parse(TWO), cluster)


@pytest.mark.parametrize("seed", [-1, 1.5])
def test_a_seed_that_is_none(seed):
    with pytest.raises(InputError, match="whole number"):
        lw.plan(lw.parse(TWO), 2, seed=seed)


@pytest.mark.parametrize("rate", [math.inf, math.nan, -1, "5"])
def test_a_rate_that_is_none(rate):
    with pytest.raises(InputError, match="a rate must be"):
        lw.size(lw.parse(TWO), {"I": rate})


def test_a_plan_serves_as_current():
    network = lw.parse(TWO)
    before = lw.plan(network, 2)
    assert lw.plan(network, 2, current=before).placement == before.placement


def test_full_to_the_last_digit_is_not_overloaded():
    network = lw.parse({**TWO, "streams": {"I": {"min_rate": 3.3333333333333335}}})
    assert lw.plan(network, 1).status is lw.PlanStatus.PLACED
    assert lw.size(network, {"I": 3.3333333333333335}).nodes == 1


def test_sizing_counts_loads_stated_as_series():
    boxes = [{"name": name, "kind": "model", "series": 0.9} for name in "abc"]
    network = lw.parse({"streams": {}, "operators": boxes})
    assert lw.size(network, {}).nodes == 3


def test_an_overload_at_the_stated_rates_is_noted():
    network = lw.parse({**TWO, "streams": {"I": {"rate": 100}}})
    assert any("overloaded" in note for note in lw.plan(network, 2).notes)


def test_nodes_named_beyond_reason():
    boxes = [{**TWO["operators"][0], "pinned": "n99999999"}]
    with pytest.raises(InputError, match="numbered up to"):
        lw.size(lw.parse({"streams": {"I": {}}, "operators": boxes}), {"I": 1})


def test_bytes_into_a_join_count_at_the_minimum_rate():
    # A causes no load of its own, the join's pairs do; its rows still have to reach the join.
    from levelwind.model import Cluster, Node

    network = lw.parse(
        {
            "streams": {"A": {"min_rate": 1000, "bytes": 1000, "node": "n1"}, "B": {"node": "n2"}},
            "operators": [
                {"name": "j", "kind": "join", "inputs": ["A", "B"], "within": "1ms", "cost": 0.001}
                | {"selectivity": 1, "pinned": "n2"}
            ],
        }
    )
    narrow = Cluster(nodes=tuple(Node(name=n, bandwidth_bytes_per_s=1000.0) for n in ("n1", "n2")))
    wide = Cluster(nodes=tuple(Node(name=n, bandwidth_bytes_per_s=2e6) for n in ("n1", "n2")))
    assert lw.plan(network, narrow).status is lw.PlanStatus.INFEASIBLE
    assert lw.plan(network, wide).status is lw.PlanStatus.PLACED
