"""A run in virtual time: the compiled kernel with its memory, advanced as far as the caller asks."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from levelwind.loads.problem import Problem
from levelwind.sim import interventions, kernel
from levelwind.sim.arrivals import Arrivals
from levelwind.sim.layout import Choices, lay_out, node_rows, ready_rows
from levelwind.sim.notes import BINS_PER_OCTAVE, LEAST_LATENCY_S
from levelwind.sim.tables import NOWHERE, Floats, Ints, Rule, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Latencies of the results since recording began, in seconds; None without results.

    ``ratio`` is the mean latency over the mean processing delay: the CPU seconds that the row and those it
    came from took, on a node of capacity 1 and without any waiting.
    """

    results: int
    mean_s: float | None
    ratio: float | None
    p50_s: float | None
    p99_s: float | None


class Simulator:
    """Tuples, operators and nodes in virtual time.

    Nodes serve their queues first come, first served, a tuple at a time, unless `schedule` says otherwise.
    Time is in seconds. The same arguments give the same trace, however the time is cut into calls of
    `advance`.

    Parameters
    ----------
    problem
        The network on its cluster.
    arrivals
        When rows come, by stream.
    placement
        Where operators stand at the start.
    horizon_s
        How far the run will go at most.
    seed
        Of all chance inside: gaps between rows, credits of flows, costs if they are exponential.
    trace
        Called with pieces of the trace (records of `tables.TRACE`) as they fill up; without it, only the
        trace's hash is kept.

    Notes
    -----
    Time O(log(nodes + streams + rows in flight)) per event; memory O(network + longest queues seen).
    """

    def __init__(
        self,
        problem: Problem,
        arrivals: Mapping[str, Arrivals],
        placement: Mapping[str, str],
        *,
        horizon_s: float,
        seed: int = 0,
        choices: Choices | None = None,
        trace: Callable[[Table], None] | None = None,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.problem = problem
        self.plumbing = lay_out(
            problem,
            arrivals,
            horizon_s=horizon_s,
            choices=choices,
            traced=trace is not None,
            placement=placement,
            rng=rng,
        )
        self.node_names = list(problem.cluster.names)
        self._trace = trace
        self._tables = tables = self.plumbing.tables
        self._there = np.ones(len(tables.operators), dtype=bool)
        # Inlets and exits by their first order, in which they stay among those that are there.
        self._inlet_order = np.arange(len(tables.inlets))
        self._exits = tables.exits.copy()
        self._exit_flow = np.repeat(
            np.arange(len(tables.flows)), tables.flows["exit_end"] - tables.flows["exit_start"]
        )
        self._total = tables.totals[0]
        tables.operators["node"] = problem.assignment(placement)
        for source in range(len(tables.sources)):
            kernel.schedule_arrival(tables, source, -1.0)

    # ---- time

    @property
    def now_s(self) -> float:
        """How far the run has come."""
        return float(self._total["now_s"])

    def advance(self, until_s: float) -> None:
        """Take everything that happens before ``until_s``."""
        while True:
            status = kernel.advance(self._tables, float(until_s))
            if status == kernel.DONE:
                return
            self._enlarge(status)

    def record(self, from_s: float) -> None:
        """Count results that come at or after this time, and none before it; forget those counted so far."""
        self._total["record_from_s"] = from_s
        self._total["results"] = 0
        self._total["latency_sum_s"] = self._total["work_sum_s"] = 0.0
        self._tables.histogram[:] = 0

    # ---- what the caller does to it

    def move(self, operator: int, node: int, *, takes_s: float) -> None:
        """Suspend an operator now and resume it on another node ``takes_s`` later; its tuples wait meanwhile.

        A tuple in service is finished where it is. O(queue of the node it leaves).
        """
        self._make_room()
        interventions.start_move(self._tables, operator, node, self.now_s + takes_s)

    def lose_node(self, node: int) -> None:
        """A node is gone. Its operators stand nowhere, with what waited there, until they are moved."""
        self._make_room()
        interventions.lose_node(self._tables, node)

    def add_node(self, name: str, *, cpu: float = 1.0, bandwidth: float = np.inf) -> int:
        """A further node; its number. Where latencies are stated, it is at distance 0 from all others."""
        fresh = node_rows(np.array([cpu]), np.array([bandwidth]))
        ready = ready_rows(1 if len(self._tables.waits) else 0)
        self._tables = self._tables._replace(
            nodes=np.concatenate([self._tables.nodes, fresh]),
            ready=np.concatenate([self._tables.ready, ready]),
        )
        self.node_names.append(name)
        return len(self.node_names) - 1

    def attend(self, operators: NDArray[np.bool_], outputs: Container[str]) -> None:
        """From now on these operators and outputs are there, and no others get rows.

        Those that go are dropped with their rows, those that come stand nowhere until they are placed.
        O(operators + arcs + rows in the system).
        """
        tables = self._tables
        for operator in np.flatnonzero(operators != self._there).tolist():
            self._drop(operator)
        self._there = operators.copy()
        flows, inlets = tables.flows, tables.inlets
        read = operators[inlets["operator"]]
        order = np.lexsort((self._inlet_order, ~read, inlets["flow"]))
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order))
        flows["inlet_end"] = flows["inlet_start"] + np.bincount(inlets["flow"][read], minlength=len(flows))
        inlets[:] = inlets[order]
        self._inlet_order = self._inlet_order[order]
        if len(order):
            tables.tuples["inlet"] = place[tables.tuples["inlet"]]
        kept = np.array([name in outputs for name in self.plumbing.exits], dtype=bool)
        tables.exits[:] = self._exits[np.lexsort((np.arange(len(kept)), ~kept, self._exit_flow))]
        flows["exit_end"] = flows["exit_start"] + np.bincount(self._exit_flow[kept], minlength=len(flows))

    def follow_parts(self) -> bool:
        """Have instances of spread joins get rows by the nodes on which they stand now; whether any changes.

        Rows that are on their way stay on it. O(operators + parts × instances), O(1) without such joins.
        """
        spread, tables = self.plumbing.spread, self._tables
        if not spread or not spread.follow(self.assignment, tables.nodes["cpu"]):
            return False
        ratios = spread.flows.ratios
        for part, flow in self.plumbing.spread_flows.items():
            tables.flows["ratio"][flow] = ratios.get(part, 0.0)
        return True

    def sweep(self) -> None:
        """Forget the rows that were on the network to operators that are gone. O(operators + those rows)."""
        for operator in np.flatnonzero(~self._there & (self._tables.operators["parked_head"] >= 0)).tolist():
            self._drop(operator)

    def _drop(self, operator: int) -> None:
        self._make_room()
        interventions.drop(self._tables, operator)

    def place(self, operator: int, node: int) -> None:
        """Have an operator that stands nowhere begin on a node."""
        self._make_room()
        interventions.place(self._tables, operator, node)

    def schedule(self, rule: Rule, ranks: Floats | None = None) -> None:
        """Choose by what rule nodes take up waiting rows from now on; ranks of operators for `Rule.RANK`.

        Only where the choices ask for queues per operator: one queue per node is first come, first served.
        """
        if not len(self._tables.waits) or rule is Rule.FIFO:
            message = "queues per operator have rules of their own, and one queue per node has none"
            raise ValueError(message)
        self._total["rule"] = rule
        if ranks is not None:
            self._tables.waits["rank"] = ranks

    def restart_clean(self, assignment: Ints) -> None:
        """Put every operator in its place and empty all queues; the sources go on as they were."""
        interventions.clear(self._tables)
        self._tables.operators["node"] = assignment
        self._tables.operators["away"] = assignment < 0

    # ---- what can be seen

    @property
    def assignment(self) -> Ints:
        """Node of each operator, or where it will be when its move is done; −1 if its node was lost."""
        return self._tables.operators["node"].astype(np.int64)

    @property
    def away(self) -> NDArray[np.bool_]:
        """Which operators are on their way."""
        return self._tables.operators["away"] != 0

    @property
    def arrived(self) -> Ints:
        """Rows that have come, by source (see `Plumbing.sources`)."""
        return self._tables.sources["arrived"].copy()

    @property
    def taken(self) -> Ints:
        """Rows that each operator has worked off."""
        return self._tables.operators["taken"].copy()

    @property
    def flow_rows(self) -> Ints:
        """Rows put out on each flow (see `Plumbing.flows`)."""
        return self._tables.flows["rows"].copy()

    @property
    def rows_out(self) -> Ints:
        """Rows that each operator has put out, on all its flows."""
        sums = np.concatenate([[0], np.cumsum(self._tables.flows["rows"])])
        operators = self._tables.operators
        return (sums[operators["flow_end"]] - sums[operators["flow_start"]]).astype(np.int64)

    @property
    def held_bytes(self) -> Floats:
        """Bytes of the rows that wait for each operator or stand in its windows; a row counts 1 if unstated.

        O(rows in the system).
        """
        held = np.zeros(len(self._tables.operators))
        interventions.count_held(self._tables, held)
        return held

    @property
    def busy_s(self) -> Floats:
        """Seconds that each node has worked, tuples in service not counted."""
        return self._tables.nodes["busy_s"].copy()

    @property
    def queue_lengths(self) -> Ints:
        """Tuples that wait at each node, those in service and those of suspended operators not counted."""
        return self._tables.nodes["queue_length"].copy()

    @property
    def in_system(self) -> int:
        """Tuples that wait, are in service, on the network, or with operators on their way."""
        return len(self._tables.tuples) - int(self._total["free_count"])

    @property
    def events(self) -> int:
        """Events so far: arrivals, completions, deliveries and ends of moves."""
        return int(self._total["events"])

    @property
    def memory_bytes(self) -> int:
        """Size of all tables."""
        return sum(table.nbytes for table in self._tables)

    @property
    def trace_hash(self) -> str:
        """Fingerprint of all that has happened: equal for equal traces."""
        return f"{int(self._total['hash']) & (2**64 - 1):016x}"

    @property
    def sums(self) -> tuple[int, float]:
        """Results since recording began and the sum of their latencies in seconds."""
        return int(self._total["results"]), float(self._total["latency_sum_s"])

    @property
    def is_recording(self) -> bool:
        """Whether results are counted by now."""
        return bool(self._total["record_from_s"] <= self._total["now_s"])

    @property
    def latencies(self) -> Latencies:
        """What the results since recording began have taken. Percentiles are within 0.4%."""
        results, total_s = self.sums
        if not results:
            return Latencies(results=0, mean_s=None, ratio=None, p50_s=None, p99_s=None)
        work_s = float(self._total["work_sum_s"])
        counts = np.cumsum(self._tables.histogram)
        places = np.searchsorted(counts, np.array([0.5, 0.99]) * results)
        at_s = LEAST_LATENCY_S * 2.0 ** ((places + 0.5) / BINS_PER_OCTAVE)
        p50_s, p99_s = np.where(places == 0, 0.0, at_s).tolist()
        return Latencies(
            results=results,
            mean_s=total_s / results,
            ratio=total_s / work_s if work_s > 0 else None,
            p50_s=p50_s,
            p99_s=p99_s,
        )

    def flush_trace(self) -> None:
        """Hand out what is left of the trace."""
        rows = int(self._total["traced"])
        if self._trace is not None and rows:
            self._trace(self._tables.trace[:rows].copy())
        self._total["traced"] = 0

    # ---- room

    def _make_room(self) -> None:
        """Room for the few events and records that a call from outside makes."""
        total, tables = self._total, self._tables
        if total["heap"] + 4 > len(tables.events):
            self._enlarge(kernel.GROW_EVENTS)
        if len(tables.trace) and total["traced"] + 4 > len(tables.trace):
            self._enlarge(kernel.DRAIN_TRACE)
        if len(tables.sides) and total["window_fullest"] + 4 > tables.side_times.shape[1]:
            self._enlarge(kernel.GROW_WINDOWS)

    def _enlarge(self, status: int) -> None:
        total, tables = self._total, self._tables
        if status == kernel.GROW_TUPLES:
            old, grown = len(tables.tuples), _doubled(tables.tuples)
            # The new half becomes one chain in front of what is left of the free list.
            grown["follower"][old:] = np.arange(old + 1, 2 * old + 1)
            grown["follower"][-1] = total["free"] if total["free_count"] else NOWHERE
            total["free"] = old
            total["free_count"] += old
            order = _doubled(tables.order) if len(tables.order) else tables.order
            self._tables = tables._replace(tuples=grown, order=order)
        elif status == kernel.GROW_EVENTS:
            self._tables = tables._replace(events=_doubled(tables.events))
        elif status == kernel.GROW_WINDOWS:
            grown = _unrolled(tables.side_times, tables.sides["head"])
            tables.sides["head"] = 0
            self._tables = tables._replace(side_times=grown)
        elif total["traced"]:
            self.flush_trace()
        else:  # one event of a join puts out more than the whole buffer holds
            self._tables = tables._replace(trace=_doubled(tables.trace))


def _doubled(table: Table) -> Table:
    return np.concatenate([table, np.zeros_like(table)])


def _unrolled(times_s: Floats, head: Ints) -> Floats:
    """Join windows with twice the room, each with its oldest row first."""
    sides, room = times_s.shape
    grown = np.zeros((sides, 2 * room))
    grown[:, :room] = np.take_along_axis(times_s, (head[:, None] + np.arange(room)) % room, axis=1)
    return grown
