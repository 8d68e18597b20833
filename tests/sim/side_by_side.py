"""Runs one network through the kernel and through the plain simulator, and compares the traces."""

from __future__ import annotations

import numpy as np

from levelwind.bench.plain_simulator import PlainSimulator
from levelwind.sim.arrivals import listed
from levelwind.sim.simulator import Simulator
from levelwind.sim.tables import TraceKind


class Both:
    """The kernel and the plain simulator side by side."""

    def __init__(self, problem, times, placement, *, seed=0, horizon_s=100.0):
        self.pieces = []
        arrivals = {name: listed(row) for name, row in times.items()}
        self.kernel = Simulator(
            problem, arrivals, placement, horizon_s=horizon_s, seed=seed, trace=self.pieces.append
        )
        credits = self.kernel.plumbing.tables.flows["credit"].tolist()
        self.plain = PlainSimulator(problem, {n: sorted(row) for n, row in times.items()}, placement, credits)
        self.problem = problem

    def advance(self, until_s):
        self.kernel.advance(until_s)
        self.plain.advance(until_s)

    def move(self, operator, node, takes_s):
        self.kernel.move(operator, self.problem.cluster.names.index(node), takes_s=takes_s)
        self.plain.move(operator, node, takes_s)

    def lose(self, node):
        self.kernel.lose_node(self.problem.cluster.names.index(node))
        self.plain.lose(node)

    def kernel_trace(self):
        self.kernel.flush_trace()
        return named_rows(self.kernel, self.pieces)

    def assert_same(self):
        ours = self.kernel_trace()
        for i, (one, other) in enumerate(zip(ours, self.plain.trace, strict=False)):
            assert one == other, f"record {i}: kernel {one}, plain {other}"
        assert len(ours) == len(self.plain.trace)


def named_rows(simulator, pieces):
    """Trace records with names: (time, event, name, node, latency)."""
    plumbing, nodes = simulator.plumbing, simulator.node_names
    operators = simulator.problem.physical.names
    by_kind = {
        TraceKind.ARRIVED: plumbing.sources,
        TraceKind.RESULT: plumbing.flows,
        TraceKind.LOST: nodes,
    }
    rows = np.concatenate(pieces) if pieces else []
    return [
        (
            float(row["at_s"]),
            TraceKind(row["kind"]).name.lower(),
            by_kind.get(TraceKind(row["kind"]), operators)[row["what"]],
            nodes[row["node"]] if row["node"] >= 0 else "",
            float(row["latency_s"]),
        )
        for row in rows
    ]
