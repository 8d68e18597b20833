"""Which paths coordinated routing lays: the orders it tries, the covers it finds, and which it takes."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from levelwind.diffusion.coordinated import MOST_ORDERS, UNASKED, join_orders
from levelwind.diffusion.covers import greedy_cover, path_overhead, plan_slot
from levelwind.diffusion.join import MICROSECONDS, JoinShape, Measured

WAITS = -2
COSTS = np.array([0.001, 0.001, 0.010])


# Orders


def orders_of(n, selectivity=0.01, rates=None):
    shape = JoinShape(windows_us=(10 * MICROSECONDS,) * n, instances=4)
    return join_orders(shape, Measured.of(rates or [10.0] * n, selectivity))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_all_orders_are_tried_up_to_four_streams(n):
    for stream, tried in enumerate(orders_of(n).tolist()):
        others = [k for k in range(n) if k != stream]
        assert sorted(map(tuple, tried)) == sorted(permutations(others))


@pytest.mark.parametrize("n", [5, 6, 7, 9])
def test_every_stream_may_come_first_and_few_orders_are_tried(n):
    for stream, tried in enumerate(orders_of(n).tolist()):
        others = {k for k in range(n) if k != stream}
        assert {order[0] for order in tried} == others
        assert all(set(order) == others for order in tried)
        assert len({tuple(order) for order in tried}) == len(tried) == MOST_ORDERS


def test_so_many_streams_that_not_all_may_come_first():
    tried = orders_of(11, rates=[20.0 - k for k in range(11)])[0].tolist()
    # Those in which a row has fewest partners.
    assert [order[0] for order in tried] == [10, 9, 8, 7, 6, 5, 4, 3]


def test_after_the_first_comes_always_the_stream_with_fewest_partners_of_those_before():
    # Neighbours in a ring agree rarely, others often.
    n = 6
    ring = [[1e-3 if (i - k) % n in (1, n - 1) else 0.5 for k in range(n)] for i in range(n)]
    tried = orders_of(n, ring)[0].tolist()
    assert tried[0] == [1, 2, 3, 4, 5]
    assert tried[1] == [5, 1, 2, 3, 4]
    assert tried[5] == [1, 3, 2, 4, 5]  # a variation


# Covers


def cover(located, weight, allowed=None, waiting=None):
    slots, m = located.shape
    serve = np.full(slots, WAITS, dtype=np.int64)
    if waiting is not None:
        serve[~waiting] = -1
    chosen = np.zeros(m, dtype=np.bool_)
    greedy_cover(located, np.ones(m, dtype=np.bool_) if allowed is None else allowed, weight, serve, chosen)
    return serve, chosen


def lightest(located, weight):
    """The least weight of hosts that together have all slots, by trying all sets of hosts."""
    m = located.shape[1]
    sets = (list(each) for size in range(m + 1) for each in combinations(range(m), size))
    return min(weight[each].sum() for each in sets if located[:, each].any(axis=1).all())


def tiny(seed):
    """Up to eight slots on up to seven hosts, each slot on one at least."""
    rng = np.random.default_rng(seed)
    slots, m = int(rng.integers(1, 9)), int(rng.integers(1, 8))
    located = rng.random((slots, m)) < rng.choice([0.2, 0.4, 0.7])
    located[np.arange(slots), rng.integers(0, m, slots)] = True
    return located, rng.uniform(0.05, 3.0, m)


def test_a_cover_has_every_slot_once_and_is_nearly_as_light_as_any():
    ratios = []
    for seed in range(200):
        located, weight = tiny(seed)
        serve, chosen = cover(located, weight)
        # One host answers for each slot, and keeps it; nobody is chosen for nothing.
        assert located[np.arange(len(serve)), serve].all(), seed
        assert set(serve.tolist()) == set(np.flatnonzero(chosen).tolist()), seed
        ratio = weight[chosen].sum() / lightest(located, weight)
        # Chvátal's bound: the harmonic number of the most slots that one host has.
        assert ratio <= sum(1 / k for k in range(1, int(located.sum(axis=0).max()) + 1)) + 1e-9, seed
        ratios.append(ratio)
    # A heuristic: not always the lightest, but seldom much heavier.
    assert max(ratios) > 1.01
    assert np.mean(ratios) < 1.1


def test_only_slots_that_wait_are_served_and_only_by_hosts_that_are_allowed():
    located = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 1], [1, 1, 1]], dtype=np.bool_)
    allowed = np.array([True, True, False])
    serve, chosen = cover(located, np.array([5.0, 1.0, 0.1]), allowed, np.array([True, True, True, False]))
    assert serve.tolist() == [1, 0, WAITS, -1]  # the third slot lies on nobody who is allowed
    assert chosen.tolist() == [True, True, False]


# Paths


def planned(located, *, load=None, partners=0.1, orders=None, spread=1):
    """Orders and hosts of the paths of one slot; located is slots × streams × hosts."""
    past, n, m = located.shape
    if orders is None:
        orders = orders_of(n)
    stored, probed = np.zeros((n, m), dtype=np.bool_), np.zeros((n, m), dtype=np.bool_)
    chosen = np.zeros(n, dtype=np.int64)
    serve = np.full((n, n - 1, past + 1), -1, dtype=np.int64)
    plan_slot(
        located,
        np.ones((n, past, n), dtype=np.bool_),
        orders,
        np.full((n, n), partners) if np.isscalar(partners) else partners,
        np.full(n, 10.0),
        np.zeros(m) if load is None else np.array(load, dtype=np.float64),
        np.zeros(m),
        1.0,
        np.ones(m, dtype=np.bool_),
        np.ones(m),
        spread,
        COSTS,
        stored,
        probed,
        chosen,
        serve,
    )
    return orders[np.arange(n), chosen], serve


def apart(past, n, m, together):
    """Slots of each stream on hosts in turn, but those of one stream all on one host."""
    located = np.zeros((past, n, m), dtype=np.bool_)
    for slot in range(past):
        located[slot, :, slot % m] = True
    located[:, together] = False
    located[:, together, 0] = True
    return located


@pytest.mark.parametrize("n", [3, 5, 6])
@pytest.mark.parametrize("cheap", [1, -1])
def test_rows_go_first_where_they_need_fewest_copies(n, cheap):
    # Wherever it stands among the streams: one host has all of its window, the others' lie on six.
    cheap %= n
    orders, serve = planned(apart(6, n, 6, cheap))
    for stream in range(n):
        if stream != cheap:
            assert orders[stream, 0] == cheap
            assert set(serve[stream, 0, :6].tolist()) == {0}


@pytest.mark.parametrize("n", [5, 6])
def test_rows_go_first_where_they_find_few_partners(n):
    # All windows lie alike: what differs is how many partial groups go on from the first hop.
    located = apart(6, n, 6, 0)
    located[:, 0] = located[:, 1]
    partners = np.full((n, n), 5.0)
    rare = n - 1
    partners[:, rare] = 0.01
    orders, _ = planned(located, partners=partners)
    assert orders[:rare, 0].tolist() == [rare] * rare


@pytest.mark.parametrize("seed", range(30))
def test_the_order_that_sends_least_is_taken_of_those_tried(seed):
    rng = np.random.default_rng(seed)
    n, m, past = 5, 6, 8
    located = rng.random((past, n, m)) < 0.3
    located[np.arange(past)[:, np.newaxis], np.arange(n), rng.integers(0, m, (past, n))] = True
    partners = rng.uniform(0.05, 3.0, (n, n))
    orders = orders_of(n)

    def sent(only, stream):
        """Per row along one order alone; of the first stream, since others see what was planned before."""
        order, serve = planned(located, partners=partners, orders=orders[:, only : only + 1])
        chosen = np.zeros((n - 1, m), dtype=np.bool_)
        for hop in range(n - 1):
            chosen[hop, serve[stream, hop, :past]] = True
        return path_overhead(serve[stream, :, :past], chosen, n - 1, order[stream], partners, stream)[0]

    taken, _ = planned(located, partners=partners)
    each = [sent(candidate, 0) for candidate in range(orders.shape[1])]
    assert taken[0].tolist() == orders[0, int(np.argmin(each))].tolist()


def test_a_hop_takes_hosts_of_the_hop_before_though_others_are_lighter():
    # Stream 1 lies on host 0. Stream 2 lies on host 0 and on host 1, which is idle, and once on 2 alone.
    located = np.zeros((4, 3, 3), dtype=np.bool_)
    located[:, 0, 2] = True
    located[:, 1, 0] = True
    located[:, 2, :2] = True
    located[3, 2] = [False, False, True]
    order = np.array([[[1, 2]], [[0, 2]], [[0, 1]]])
    _, serve = planned(located, load=[9.0, 0.0, 5.0], orders=order)
    assert serve[0, 0, :4].tolist() == [0, 0, 0, 0]
    assert serve[0, 1, :4].tolist() == [0, 0, 0, 2]
    # Rows of stream 1 come from host 2, which has only the last: the idle host serves the rest.
    assert serve[1, 1, :4].tolist() == [1, 1, 1, 2]


# Conditions that link some streams only


def test_streams_about_which_nothing_is_asked_are_not_visited_before_one_that_leads_there():
    # A chain of conditions on a, b, c, d: only neighbours are linked.
    n = 4
    unlinked = frozenset({(0, 2), (0, 3), (1, 3)})
    shape = JoinShape(windows_us=(10 * MICROSECONDS,) * n, instances=4, unlinked=unlinked)
    assert Measured.of([10.0] * n, 0.01).met(shape)[0].tolist() == [1.0, 1.0, 100.0, 100.0]
    # As long as nothing was measured or stated, what is asked counts as always true.
    measured = Measured.of([10.0] * n, 1.0)
    met = measured.met(shape, UNASKED)
    assert join_orders(shape, measured)[:, 0].tolist() == [[1, 2, 3], [0, 2, 3], [1, 0, 3], [2, 1, 0]]
    located = apart(6, n, 6, 0)
    located[:, 0] = located[:, 1]
    orders, _ = planned(located, partners=met, orders=join_orders(shape, measured))
    linked = [{1}, {0, 2}, {1, 3}, {2}]
    for stream, order in enumerate(orders.tolist()):
        bound = {stream}
        for k in order:
            assert linked[k] & bound
            bound.add(k)


def test_a_partial_group_meets_of_a_stream_what_the_most_selective_of_its_rows_does():
    partners = np.array([[1.0, 0.5, 9.0], [0.5, 1.0, 9.0], [0.2, 3.0, 1.0]])
    serve = np.array([[0, 1], [2, 2], [0, 0]])
    chosen = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=np.bool_)
    four = np.ones((4, 4))
    four[:3, :3] = partners
    four[0, 3], four[1, 3], four[2, 3] = 7.0, 2.0, 4.0
    total, entering = path_overhead(serve, chosen, 3, np.array([1, 3, 2]), four, 0)
    assert entering.tolist() == [1.0, 0.5, 1.0]  # a half of stream 1; two of stream 3, by the row of stream 1
    assert total == 1 + 0.5 * 1 + 1.0 * 1
