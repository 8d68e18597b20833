"""The size of the feasible set against Qhull, closed forms and darts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import hull_ratio, monte_carlo_ratio

from levelwind.loads import bandwidth_is_abundant, feasible_volume, planes
from levelwind.testing import strategies

SETTINGS = settings(deadline=None, max_examples=150)


def random_weights(rng, n, d):
    """Weights as plans have them: what the nodes hold of a variable sums to one node-share each."""
    share = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 5.0])), d).T
    cpu = rng.choice([0.5, 1.0, 2.0], n)
    return share * cpu.sum() / cpu[:, None]


@st.composite
def cases(draw):
    d, n = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = random_weights(rng, n, d)
    if draw(st.booleans()):
        weights = np.concatenate([weights, np.zeros((1, d))])
    if draw(st.booleans()):
        weights = np.concatenate([weights, weights[:1]])  # the same plane twice
    if draw(st.booleans()):
        weights = np.concatenate([weights[:1] * 0.5, weights])  # a plane that another hides
    if draw(st.booleans()):
        weights = np.round(weights * 8) / 8  # many planes through one corner
        weights[-1] = np.maximum(weights[-1], 1.0)
    lower = rng.dirichlet(np.ones(d + 1))[:d] * draw(st.sampled_from([0.0, 0.1, 0.5, 0.9]))
    return weights, lower


@SETTINGS
@given(cases())
def test_up_to_three_variables_it_is_exact(case):
    weights, lower = case
    found = feasible_volume(weights, lower)
    assert found.error == 0.0
    # No plan bears more than the ideal one, so the ideal plane may be added to what the oracle cuts with.
    capped = np.concatenate([weights, np.ones((1, weights.shape[1]))])
    assert found.ratio == pytest.approx(min(1.0, hull_ratio(capped, lower)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("d", [2, 3])
def test_planes_that_differ_by_rounding_count_once(d):
    # Fixed (exact volume): `_cone` drops only planes that are equal bit by bit, yet its tolerance of 1e-13
    # lets two planes that differ in the last place both take the whole cone. (With a lower bound even equal
    # planes may differ in their slack's last place, which is what the test above finds.)
    rng = np.random.default_rng(3)
    for _ in range(20):
        weights = random_weights(rng, 3, d)
        twins = np.concatenate([weights, np.nextafter(weights, 9.0)])
        assert feasible_volume(twins, np.zeros(d)).ratio == pytest.approx(
            feasible_volume(weights, np.zeros(d)).ratio, rel=1e-9
        )


@pytest.mark.parametrize("d", range(1, 8))
def test_a_single_node_bears_the_ideal_set(d):
    found = feasible_volume(np.ones((1, d)), np.full(d, 0.1 / d))
    assert found.ratio == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("d", range(1, 7))
def test_a_stream_to_a_node_bears_a_box(d):
    # Each of d nodes bears 1/d of its stream alone: a box of volume d^−d in a simplex of volume 1/d!.
    found = feasible_volume(d * np.eye(d), np.zeros(d))
    exact = math.factorial(d) / d**d
    assert found.ratio == pytest.approx(exact, rel=1e-12 if d <= 3 else 0.01)
    assert abs(found.ratio - exact) <= max(3 * found.error, 1e-12)


@pytest.mark.parametrize("d", range(2, 7))
def test_one_plane_bears_a_simplex(d):
    # w·x ≤ 1 with every w_k ≥ 1 is a simplex of volume Π 1/w_k of the ideal one.
    weights = np.linspace(1.0, 2.0, d)[None, :]
    found = feasible_volume(weights, np.zeros(d))
    assert found.ratio == pytest.approx(1 / weights.prod(), rel=1e-12 if d <= 3 else 0.01)


def test_the_lower_bound_cuts_what_lies_below_it():
    # x ≥ 1/4 each, x_1 ≤ 1/2: of the triangle with legs 1/2 the part left of x_1 = 1/2: 3/4.
    lower = np.array([0.25, 0.25])
    assert feasible_volume(np.array([[2.0, 0.0], [1.0, 1.0]]), lower).ratio == pytest.approx(0.75, abs=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_a_lower_bound_outside_means_nothing_is_borne(d):
    assert feasible_volume(2 * np.ones((1, d)), np.full(d, 0.6 / d)).ratio == 0.0
    assert feasible_volume(np.ones((1, d)), np.full(d, 1.1 / d)).ratio == 0.0


def five_variable_cases(count):
    rng = np.random.default_rng(5)
    for case in range(count):
        weights = random_weights(rng, int(rng.integers(3, 7)), 5)
        lower = rng.dirichlet(np.ones(6))[:5] * 0.2 if case % 2 else np.zeros(5)
        if (weights @ lower < 1).all():
            yield case, weights, lower


def test_five_variables_within_one_percent_and_the_stated_error_is_honest():
    covered, count, errors = 0, 0, []
    for case, weights, lower in five_variable_cases(90):
        exact = hull_ratio(np.concatenate([weights, np.ones((1, 5))]), lower)
        found = feasible_volume(weights, lower, seed=case)
        errors.append(abs(found.ratio - exact) / exact)
        covered += abs(found.ratio - exact) <= found.error + 1e-9
        count += 1
    assert count >= 60
    assert max(errors) < 0.01
    assert covered >= 0.85 * count, f"{covered} of {count} intervals hold the exact value"


@SETTINGS
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 8))
def test_a_share_lies_between_nothing_and_all(seed, d, n):
    rng = np.random.default_rng(seed)
    lower = rng.dirichlet(np.ones(d + 1))[:d] * 0.3
    found = feasible_volume(random_weights(rng, n, d), lower, relative_error=0.05)
    assert 0.0 <= found.ratio <= 1.0
    assert found.error >= 0.0


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_darts_agree_with_sending_and_bandwidth(data):
    problem = data.draw(
        strategies.problems(
            streams=(3, 6), operators=(6, 12), nodes=(2, 4), without={"pins", "tables", "loads"}
        )
    )
    nodes = data.draw(strategies.placements(problem.network, problem.cluster))
    rows = planes(problem, problem.assignment(nodes))
    lower = problem.normalised_lower
    found = feasible_volume(rows.all, lower, constant=rows.constant)
    if lower.sum() >= 1 or not problem.variables:
        return
    share, error = monte_carlo_ratio(rows.all, lower, np.random.default_rng(1), 40_000, rows.constant)
    assert abs(found.ratio - share) <= 5 * error + 3 * found.error


ENDS = {"entries", "outputs"}


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_abundant_bandwidth_never_cuts_the_feasible_set(data):
    problem = data.draw(
        strategies.problems(
            streams=(1, 3), operators=(1, 5), nodes=(1, 3), without={"joins", "min_rates", *ENDS}
        )
    )
    if not problem.has_bandwidth or not bandwidth_is_abundant(problem) or len(problem.variables) > 3:
        return
    for _ in range(3):
        placement = data.draw(strategies.placements(problem.network, problem.cluster))
        found = planes(problem, problem.assignment(placement))
        lower = problem.normalised_lower
        assert feasible_volume(found.all, lower).ratio == pytest.approx(
            feasible_volume(found.cpu, lower).ratio
        )
