"""Who is master under aligned routing, and how segments are dealt out if speeds are known roughly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from levelwind.diffusion.auto import advise, aligned_busiest
from levelwind.diffusion.hosts import Hosts, Reported
from levelwind.diffusion.join import MICROSECONDS, JoinShape, Measured
from levelwind.diffusion.router import new_router


def shape_of(windows_s, instances):
    return JoinShape(windows_us=tuple(round(w * MICROSECONDS) for w in windows_s), instances=instances)


@pytest.mark.parametrize("hosts", [2, 4])
def test_a_host_that_is_thought_a_little_faster_does_not_take_all(hosts):
    """Short segments, long windows: every batch of a second is shared by all."""
    rng = np.random.default_rng(0)
    rows = 1000
    router = new_router(
        shape_of([5, 5, 5], hosts),
        measured=Measured.of([1.0] * 3, 1e-6),
        method="atr",
        segment_us=MICROSECONDS // (5 * hosts),
        slot_us=MICROSECONDS,
        hosts=Hosts.equal(hosts),
    )
    shares = []
    for second in range(30):
        streams = np.repeat(np.arange(3), rows)
        times = np.concatenate([np.sort(rng.integers(0, MICROSECONDS, rows)) for _ in range(3)])
        times += second * MICROSECONDS
        speed = 1 + 0.03 * rng.standard_normal(hosts)
        router.hear(Reported(speed=tuple(speed), usage=((0.0, 0.0, 0.0),) * hosts), 1e-6)
        router.meter(streams, times)
        routed = router.route(streams, times)
        router.settle(second * MICROSECONDS)
        masters = streams[routed.row] == router.master
        shares.append(np.bincount(routed.host[masters], minlength=hosts) / rows * hosts)
    # Dealt out ahead by a window, and five segments each: one more or less is a fifth.
    assert np.abs(np.array(shares[12:]) - 1).max() < 0.5


def test_the_middle_of_a_chain_of_conditions_is_master():
    shape = replace(shape_of([10, 10, 10], 4), unlinked=frozenset({(0, 2)}))
    measured = Measured.of_pairs([100.0] * 3, {(0, 1): 1e-3, (1, 2): 1e-3}, 1.0, shape.unlinked)
    found = advise(shape, measured, horizon_s=10.0, allowed=("atr",), now=("atr", 0))
    assert found.master == 1


def test_a_chain_decides_only_where_the_work_is_about_the_same():
    shape = replace(shape_of([10, 10, 10], 4), unlinked=frozenset({(0, 2)}))

    def best(rates, now):
        measured = Measured.of_pairs(rates, {(0, 1): 1e-3, (1, 2): 1e-3}, 1.0, shape.unlinked)
        found = advise(shape, measured, horizon_s=10.0, allowed=("atr",), now=("atr", now))
        works = [aligned_busiest(shape, measured, k, found.segment_s, 10.0) for k in range(3)]
        return found.master, works[1] / min(works)

    # The middle is the slowest stream: to cut it means to copy nearly everything.
    for now in range(3):
        master, more = best([100.0, 2.0, 10.0], now)
        assert more > 1.5
        assert master == 0
    master, more = best([100.0, 80.0, 100.0], 0)
    assert 1.0 < more < 1.2
    assert master == 1


def test_links_are_known_and_not_guessed():
    """A pair that happens to agree always is linked; one that nothing is asked about agrees as its others."""
    unlinked = frozenset({(0, 2)})
    measured = Measured.of_pairs([1.0] * 3, {(0, 1): 1.0, (1, 2): 0.1}, 0.5, unlinked)
    assert np.array(measured.selectivity)[[0, 1, 0], [1, 2, 2]] == pytest.approx([1.0, 0.1, 0.1])
    # Nothing seen yet: the stated chance for what is asked.
    stated = Measured.of_pairs([1.0] * 3, {}, 0.5, frozenset({(0, 2), (1, 2)}))
    assert np.array(stated.selectivity)[[0, 1, 0], [1, 2, 2]] == pytest.approx([0.5, 1.0, 1.0])


def test_the_fastest_stream_is_master_where_all_agree_alike():
    measured = Measured.of([10.0, 10.0, 100.0], 1e-4)
    found = advise(shape_of([10, 10, 10], 4), measured, horizon_s=10.0, allowed=("atr",), now=("atr", 0))
    assert found.master == 2
    alike = Measured.of([10.0] * 3, 1e-4)
    assert advise(shape_of([10, 10, 10], 4), alike, horizon_s=10.0, allowed=("atr",)).master == 0
