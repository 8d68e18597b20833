"""A spread join finds every group of the naive join, and none twice."""

from __future__ import annotations

import numpy as np
import pytest
from spread_cases import random_case, with_new_windows

from levelwind.diffusion.harness import fused_groups, naive_groups, naive_groups_of


def check(seed, method, *, new_windows=False):
    router, rows, batches, changes = random_case(seed, method)
    if new_windows:
        changes, windows = with_new_windows(seed, router, batches, changes)
        expected = naive_groups_of(rows, batches, windows)
    else:
        expected = naive_groups(rows, router.shape.windows_us)
    fused = fused_groups(router, rows, batches, changes)
    found = fused.groups
    missing, extra = expected - found, found - expected
    assert not missing, (
        f"seed {seed}: {len(missing)} of {expected.total()} groups are missing: {list(missing)[:3]}"
    )
    assert not extra, f"seed {seed}: {len(extra)} groups too many: {list(extra)[:3]}"
    return expected.total(), fused.eras


@pytest.mark.parametrize("method", ["atr", "ctr", None])
def test_spread_join_is_the_join(method):
    cases = [check(seed, method) for seed in range(100)]
    # Most cases are not empty, and there were many switches.
    assert sum(groups > 0 for groups, _ in cases) >= 80
    assert sum(groups for groups, _ in cases) > 10_000
    assert method == "ctr" or sum(eras for _, eras in cases) > 200


@pytest.mark.parametrize("method", ["atr", "ctr", None])
def test_spread_join_is_the_join_when_windows_change(method):
    cases = [check(seed, method, new_windows=True) for seed in range(60)]
    assert sum(groups for groups, _ in cases) > 5_000
    assert sum(eras for _, eras in cases) > 100


@pytest.mark.slow
@pytest.mark.parametrize("method", ["atr", "ctr", None])
def test_spread_join_is_the_join_in_thousands_of_cases(method):
    groups = [check(seed, method)[0] for seed in range(1000, 1900)]
    filled = np.count_nonzero(groups) / len(groups)
    print(f"\n{filled:.0%} of {len(groups)} cases have groups, {sum(groups):,} in all")
    assert filled >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("method", ["atr", "ctr", None])
def test_spread_join_is_the_join_in_thousands_of_changes_of_windows(method):
    groups = [check(seed, method, new_windows=True)[0] for seed in range(1000, 1600)]
    assert np.count_nonzero(groups) > 300
