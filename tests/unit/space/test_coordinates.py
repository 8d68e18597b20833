"""Coordinates on worlds whose latencies are known, and the parts they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levelwind.space import Coordinates, CostSpace, Vivaldi, VivaldiConfig, embed, median_error
from levelwind.space.vivaldi import filtered


def plane(seed, count):
    spots = np.random.default_rng(seed).uniform(0, 100, (count, 3))
    return np.sqrt(((spots[:, None] - spots[None]) ** 2).sum(-1))


def behind_lines(seed, count):
    """Places with an access line each, which adds to every path."""
    line = np.random.default_rng(seed + 1).exponential(30.0, count)
    latency = plane(seed, count) + line[:, None] + line[None]
    np.fill_diagonal(latency, 0.0)
    return latency


@pytest.mark.parametrize("seed", range(3))
def test_a_space_of_three_dimensions_is_found(seed):
    latency = plane(seed, 80)
    assert median_error(embed(latency, seed=seed), latency) < 0.02


@pytest.mark.parametrize("seed", range(3))
def test_heights_are_found(seed):
    latency = behind_lines(seed, 80)
    with_height = median_error(embed(latency, seed=seed), latency)
    without = median_error(embed(latency, config=VivaldiConfig(height=False), seed=seed), latency)
    assert with_height < 0.05 < without


def test_the_same_seed_gives_the_same_coordinates():
    latency = plane(0, 30)
    one, two, other = (embed(latency, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.position, two.position)
    assert not np.array_equal(one.position, other.position)


@given(st.lists(st.floats(0.1, 1000.0), min_size=1, max_size=25))
def test_the_filter_is_the_percentile_of_the_last_ten(samples):
    history = np.zeros(10)
    for seen, sample in enumerate(samples, start=1):
        history[(seen - 1) % 10] = sample
        last = sorted(samples[max(0, seen - 10) : seen])
        rank = -(-len(last) // 5)  # a fifth of them, rounded up
        assert filtered(history, seen, 0.2) == last[rank - 1]


def test_the_filter_makes_coordinates_calm():
    """Measurements with jitter and spikes: error and movement are far less than without the filter."""
    latency = behind_lines(5, 60)
    seen = {}
    for name, history in (("filter", 10), ("raw", 1)):
        nodes = Vivaldi(60, VivaldiConfig(height=True, history=history), np.random.default_rng(0))
        nodes.measure(latency, rounds=1500, jitter=0.1, spikes=0.05)
        moved = nodes.measure(latency, rounds=200, jitter=0.1, spikes=0.05).mean()
        seen[name] = median_error(nodes.coordinates, latency), moved
    assert seen["filter"][0] < seen["raw"][0] / 2
    assert seen["filter"][1] < seen["raw"][1] / 2


def test_coordinates_follow_latencies_that_change():
    nodes = Vivaldi(50, VivaldiConfig(), np.random.default_rng(0))
    nodes.measure(plane(1, 50), rounds=1000)
    after = plane(2, 50)
    before = median_error(nodes.coordinates, after)
    nodes.measure(after, rounds=3000)
    assert median_error(nodes.coordinates, after) < 0.1 * before


def test_churn():
    """Nodes that join find their place in tens of measurements, and those that were there hardly move."""
    latency = plane(3, 100)
    nodes = Vivaldi(100, VivaldiConfig(), np.random.default_rng(0))
    late = np.arange(90, 100)
    nodes.leave(late)
    nodes.measure(latency, rounds=1000)
    before = nodes.coordinates
    nodes.join(late)
    nodes.measure(latency, rounds=60)
    after = nodes.coordinates
    assert median_error(after, latency) < 0.1
    stayed = np.sqrt(((after.position - before.position)[:90] ** 2).sum(axis=1))
    assert np.median(stayed) < 5.0  # of distances around 60


def test_missing_measurements_are_left_out():
    latency = plane(4, 60)
    holes = np.random.default_rng(0).random(latency.shape) < 0.2
    holed = np.where(holes | holes.T, np.nan, latency)
    np.fill_diagonal(holed, 0.0)
    assert median_error(embed(holed), latency) < 0.05


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_nodes(count):
    found = embed(plane(0, count))
    assert found.position.shape == (count, 3)
    assert np.isfinite(found.matrix()).all()
    assert median_error(found, plane(0, count)) < 0.05


@given(st.integers(1, 40), st.integers(1, 15), st.floats(0, 100), st.integers(0, 1000))
def test_nearest_nodes_are_those_of_a_plain_search(count, k, weight, seed):
    rng = np.random.default_rng(seed)
    found = Coordinates(position=rng.normal(size=(count, 3)), height=rng.random(count), error=np.zeros(count))
    space = CostSpace(coordinates=found, load=rng.random(count), load_weight_ms=weight)
    target = rng.normal(size=(2, 3))
    near = space.nearest(target, k)
    assert near.shape == (2, min(k, count))
    for row, point in zip(near, target, strict=True):
        squared = ((found.position - point) ** 2).sum(1) + found.height**2 + (weight * space.load) ** 2
        assert np.allclose(squared[row], np.sort(squared)[: len(row)])
