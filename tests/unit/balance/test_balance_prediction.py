"""Equations 3.1 to 3.3, against rows counted one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levelwind.balance.costs.prediction import (
    UnitCosts,
    Work,
    expected_work,
    fitted,
    join_work,
    relative_errors,
)
from levelwind.frontend import parse_network
from levelwind.reproduce.query_plans import query_plan

UNIT = UnitCosts(queue_s=3.0, evaluate_s=5.0, purge_s=7.0)


@given(st.integers(0, 6), st.integers(0, 6))
def test_a_stateless_operator_row_by_row(rows, kept):
    kept = min(kept, rows)
    by_hand = sum(3.0 + 5.0 for _ in range(rows)) + sum(3.0 for _ in range(kept))
    assert Work(rows_in=rows, rows_out=kept, evaluated=rows).cost(UNIT) == by_hand


@given(*[st.integers(0, 5)] * 4)
def test_a_join_pair_by_pair(left, right, left_state, right_state):
    pairs = [(a, b) for a in range(left) for b in range(right_state)]
    pairs += [(a, b) for a in range(right) for b in range(left_state)]
    out = len(pairs) // 2
    by_hand = 3.0 * (left + right) + 7.0 * (left_state + right_state) + 5.0 * len(pairs) + 3.0 * out
    assert join_work(left, right, left_state, right_state, out).cost(UNIT) == by_hand


def test_what_the_plans_will_do():
    """Joins put out two rows per row in; windows of 10 s keep ten seconds of both sides."""
    network = parse_network(query_plan(2, rate=40.0)).network
    work = expected_work(network)
    joins = [name for name, operator in network.operators.items() if operator.kind == "join"]
    assert len(joins) == 5
    for name in joins:
        assert work[name].rows_out == pytest.approx(2 * work[name].rows_in, rel=0.01)
        assert work[name].state == pytest.approx(10 * work[name].rows_in)
    printed = expected_work(network, hashed=False)[joins[0]]
    assert printed.evaluated == pytest.approx(2 * 40 * 400)


def test_a_fit_finds_the_costs_that_made_the_figures():
    network = parse_network(query_plan(3, rate=40.0)).network
    seen = {name: (work, work.cost(UNIT)) for name, work in expected_work(network, hashed=False).items()}
    unit = fitted(seen.values())
    assert max(relative_errors(seen, unit).values()) < 1e-6
    assert unit.purge_s == pytest.approx(7.0)
