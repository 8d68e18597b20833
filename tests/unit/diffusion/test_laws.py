"""What is sent follows the laws within 5% on stationary streams; the paper's equations are printed beside.

``pytest -s tests/unit/diffusion/test_laws.py`` shows the figures.
"""

from __future__ import annotations

import numpy as np
import pytest

from levelwind.diffusion import laws
from levelwind.diffusion.join import MICROSECONDS, JoinShape, Measured
from levelwind.diffusion.router import KEEPS, LOOKS, new_router

S = MICROSECONDS


def poisson(rng, rates, seconds):
    counts = [rng.poisson(rate * seconds) for rate in rates]
    streams = np.repeat(np.arange(len(rates)), counts)
    times = rng.integers(0, round(seconds * S), len(streams))
    order = np.argsort(times, kind="stable")
    return streams[order], times[order]


@pytest.mark.parametrize(
    ("rates", "windows_s", "segment_s", "instances", "master"),
    [
        ([10, 10], [30, 30], 20, 30, 0),
        ([10, 20, 5], [60, 60, 60], 60, 6, 0),
        ([10, 20, 5], [10, 40, 20], 30, 8, 1),
        ([10, 10, 10], [60, 60, 60], 5, 6, 0),  # beyond equation 2: every host has every row
        ([8, 12, 6, 20], [30, 30, 30, 30], 15, 30, 3),
        ([5, 5, 5, 5, 5, 5], [20, 10, 20, 10, 20, 10], 10, 12, 2),
    ],
)
def test_aligned_copies(rates, windows_s, segment_s, instances, master):
    shape = JoinShape(windows_us=tuple(w * S for w in windows_s), instances=instances)
    measured = Measured.of(rates, 0.01)
    router = new_router(shape, measured=measured, master=master, segment_us=segment_s * S)
    seconds = 3000
    streams, times = poisson(np.random.default_rng(1), rates, seconds)
    routed = router.route(streams, times)
    inner = (times > 300 * S) & (times < (seconds - 300) * S)
    span = seconds - 600
    extra = (inner[routed.row].sum() - inner.sum()) / span
    law = laws.aligned_extra(shape, measured, master, segment_s)
    gaps = laws.aligned_extra_with_gaps(shape, measured, master, segment_s)
    printed = laws.aligned_printed(shape, measured, master, segment_s)
    print(f"\ncopies/s: measured {extra:.2f}, law {law:.2f}, with gaps {gaps:.2f}, equation 2 {printed:.2f}")
    assert extra == pytest.approx(law, rel=0.05)
    assert extra == pytest.approx(gaps, rel=0.05)


@pytest.mark.parametrize(
    ("rates", "windows_s", "selectivity", "instances"),
    [
        ([10, 10], [30, 30], 0.01, 30),
        ([10, 10, 10], [30, 30, 30], 0.01, 6),
        ([10, 20, 5], [20, 40, 30], 0.003, 12),
        ([5, 5, 5, 5], [20, 20, 20, 20], 0.02, 30),
    ],
)
def test_coordinated_traffic(rates, windows_s, selectivity, instances):
    shape = JoinShape(windows_us=tuple(w * S for w in windows_s), instances=instances)
    measured = Measured.of(rates, selectivity)
    slot_us = 2 * S
    seconds = 600
    rng = np.random.default_rng(2)
    streams, times = poisson(rng, rates, seconds)
    router = new_router(shape, measured=measured, method="ctr", slot_us=slot_us)
    routed = router.route(streams, times)
    paths = {(path.slot, path.stream): path for path in routed.paths}
    first, last = 120 * S, seconds * S
    inner = times >= first
    span = (last - first) / S
    copies = (inner[routed.row].sum() - inner.sum()) / span
    partial = measured_partials(rng, shape, selectivity, streams, times, routed, paths, first) / span

    slots = {
        (int(s), int(k))
        for s, k, t in zip(routed.slot, streams[routed.row], times[routed.row], strict=True)
        if t >= first
    }
    chosen = [paths[key] for key in sorted(slots)]
    # From what was laid, not from what was sent: hosts that keep a slot's rows, or where their path begins.
    (era,) = router.eras
    laid = (era.edges[:-1] >= first) & (era.edges[1:] <= last)
    stored = (era.stored | era.probed)[laid].sum(axis=2).mean(axis=0)
    law = laws.coordinated_extra(measured, measured.partners(shape.windows_us), chosen, stored)
    rehearsed, copied, _ = laws.rehearse(shape, measured, slot_us, slots=240)
    foretold = laws.coordinated_extra(measured, measured.partners(shape.windows_us), rehearsed, copied)
    print(
        f"\ncopies/s: measured {copies:.1f}, law {law.copies:.1f}, foretold {foretold.copies:.1f}; partial "
        f"groups/s: measured {partial:.2f}, law {law.partial:.2f}, foretold {foretold.partial:.2f}; "
        f"equation 4, both {law.printed:.0f}"
    )
    assert copies == pytest.approx(law.copies, rel=0.05)
    assert copies == pytest.approx(foretold.copies, rel=0.2)  # a forecast, not a law
    if len(rates) > 2:
        assert partial == pytest.approx(law.partial, rel=0.05)


def measured_partials(rng, shape, selectivity, streams, times, routed, paths, first):
    """Partial groups sent from host to host, counted one by one; rows agree by chance."""
    n = shape.streams
    kept = {}
    keeps = (routed.role & KEEPS) > 0
    for row, host, slot in zip(routed.row[keeps], routed.host[keeps], routed.slot[keeps], strict=True):
        kept.setdefault((int(streams[row]), int(host)), []).append((int(times[row]), int(slot)))
    kept = {key: np.array(sorted(rows)) for key, rows in kept.items()}
    slot_of = dict(zip(routed.row.tolist(), routed.slot.tolist(), strict=True))
    looks = {int(row) for row in routed.row[(routed.role & LOOKS) > 0] if times[row] >= first}
    sent = 0
    for row in looks:
        path = paths[slot_of[row], int(streams[row])]
        at = {host: 1 for host in path.hosts(0).tolist()}
        for hop in range(n - 1):
            k = int(path.order[hop])
            made = {}
            for host, groups in at.items():
                rows = kept.get((k, host), np.empty((0, 2), dtype=np.int64))
                low = np.searchsorted(rows[:, 0], times[row] - shape.windows_us[k])
                high = np.searchsorted(rows[:, 0], times[row], side="right")
                serve = path.serve[hop][rows[low:high, 1] - path.first]
                made[host] = int(rng.binomial(groups * np.count_nonzero(serve == host), selectivity))
            if hop == n - 2:
                break
            onward = path.hosts(hop + 1).tolist()
            sent += sum(count * (len(onward) - (host in onward)) for host, count in made.items())
            at = dict.fromkeys(onward, sum(made.values()))
    return sent
