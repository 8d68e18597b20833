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
from levelwind.errors import InputError
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


STREAMS = {
    name: {"schema": {"ts": "timestamp", "k": "int"}, "time": "ts", "rate": rate}
    for name, rate in {"a": 10.0, "b": 20.0, "c": 5.0}.items()
}


def works(*operators, hashed=True):
    return expected_work(parse_network({"streams": STREAMS, "operators": operators}).network, hashed=hashed)


@pytest.mark.parametrize("more", [{}, {"diffuse": {"method": "atr", "instances": 3}}])
def test_a_multijoin_keeps_its_windows(more):
    """10 · 3 + 20 · 2 + 5 · 4 rows; each new row meets those of the two others that are kept."""
    trio = {"name": "t", "kind": "multijoin", "inputs": {"x": "a", "y": "b", "z": "c"}, "selectivity": 0.01,
            "windows": {"x": "3s", "y": "2s", "z": "4s"}, "where": "x.k = y.k", **more}  # fmt: skip
    groups = 10 * 40 * 20 + 20 * 30 * 20 + 5 * 30 * 40
    assert works(trio)["t"] == Work(rows_in=35, rows_out=0.01 * groups, evaluated=0.01 * groups, state=90)
    assert works(trio, hashed=False)["t"].evaluated == pytest.approx(groups)


def test_a_multijoin_of_two_is_a_join():
    on = {"where": "x.k = y.k", "selectivity": 0.5}
    join = {"name": "t", "kind": "join", "inputs": {"x": "a", "y": "b"}, "within": "3s", **on}
    multi = {**join, "kind": "multijoin", "windows": {"x": "3s", "y": "3s"}}
    del multi["within"]
    for hashed in (True, False):
        assert works(join, hashed=hashed) == works(multi, hashed=hashed)
    by_hand = join_work(10, 20, 30, 60, 600)
    assert works(join, hashed=False)["t"] == by_hand


@pytest.mark.parametrize(("rows", "slide"), [(100, 100), (100, 10), (7, 3), (1, 1)])
def test_a_window_of_rows_keeps_what_the_next_windows_need(rows, slide):
    counts = {"name": "t", "kind": "aggregate", "input": "a", "window": {"rows": rows, "slide": slide},
              "compute": {"n": "count(*)"}, "selectivity": 1 / slide}  # fmt: skip
    kept, held = [], 0
    for _ in range(rows + 20 * slide):
        held += 1
        if held == rows:
            held -= slide
        kept.append(held)
    assert works(counts)["t"].state == pytest.approx(sum(kept[-20 * slide :]) / (20 * slide))


def test_windows_of_rows_in_groups_are_refused():
    counts = {"kind": "aggregate", "input": "a", "by": ["k"], "window": {"rows": 9, "slide": 3},
              "compute": {"n": "count(*)"}, "selectivity": 0.1}  # fmt: skip
    with pytest.raises(InputError) as refused:
        works({"name": "s", **counts}, {"name": "t", **counts})
    assert [problem.key for problem in refused.value.problems] == ["s.by", "t.by"]
