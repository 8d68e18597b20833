"""Random joins to be spread: streams with ties, bursts and idle times, and changes while they run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from levelwind.diffusion.harness import Rows, naive_groups
from levelwind.diffusion.join import JoinShape, Measured
from levelwind.diffusion.router import new_router

# A case without a group is drawn anew so often; some stay, for nothing must be found there.
MOST_DRAWS = 4


def random_case(seed, method=None):
    """Router, rows, batches and changes of one case; ``method`` None: changes between methods, too."""
    for draw in range(MOST_DRAWS):
        case = _case(seed if draw == 0 else [seed, draw], method)
        if naive_groups(case[1], case[0].shape.windows_us):
            break
    return case


def _case(seed, method):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    m = int(rng.integers(1, 9))
    most = {2: 100, 3: 40, 4: 18, 5: 11, 6: 8}[n]
    # Windows are short beside the whole: a switch lies a window ahead, and must not come too late to matter.
    span = int(rng.integers(40, 160))
    windows = tuple(int(w) for w in rng.integers(0, max(2, span // int(rng.integers(4, 10))), n))
    times, streams = [], []
    for k in range(n):
        count = 0 if rng.random() < 0.03 else int(rng.integers(most // 2, most + 1))
        own = rng.integers(0, span, count)
        kind = rng.random()
        if kind < 0.2:  # idle for half of the time
            own = own // 2 + (span // 2) * int(rng.integers(2))
        elif kind < 0.4:  # bursts
            own = (own // 12) * 12 + rng.integers(0, 3, count)
        times.append(own)
        streams.append(np.full(count, k))
    times, streams = np.concatenate(times), np.concatenate(streams)
    times = times - int(rng.integers(0, 100))
    if rng.random() < 0.1:
        times = np.where(times > np.median(times), times + int(rng.integers(0, 100_000)), times)
    lateness = int(rng.choice([0, 0, 3, 20]))
    order = np.argsort(times + rng.uniform(-0.5, lateness + 0.4, len(times)), kind="stable")
    times, streams = times[order], streams[order]
    near = float(rng.choice([0.2, 0.5, 2.0, 2.0]))
    rows = Rows(
        streams=streams.astype(np.int64),
        times=times.astype(np.int64),
        values=rng.random(len(times)),
        near=near,
    )
    cuts = np.sort(rng.integers(0, len(times) + 1, int(rng.integers(4, 25))))
    pieces = np.split(np.arange(len(times)), cuts)
    batches, latest = [], [-(2**61)] * n
    for at in pieces:
        for k in range(n):
            own = rows.times[at][rows.streams[at] == k]
            if len(own):
                latest[k] = max(latest[k], int(own.max()))
        batches.append((at, min(latest) - lateness - 1))
    router = new_router(
        JoinShape(windows_us=windows, instances=m),
        measured=Measured.of(rng.uniform(0.5, 20, n).tolist(), float(rng.choice([0.0, 0.01, 0.3]))),
        method=method or str(rng.choice(["atr", "ctr"])),
        master=int(rng.integers(n)),
        segment_us=int(rng.integers(1, 20)),
        slot_us=int(rng.integers(1, 12)),
    )
    changes = {
        i: _change(np.random.default_rng([*np.atleast_1d(seed), i]), n, m, method)
        for i in range(len(batches))
        if rng.random() < 0.7
    }
    return router, rows, batches, changes


def with_new_windows(seed, router, batches, changes):
    """The changes and some of windows among them, and the windows of each batch."""
    rng = np.random.default_rng([seed, 1])
    windows, of_batch = router.shape.windows_us, []
    longest, changes = max(router.shape.longest_us, 4), dict(changes)
    for number in range(len(batches)):
        if rng.random() < 0.3:
            windows = tuple(
                int(rng.integers(0, 2 * longest)) if rng.random() < 0.6 else window for window in windows
            )
            changes[number] = _renewal(changes.get(number), windows)
        of_batch.append(windows)
    return changes, of_batch


def _renewal(other, windows):
    def change(router):
        if other is not None:
            other(router)
        if router.shape.windows_us != windows:
            router.renew(replace(router.shape, windows_us=windows))

    return change


def _change(rng, n, m, method):
    def change(router):
        which = int(rng.integers(8))
        if which < 3:
            router.master = int(rng.integers(n))
        elif which < 5 and method is None:
            router.method = str(rng.choice(["atr", "ctr"]))
            router.master = int(rng.integers(n))
        elif which == 5:
            router.segment_us = int(rng.integers(1, 25))
            router.slot_us = int(rng.integers(1, 12))
        elif which == 6:
            router.hosts.active = rng.random(m) < 0.5
            router.hosts.active[int(rng.integers(m))] = True
        else:
            router.hosts.usage = rng.random((m, 3))
            router.hosts.speed = rng.uniform(0.5, 2, m)

    return change
