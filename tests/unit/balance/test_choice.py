"""Which operators and nodes an option means, and what is said if it means none."""

from __future__ import annotations

import numpy as np
import pytest
from cost_situations import situation

from levelwind.balance import make_policy
from levelwind.balance.choice import chosen, idle_choices, matches
from levelwind.balance.redistribution import remarks_of
from levelwind.frontend import parse_network
from levelwind.frontend.yamltext import scalar
from levelwind.model import Cluster, Node
from levelwind.sim.scenario_file import parse_scenario

NAMES = ["busy[0]", "busy[1]", "busy0", "join_a", "join_b[0]", "trio", "trio[in]", "trio[0]"]
NETWORK = parse_network(
    {
        "streams": {"I": {"rate": 1}},
        "operators": [
            {"name": "busy", "kind": "model", "input": "I", "split": {"into": 2}},
            {"name": "join_a", "kind": "model", "input": "I", "properties": {"gpu": True, "weight": 1.5}},
        ],
    }
).network


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("busy[0]", {"busy[0]"}),
        ("busy[1], join_a", {"busy[1]", "join_a"}),
        ("busy", {"busy[0]", "busy[1]"}),
        ("busy[0-9]", {"busy0"}),
        ("join_*", {"join_a", "join_b[0]"}),
        ("trio", {"trio", "trio[in]", "trio[0]"}),
        ("trio[in]", {"trio[in]"}),
        ("Busy", set()),
        ("", set()),
    ],
)
def test_names_go_before_patterns_and_mean_all_parts(wanted, found):
    mask = chosen(wanted, NAMES, [{}] * len(NAMES))
    assert {name for name, is_chosen in zip(NAMES, mask, strict=True) if is_chosen} == found


@pytest.mark.parametrize(
    "written",
    ["true", "True", "false", "7", "0", "1.0", "1.50", "1e3", "0x1f", "null", "rack a", "no", "'7'"],
)
def test_values_are_compared_as_yaml_reads_them(written):
    """What the file says may be given to the policy in the same words."""
    value = scalar(written) if written != "'7'" else "7"
    text = written.strip("'")
    assert matches(f"p={text}", ["n"], [{"p": value}]).all()
    assert not matches(f"q={text}", ["n"], [{"p": value}]).any()


@pytest.mark.parametrize(
    ("text", "value"), [("true", 1), ("1", True), ("0", False), ("true", "yes"), ("7", 8)]
)
def test_values_that_differ(text, value):
    assert not matches(f"p={text}", ["n"], [{"p": value}]).any()


@pytest.mark.parametrize("policy", ["balance", "degradation"])
def test_one_instance_alone_may_move_and_only_to_nodes_with_a_gpu(policy):
    nodes = tuple(Node(name=f"n{i}", properties={"gpu": i == 2}) for i in range(3))
    seen = situation([], [0, 0, 0], load=[0.3] * 3, nodes=nodes)
    object.__setattr__(seen.facts, "operators", ("busy[0]", "busy[1]", "busy0"))
    made = make_policy(policy, {"operators": "busy[0]", "nodes": "gpu=true"})
    proposed = made.propose(seen, rng=np.random.default_rng(0))
    assert [(each.operator, each.to) for each in proposed] == [(0, 2)]


def test_what_means_nothing_is_told_with_what_may_have_been_meant():
    policy = make_policy("balance", {"operators": "busy[2],join_a,jion_a,gqu=true", "nodes": "n1,n9"})
    told = remarks_of(policy, NETWORK, Cluster.equal(2).nodes)
    meant = [text.partition(" means")[0] for text in told]
    assert meant[0].startswith("policy balance: operators=busy[2] (did you mean 'busy[")
    assert meant[1:] == [
        "policy balance: operators=jion_a (did you mean 'join_a'?)",
        "policy balance: operators=gqu=true (did you mean 'gpu=true'?)",
        "policy balance: nodes=n9 (did you mean 'n2'?)",
    ]
    assert told[0].endswith("means no operator that there is")
    assert told[-1].endswith("means no node that there is")
    assert idle_choices("weight=2", ["a"], [{"weight": 1.5}]) == ["weight=2 (did you mean 'weight=1.5'?)"]
    assert idle_choices("xyz", [f"o{k}" for k in range(5000)], [{}] * 5000) == ["xyz"]
    for fine in ({}, {"operators": "busy,gpu=true,weight=1.50", "nodes": "n[12]"}):
        assert not remarks_of(make_policy("degradation", fine), NETWORK, Cluster.equal(2).nodes)
    assert not remarks_of(make_policy("replan"), NETWORK, Cluster.equal(2).nodes)
    assert not remarks_of(None, NETWORK, ())


def test_a_scenario_says_so_before_it_is_run(tmp_path):
    (tmp_path / "net.yaml").write_text(
        "streams: {I: {rate: 1}}\noperators: [{name: a, kind: model, input: I, cost: 1ms, selectivity: 1}]\n"
    )
    joins = "events: [{at: 5s, joined: {name: late}}]"

    def warnings(options):
        text = f"network: net.yaml\nnodes: 2\npolicy: {{name: balance, {options}}}\n{joins}\n"
        return parse_scenario(text, base=tmp_path).warnings

    assert warnings("operators: a, nodes: late") == ()
    (said,) = warnings("operators: b, nodes: n2")
    assert said == "policy balance: operators=b means no operator that there is"
