"""Section 4.2.1 of seed 002: the space of latency alone against that of latency and load.

The paper's hosts were heavily loaded, and a row waits longest where the CPU is scarce. Here every host is
loaded by chance, and an operator on a host of load ρ takes its service time over 1 − ρ, as at any server
shared with others. Bytes are in transit while a row travels and while it waits to be worked on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from levelwind.loads.arrays import Floats
from levelwind.loads.problem import make_problem
from levelwind.model import Model, Network, Operator, Output, Port, Stream
from levelwind.placement import make_planner
from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.statistics import rounded
from levelwind.reproduce.wide_area import (
    PASSED,
    PRODUCERS,
    ROW_BYTES,
    ROWS_PER_S,
    aggregations,
    cluster_of,
    paths_ms,
    usages,
)
from levelwind.reproduce.worlds import cell_seed
from levelwind.space import TransitStub, find_routes, transit_stub

TITLE = "Placement by latency alone, and by latency and load"
PAPER = "including load improved per-query latency and network usage modestly (no figure)"
CLAIM = "with load as a dimension, delay and bytes in transit are both less, waiting at loaded hosts counted"
PLANNERS = ("relaxation", "network")
# Service time of a row on an idle host; the largest background load; and how far a full host moves away.
SERVICE_MS, MOST = 5.0, 0.95
WEIGHTS_MS = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0)
CHOSEN_MS = 40.0
# What a stream and the aggregator's results carry, per second of a row's stay at the aggregator.
BYTES_PER_S = PRODUCERS * ROWS_PER_S * ROW_BYTES


def cells(quick: bool, seed: int) -> list[Item]:
    """One network per cell, with its queries."""
    networks, queries = (2, 100) if quick else (5, 300)
    return [{"number": n, "queries": queries, "seed": cell_seed(seed, 2421, n)} for n in range(networks)]


def measure(item: Item) -> Result:
    """Delay and bytes in transit for every weight of load."""
    rng = np.random.default_rng(item["seed"])
    topology = transit_stub(rng, TransitStub())
    cluster = cluster_of(find_routes(topology).latency_ms, topology)
    load = rng.uniform(0.0, MOST, len(cluster.names))
    queries = aggregations(rng, cluster.names, item["queries"])
    problem = make_problem(with_background(queries, cluster.names, load), cluster)
    found: Result = dict(item)
    for planner in PLANNERS:
        found[planner] = []
        for weight in WEIGHTS_MS:
            made = make_planner(planner, {"load_weight": weight})
            node = made.plan(problem, rng=np.random.default_rng(item["seed"])).assignment
            assert node is not None
            wait_ms = SERVICE_MS / (1.0 - load[node[: item["queries"]]])
            longest, _ = paths_ms(problem, node)
            travelling = usages(problem, node)[: item["queries"]]
            found[planner].append(
                {
                    "delay_ms": float((longest[: item["queries"]] + wait_ms).mean()),
                    "travelling": float(travelling.mean()),
                    "in_transit": float((travelling + BYTES_PER_S * wait_ms / 1000.0).mean()),
                    "load": float(load[node[: item["queries"]]].mean()),
                }
            )
    return found


def with_background(queries: Network, names: Sequence[str], load: Floats) -> Network:
    """The same queries, and on every node an operator that cannot move and keeps it so busy."""
    streams, boxes, outputs = dict(queries.streams), dict(queries.operators), dict(queries.outputs)
    for name, share in zip(names, load.tolist(), strict=True):
        own, busy = f"own_{name}", f"busy_{name}"
        streams[own] = Stream(name=own, rate=(1.0,), bytes=1.0, node=name)
        boxes[busy] = Operator(
            name=busy,
            spec=Model(),
            inputs=(Port(source=own),),
            cost_s=share,
            selectivity=PASSED,
            bytes=1.0,
            movable=False,
            pinned=name,
        )
        outputs[busy] = Output(name=busy, input=Port(source=busy), node=name)
    return replace(queries, streams=streams, operators=boxes, outputs=outputs)


def summarise(results: Sequence[Result]) -> Outcome:
    """Means over all networks: latency alone, and the weight that was settled on beforehand."""
    table = {planner: _means(results, planner) for planner in PLANNERS}
    chosen = WEIGHTS_MS.index(CHOSEN_MS)
    checks = [
        Check(
            passed=rows[chosen][what] < rows[0][what],
            reason=f"{planner}: {what} {rows[chosen][what]:.1f} with load, {rows[0][what]:.1f} without",
        )
        for planner, rows in table.items()
        for what in ("delay_ms", "in_transit")
    ]
    ours = {
        planner: {
            "saved_delay": 1.0 - rows[chosen]["delay_ms"] / rows[0]["delay_ms"],
            "saved_in_transit": 1.0 - rows[chosen]["in_transit"] / rows[0]["in_transit"],
            "saved_travelling": 1.0 - rows[chosen]["travelling"] / rows[0]["travelling"],
            "load_of_hosts": [rows[0]["load"], rows[chosen]["load"]],
        }
        for planner, rows in table.items()
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def _means(results: Sequence[Result], planner: str) -> list[dict[str, float]]:
    """Per weight, every figure's mean over the networks."""
    return [
        {what: float(np.mean([r[planner][at][what] for r in results])) for what in results[0][planner][at]}
        for at in range(len(WEIGHTS_MS))
    ]


def draw(results: Sequence[Result], path: Path) -> None:
    """Delay and bytes in transit against the weight of load, over those of latency alone."""
    with style.figure(path, width=8.4, columns=2) as panels:
        for axes, what, title in zip(
            panels, ("delay_ms", "in_transit"), ("delay", "bytes in transit"), strict=True
        ):
            axes.set_title(f"{title}, over latency alone")
            axes.set_xlabel("a full host moves away by (ms)")
            axes.axhline(1.0, color="#999999", linewidth=0.8)
            for planner, colour in zip(PLANNERS, (style.ORANGE, style.BLUE), strict=True):
                rows = _means(results, planner)
                shares = [row[what] / rows[0][what] for row in rows]
                axes.plot(WEIGHTS_MS, shares, "o-", color=colour, label=planner)
            axes.legend()
