"""The strategies make what they promise: an oracle is worth nothing on networks that lack what it tests."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from levelwind.testing import strategies

NODES = ("n1", "n2")


def features_of(network):
    boxes = network.operators.values()
    found = {
        "joins": any(b.is_join for b in boxes),
        "routes": any(len(b.routes) > 1 for b in boxes),
        "unions": any(len(b.inputs) > 1 and not b.is_join for b in boxes),
        "varying": any(b.varying for b in boxes),
        "splits": any(b.split for b in boxes),
        "loads": any(b.kind == "model" and b.spec.load is not None for b in boxes),
        "idle": any(b.cost_s == 0 for b in boxes),
        "transfer": any(b.transfer_cost_s > 0 for b in boxes),
        "bytes": any(b.bytes is not None for b in boxes),
        "entries": any(s.node for s in network.streams.values()),
        "outputs": bool(network.outputs),
        "tables": any(b.table for b in boxes),
        "pins": any(b.pinned for b in boxes),
        "rates": all(s.rate is not None for s in network.streams.values()),
        "series": any(s.rate and len(s.rate) > 1 for s in network.streams.values()),
        "min_rates": any(s.min_rate > 0 for s in network.streams.values()),
    }
    return {feature for feature, present in found.items() if present}


def test_every_feature_turns_up_often():
    seen = dict.fromkeys(strategies.FEATURES, 0)

    @settings(max_examples=100, database=None, derandomize=True, deadline=None, phases=[Phase.generate])
    @given(strategies.networks(nodes=NODES))
    def look(network):
        for feature in features_of(network):
            seen[feature] += 1

    look()
    assert min(seen.values()) >= 10, seen


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_what_is_left_out_does_not_turn_up(data):
    without = data.draw(st.sets(st.sampled_from(sorted(strategies.FEATURES))))
    network = data.draw(strategies.networks(nodes=NODES, without=without))
    assert not features_of(network) & without


def test_a_misspelt_feature_is_refused():
    look = given(strategies.networks(without={"jions"}))(lambda network: None)
    with pytest.raises(ValueError, match="jions"):
        look()
