"""What the kernel works on: one table per sort of thing, a row of plain numbers per thing.

Tables are NumPy arrays of records, so that compiled code reads and writes them without a Python object per
tuple, all that is known of one thing lies in one cache line or two, and a run can be looked at between two
steps. Things refer to each other by row number. Lists of lists are laid out flat: ``flow_start`` and
``flow_end`` of an operator bound its rows in the table of flows. Times are in seconds.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Table = NDArray[Any]

NOWHERE = -1


class Law(IntEnum):
    """How the rows of a source come: at random, evenly, or at recorded times."""

    POISSON = 0
    REGULAR = 1
    GIVEN = 2


class Rule(IntEnum):
    """Which of a node's waiting rows is next. FIFO has one queue per node, all others one per operator."""

    FIFO = 0  # first come, first served
    TURN = 1  # operators take turns, a row each
    RANK = 2  # the operator of the highest rank; of equals the one whose row entered the network first
    OLDEST = 3  # first come, first served, out of queues per operator


class TraceKind(IntEnum):
    """What a row of the trace tells."""

    ARRIVED = 0  # a row entered: source, node it enters at
    FINISHED = 1  # an operator has worked a tuple off: operator, node
    RESULT = 2  # a row left the network: flow, node it came from
    DELIVERED = 3  # a tuple came over the network: operator, node
    SUSPENDED = 4  # a move began: operator, node it leaves
    RESUMED = 5  # a move ended: operator, node it came to
    LOST = 6  # a node is gone: node, node
    DROPPED = 7  # an operator is gone with the last query that used it: operator, node it stood on


def _record(floats: str, longs: str, ints: str = "") -> np.dtype[Any]:
    parts = [(name, np.float64) for name in floats.split()]
    parts += [(name, np.int64) for name in longs.split()]  # type: ignore[misc]
    parts += [(name, np.int32) for name in ints.split()]  # type: ignore[misc]
    return np.dtype(parts, align=True)


# Free tuples and queues are chains: each tuple names its follower.
TUPLE = _record("born_s work_s", "", "inlet follower")
# A binary heap by time, then number: at equal times the event that was scheduled first comes first.
EVENT = _record("at_s", "number what extra")
# `debt_s` is CPU time owed for rows sent and received; events of an earlier `era` are void.
NODE = _record(
    "cpu bandwidth link_free_s debt_s busy_s pairs cost_s time_s",
    "queue_length era",
    "head tail serving batch_head batch_tail",
)
# `away`: on its way, or on a lost node; its tuples are then parked with it.
OPERATOR = _record(
    "pair_weight",
    "random taken era fan",
    "node away parked_head parked_tail side_start side_end flow_start flow_end",
)
# `fan`: most tuples that one row can become.
SOURCE = _record(
    "cycle_s",
    "random arrived cursor cycle fan",
    "law node flow_start flow_end segment_end given_start given_end",
)
# `ratio`: rows on the flow per row (or pair) that its producer takes; `credit`: the fraction left over.
FLOW = _record("ratio bytes transfer_s credit", "rows", "inlet_start inlet_end exit_start exit_end")
INLET = _record("cost_s", "", "flow operator side emits")
# `bytes`: of a row in the window, 1 where nobody states any.
SIDE = _record("window_s bytes", "head count")
SEGMENT = _record("until_s rate", "")
# Only where nodes do not serve first come, first served: the rows that wait for each operator, its rank, and
# its neighbours in its node's list of operators that have something to do.
WAIT = _record("rank", "waiting", "head tail before after")
READY = _record("", "", "head tail")
# `spare` fills what alignment would leave undefined: equal traces are equal byte by byte.
TRACE = _record("at_s latency_s", "", "kind what node spare")
TOTALS = _record(
    "now_s latency_sum_s work_sum_s shared_free_s shared_bandwidth record_from_s",
    "heap sequence free free_count events results traced window_fullest hash dropped widest queued",
    "exponential_cost random_yield rule",
)


class Tables(NamedTuple):
    """All tables of a run.

    ``side_times`` holds the rows in each join window as rings, ``given`` all recorded arrival times,
    ``latency`` seconds between nodes (0 × 0 if none are stated), ``histogram`` the results by latency.
    ``queues`` is always empty; it has one dimension if nodes have one queue each, and two if operators do.
    Only then ``waits``, ``ready`` and ``order`` (when each tuple began to wait, as a number) have rows.
    """

    totals: Table
    tuples: Table
    events: Table
    nodes: Table
    operators: Table
    sources: Table
    flows: Table
    inlets: Table
    exits: Ints
    sides: Table
    side_times: Floats
    segments: Table
    given: Floats
    latency: Floats
    histogram: Ints
    trace: Table
    queues: Floats
    waits: Table
    ready: Table
    order: Ints
