"""Plans that share operators: never dearer than without, much cheaper where queries meet."""

from __future__ import annotations

import numpy as np
import pytest

from levelwind.reproduce.wide_area import cluster_of, same_producers
from levelwind.sharing import plan_shared, usage_alone


def plane(seed, count):
    spots = np.random.default_rng(seed).uniform(0, 100, (count, 3))
    return np.sqrt(((spots[:, None] - spots[None]) ** 2).sum(-1))


def test_four_queries_save_and_multicast_saves_more():
    plain, relayed, separate = 0.0, 0.0, 0.0
    for seed in range(8):
        cluster = cluster_of(plane(seed, 60))
        network = same_producers(np.random.default_rng(seed), cluster.names, consumers=4)
        separate += usage_alone(network, cluster)
        without = plan_shared(network, cluster, multicast=False)
        with_it = plan_shared(network, cluster)
        assert with_it.usage <= without.usage <= without.usage_apart
        assert with_it.plan.measures.network_usage == pytest.approx(with_it.usage)
        # What costs the network nothing more is computed once.
        assert len(without.served_by) == 3
        plain, relayed = plain + without.usage, relayed + with_it.usage
    print(f"\nsaved {1 - plain / separate:.1%}, with multicast {1 - relayed / separate:.1%}")
    assert 1 - plain / separate >= 0.40
    assert relayed < plain


@pytest.mark.parametrize("seed", range(6))
def test_never_dearer(seed):
    """Also where an operator puts out more than it reads: then sharing it may cost more than it spares."""
    rng = np.random.default_rng(seed)
    cluster = cluster_of(plane(seed, 40))
    network = same_producers(rng, cluster.names, consumers=3, passed=float(rng.uniform(0.1, 3.0)))
    found = plan_shared(network, cluster)
    assert found.usage <= found.usage_apart * (1 + 1e-9)
    assert found.plan.measures.network_usage <= found.usage_apart * (1 + 1e-9)


def test_what_is_not_reusable_is_left_alone():
    cluster = cluster_of(plane(0, 40))
    network = same_producers(np.random.default_rng(0), cluster.names, consumers=3, reusable=False)
    found = plan_shared(network, cluster)
    assert not found.served_by
    assert set(found.plan.placement) == set(network.operators)
