"""Policies of the distribution manager in a run in this process: what they measure decides what moves."""

from __future__ import annotations

import polars as pl
import pytest
from test_managing import ALONE, CLUSTER, COST, NETWORK, Priced, World, drive

from levelwind.balance import make_policy
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.managing import Balancing, Steward
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

STEPS = 24
# Rows a second; every other row of the left goes on to the second operator.
ROWS = {"left": 100, "right": 50}
LIGHT = {"left": 20, "right": 200}


def run(folder, placement, policy, rows):
    """So many steps under a policy: the moves of each, where operators end, and the rows that came out."""
    sinks = {name: ParquetSink(str(folder / name)) for name in (*NETWORK.outputs, DEAD_LETTERS)}
    world = World(
        Coordinator(
            Layout(NETWORK), CLUSTER.names, placement,
            directory=str(folder / "checkpoint"), executor=Priced(), sinks=sinks,
        )
    )  # fmt: skip
    made = None if policy is None else make_policy(policy[0], policy[1])
    steward = Steward(NETWORK, CLUSTER, placement, Balancing(policy=made, samples=3))
    steps = drive(world, steward, STEPS, **rows)
    moves = [list(step.commit.moves) for step in steps]
    read = {
        name: sorted(
            row for file in (folder / name).glob("*.parquet") for row in pl.read_parquet(file).rows()
        )
        for name in NETWORK.outputs
    }
    return moves, steps[-1].program.placement, read


def largest(placement, rows):
    """CPU a second of the costliest node, by what operators cost, without sending."""
    arriving = {"half": rows["left"], "after": rows["left"] / 2, "other": rows["right"]}
    loads = dict.fromkeys(CLUSTER.names, 0.0)
    for name, node in placement.items():
        loads[node] += COST[name] * arriving[name]
    return max(loads.values())


POLICIES = ("balance", "degradation", "replan")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("rows", "before", "after"),
    [
        # 0.2 for each of the left's and 0.05 for the right's: nothing is better than to part the large ones.
        (ROWS, 0.45, 0.25),
        # 0.02 for each of the left's and 0.4 for the right's, which is best alone.
        ({"left": 10, "right": 400}, 0.44, 0.4),
    ],
)
def test_a_node_with_everything_gives_what_relieves_it_and_then_nothing_moves(
    tmp_path, policy, rows, before, after
):
    options = {"gain": 5.0} if policy == "replan" else {}
    moves, ends, read = run(tmp_path / "moved", ALONE, (policy, options), rows)
    flat = [record for each in moves for record in each]
    assert {(record.source, record.target) for record in flat} == {("n1", "n2")}
    assert largest(ALONE, rows) == pytest.approx(before)
    assert largest(ends, rows) == pytest.approx(after)
    # In one go; from then on it is well.
    assert sum(map(bool, moves)) == 1
    _, stays, unmoved = run(tmp_path / "left", ALONE, None, rows)
    assert stays == ALONE
    assert read == unmoved
    assert all(read.values())


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_even_by_what_was_measured_is_left_alone(tmp_path, policy):
    even = {"half": "n1", "after": "n2", "other": "n1"}
    moves, ends, _ = run(tmp_path, even, (policy, {}), ROWS | {"right": 0})
    assert not any(moves)
    assert ends == even


@pytest.mark.parametrize("policy", ["balance", "degradation"])
@pytest.mark.parametrize("cost", ["output_rate", "connections"])
def test_a_node_that_sends_gives_the_operator_that_does(tmp_path, policy, cost):
    apart = {"half": "n2", "after": "n1", "other": "n2"}
    options = {"cost": cost, "percent_difference": 5.0}
    moves, ends, read = run(tmp_path / "moved", apart, (policy, options), LIGHT)
    flat = [record for each in moves for record in each]
    assert [(record.operator, record.target) for record in flat] == [("half", "n1")]
    assert ends == {"half": "n1", "after": "n1", "other": "n2"}
    assert read == run(tmp_path / "left", apart, None, LIGHT)[2]


def test_replan_brings_together_what_it_costs_more_to_part(tmp_path, monkeypatch):
    """The same operators, sending a hundred times as dear: measured, not stated."""
    monkeypatch.setattr("test_managing.SENDING_S", 1e-3)
    monkeypatch.setattr("test_managing.RECEIVING_S", 2e-3)
    apart = {"half": "n2", "after": "n1", "other": "n2"}
    _, ends, _ = run(tmp_path, apart, ("replan", {}), ROWS)
    assert ends["half"] == ends["after"]
    assert ends["other"] != ends["half"]
