"""What the methods are compared with finds what it should, and nobody else loses a group."""

from __future__ import annotations

import numpy as np
import pytest
from spread_cases import random_case

from levelwind.diffusion.arrivals import poisson_rows
from levelwind.diffusion.harness import fused_groups, naive_groups
from levelwind.diffusion.join import MICROSECONDS, JoinShape, Measured
from levelwind.diffusion.throughput import BASELINES, run

SECONDS, HOSTS = 60, 4
SHAPE = JoinShape(windows_us=(5 * MICROSECONDS,) * 3, instances=HOSTS)
MEASURED = Measured.of([20.0] * 3, 0.02)
# So fast that nothing is shed.
FAST = np.full(HOSTS, 1e6)


def found(algorithm, measured=MEASURED):
    streams, times = poisson_rows(np.random.default_rng(1), measured.rates, SECONDS)
    return run(algorithm, SHAPE, measured, FAST, streams, times, SECONDS)


def test_all_but_the_unaware_find_all_groups():
    groups = {name: found(name).groups.sum() for name in ("atr", "ctr", "auto", *BASELINES)}
    print("\n", {name: round(float(each), 1) for name, each in groups.items()})
    whole = groups["centralised"]
    for name in ("atr", "ctr", "auto", "atr_unoptimised", "ctr_unoptimised"):
        assert groups[name] == pytest.approx(whole, rel=1e-6)
    # A row's two partners are each where it is with a chance of one in four.
    assert groups["semantics_unaware"] == pytest.approx(whole / HOSTS**2, rel=0.05)


def test_covers_by_load_send_less_than_covers_by_chance():
    # Rows and partial groups alike: what is chosen by chance is not reused from hop to hop.
    by_load, by_chance = found("ctr"), found("ctr_unoptimised")
    print(f"\nreceived/s: {by_load.received:.0f} by load, {by_chance.received:.0f} by chance")
    assert by_load.received < by_chance.received


def test_a_master_by_rates_sends_less_than_the_first_stream():
    # All rows of the master go to one host each. With equal rates there is nothing to choose.
    fast_last = Measured.of([10.0, 10.0, 40.0], 1e-4)
    chosen, fixed = found("atr", fast_last), found("atr_unoptimised", fast_last)
    print(f"\nreceived/s: {chosen.received:.0f} with the last as master, {fixed.received:.0f} with the first")
    assert chosen.segment_s == fixed.segment_s
    assert chosen.received < 0.8 * fixed.received
    assert found("atr").received == found("atr_unoptimised").received


def test_who_does_the_work():
    # One host of four does all: its work is four times the mean.
    assert found("centralised").spread == pytest.approx(np.sqrt(HOSTS - 1))
    # Turns are even; what is left is chance.
    assert found("semantics_unaware").spread < 0.1
    for name in ("atr", "ctr", "auto"):
        assert found(name).spread < 0.15


@pytest.mark.parametrize("seed", range(40))
def test_covers_by_chance_lose_nothing(seed):
    router, rows, batches, _ = random_case(seed, "ctr")

    def by_chance(each):
        each.rng = np.random.default_rng(seed)

    changes = dict.fromkeys(range(len(batches)), by_chance)
    expected = naive_groups(rows, router.shape.windows_us)
    assert fused_groups(router, rows, batches, changes).groups == expected
