"""The few formulas that verdicts rest on."""

import numpy as np
import pytest

from levelwind.reproduce.matrices import ball_bound, random_weights
from levelwind.reproduce.statistics import estimate, geometric, ratio_of_totals, rising, rounded, spearman
from levelwind.reproduce.style import _apart
from levelwind.reproduce.worlds import cell_seed, ideal_point


def test_the_interval_of_a_mean_covers_it_nineteen_times_in_twenty():
    rng = np.random.default_rng(0)
    hits = [e.low <= 3.0 <= e.high for e in (estimate(rng.normal(3.0, 1.0, 80)) for _ in range(1000))]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.02)


def test_the_interval_of_a_ratio_of_totals_covers_it():
    rng = np.random.default_rng(1)
    hits = []
    for _ in range(1000):
        whole = rng.exponential(size=80)
        e = ratio_of_totals(whole * rng.uniform(0, 0.8, 80), whole)
        hits.append(e.low <= 0.4 <= e.high)
    assert np.mean(hits) == pytest.approx(0.95, abs=0.025)


def test_a_ratio_of_empty_totals_is_no_number():
    assert np.isnan(ratio_of_totals([0.0], [0.0]).mean)


def test_a_geometric_mean_treats_twice_and_half_alike():
    assert geometric([2.0, 0.5]).mean == pytest.approx(1.0)


def test_rank_correlation_with_ties_as_scipy_has_it():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(2)
    one, other = rng.integers(0, 9, 50), rng.integers(0, 9, 50)
    assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)


def test_rising_allows_a_fall_within_the_tolerance():
    assert rising([1, 2, 2])
    assert not rising([1, 2, 1.9])
    assert rising([1, 2, 1.9], 0.2)


def test_rounding_reaches_every_depth_and_leaves_counts_alone():
    assert rounded({1: [0.123456, 12345.678, 3, None, float("nan"), 0.0]}) == {
        "1": [0.1235, 12350.0, 3, None, None, 0.0]
    }


def test_seeds_of_cells_differ_and_fit_a_json_number():
    seeds = {cell_seed(0, 601, size, graph) for size in (25, 50) for graph in range(100)}
    assert len(seeds) == 200
    assert max(seeds) < 2**53


def test_points_of_the_ideal_set_are_uniform_in_it():
    rng = np.random.default_rng(3)
    points = np.array([ideal_point(rng, 5) for _ in range(4000)])
    assert (points >= 0).all()
    assert (points.sum(axis=1) <= 1).all()
    # The distance to the ideal plane has density 5(1 − x)⁴, whose mean is 1/6.
    assert (1 - points.sum(axis=1)).mean() == pytest.approx(1 / 6, abs=0.01)


def test_random_weights_deal_out_the_whole_load():
    weights = random_weights(np.random.default_rng(4))
    assert weights.shape == (10, 3)
    assert weights.sum(axis=0) == pytest.approx(10.0)


def test_the_largest_ball_in_three_dimensions():
    # One eighth of a ball of radius 1/√3, in units of the simplex's volume 1/6.
    assert ball_bound(np.array([1.0]))[0] == pytest.approx(6 * (4 / 3 * np.pi * 3**-1.5) / 8)


def test_labels_that_would_overlap_are_pushed_apart_and_others_stay():
    assert _apart([0.0, 1.0, 50.0], 10.0) == pytest.approx([-4.5, 5.5, 50.0])
