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


def found(algorithm):
    streams, times = poisson_rows(np.random.default_rng(1), MEASURED.rates, SECONDS)
    return run(algorithm, SHAPE, MEASURED, FAST, streams, times, SECONDS)


def test_all_but_the_unaware_find_all_groups():
    groups = {name: found(name).groups.sum() for name in ("atr", "ctr", "auto", *BASELINES)}
    print("\n", {name: round(float(each), 1) for name, each in groups.items()})
    whole = groups["centralised"]
    for name in ("atr", "ctr", "auto", "atr_unoptimised", "ctr_unoptimised"):
        assert groups[name] == pytest.approx(whole, rel=1e-6)
    # A row's two partners are each where it is with a chance of one in four.
    assert groups["semantics_unaware"] == pytest.approx(whole / HOSTS**2, rel=0.05)


def test_the_optimisations_send_no_more():
    assert found("ctr").received <= found("ctr_unoptimised").received
    assert found("centralised").spread > 1.5
    assert found("semantics_unaware").spread < 0.1


@pytest.mark.parametrize("seed", range(40))
def test_covers_by_chance_lose_nothing(seed):
    router, rows, batches, _ = random_case(seed, "ctr")

    def by_chance(each):
        each.rng = np.random.default_rng(seed)

    changes = dict.fromkeys(range(len(batches)), by_chance)
    expected = naive_groups(rows, router.shape.windows_us)
    assert fused_groups(router, rows, batches, changes).groups == expected
