"""What has happened, written down: a fingerprint of the trace, the trace if it is kept, and latencies."""

from __future__ import annotations

import numpy as np

from levelwind.sim.compiling import inlined
from levelwind.sim.tables import Tables, TraceKind

# A result's latency falls into one of 128 bins per doubling: a percentile is within 0.4% of the true one.
BINS_PER_OCTAVE, OCTAVES, LEAST_LATENCY_S = 128, 64, 1e-9
BINS = BINS_PER_OCTAVE * OCTAVES

ARRIVED, FINISHED, RESULT = int(TraceKind.ARRIVED), int(TraceKind.FINISHED), int(TraceKind.RESULT)
DELIVERED, SUSPENDED = int(TraceKind.DELIVERED), int(TraceKind.SUSPENDED)
RESUMED, LOST = int(TraceKind.RESUMED), int(TraceKind.LOST)
DROPPED = int(TraceKind.DROPPED)


@inlined
def note(t: Tables, at_s: float, kind: int, what: int, node: int, latency_s: float) -> None:
    """Add a record to the hash of the trace, and to the trace itself if it is kept."""
    total = t.totals[0]
    # FNV-1a by words of 64 bits: an order-sensitive fingerprint, not a defence against anybody.
    prime = np.uint64(0x100000001B3)
    word = np.uint64(total.hash)
    word = (word ^ np.uint64(np.float64(at_s).view(np.int64))) * prime
    word = (word ^ np.uint64(np.int64(kind) + 8 * (np.int64(node) + 1) + (np.int64(what) << 32))) * prime
    word = (word ^ np.uint64(np.float64(latency_s).view(np.int64))) * prime
    total.hash = np.int64(word ^ (word >> np.uint64(29)))
    if len(t.trace) > 0:
        row = t.trace[total.traced]
        row.at_s, row.latency_s, row.kind, row.what, row.node = at_s, latency_s, kind, what, node
        total.traced += 1


@inlined
def note_result(t: Tables, flow: int, node: int, born_s: float, work_s: float, at_s: float) -> None:
    """A row has left the network; it counts if recording has begun."""
    total = t.totals[0]
    latency_s = at_s - born_s
    note(t, at_s, RESULT, flow, node, latency_s)
    if at_s < total.record_from_s:
        return
    total.results += 1
    total.latency_sum_s += latency_s
    total.work_sum_s += work_s
    octaves = np.log2(max(latency_s / LEAST_LATENCY_S, 1.0))
    t.histogram[min(BINS - 1, int(octaves * BINS_PER_OCTAVE))] += 1
