"""Who is master under aligned routing, and how segments are dealt out if speeds are known roughly."""

from __future__ import annotations

import numpy as np
import pytest

from levelwind.diffusion.auto import advise
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
    near, far = 1e-3, 0.9
    measured = Measured.of_pairs([100.0] * 3, {(0, 1): near, (1, 2): near, (0, 2): far}, near)
    found = advise(shape_of([10, 10, 10], 4), measured, horizon_s=10.0, allowed=("atr",), now=("atr", 0))
    assert found.master == 1


def test_the_fastest_stream_is_master_where_all_agree_alike():
    measured = Measured.of([10.0, 10.0, 100.0], 1e-4)
    found = advise(shape_of([10, 10, 10], 4), measured, horizon_s=10.0, allowed=("atr",), now=("atr", 0))
    assert found.master == 2
    alike = Measured.of([10.0] * 3, 1e-4)
    assert advise(shape_of([10, 10, 10], 4), alike, horizon_s=10.0, allowed=("atr",)).master == 0
