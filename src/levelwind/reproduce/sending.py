"""ROD with and without clustering against connected, where sending rows is not free: figures 6.8 to 6.11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from levelwind.frontend.generate import random_trees
from levelwind.loads import Problem, make_problem
from levelwind.model import Cluster, Network, Node
from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Result
from levelwind.reproduce.statistics import Estimate, by, geometric
from levelwind.reproduce.worlds import NODES, STREAMS, cell_seed, equal_cluster, random_rates, ratio_of

COST_S = 1e-3
NODE_BYTES_PER_S = 12.5e6  # 100 Mbps
NETWORK_BYTES_PER_S = 125e6  # 1 Gbps
PER_STREAM = (10, 20, 40)
COMMUNICATION = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
BANDWIDTH = (0.2, 0.8, 1.0, 2.0, 10.0)


def communication_cells(quick: bool, seed: int) -> list[Item]:
    """One graph at one ratio of communication to processing cost per cell; the same graphs at all ratios."""
    return _cells(COMMUNICATION, 8 if quick else 100, 2 if quick else 5, seed, 608)


def bandwidth_cells(quick: bool, seed: int) -> list[Item]:
    """One graph at one ratio of bandwidth to CPU use per cell; the same graphs at all ratios."""
    return _cells(BANDWIDTH, 8 if quick else 100, 2 if quick else 5, seed, 610)


def measure_communication(item: Item) -> Result:
    """Sending a row costs ``ratio`` times the CPU of processing it, halved between the two nodes."""
    rng = np.random.default_rng(item["seed"])
    network = random_trees(
        rng,
        operators=item["per_stream"] * STREAMS,
        streams=STREAMS,
        cost_s=(COST_S, COST_S),
        transfer_cost_s=item["ratio"] * COST_S,
    )
    return _compare(item, network, equal_cluster(), rng)


def measure_bandwidth(item: Item) -> Result:
    """A node with one operator (one stream in, one out) uses ``ratio`` times as much bandwidth as CPU."""
    rng = np.random.default_rng(item["seed"])
    network = random_trees(
        rng,
        operators=item["per_stream"] * STREAMS,
        streams=STREAMS,
        cost_s=(COST_S, COST_S),
        selectivity=(1.0, 1.0),
        row_bytes=item["ratio"] * NODE_BYTES_PER_S * COST_S / 2,
    )
    return _compare(item, network, limited_cluster(), rng)


def limited_cluster() -> Cluster:
    """Ten nodes at 100 Mbps each on a shared network of 1 Gbps."""
    nodes = tuple(Node(name=f"n{i + 1}", bandwidth_bytes_per_s=NODE_BYTES_PER_S) for i in range(NODES))
    return Cluster(nodes=nodes, network_bandwidth_bytes_per_s=NETWORK_BYTES_PER_S)


def gains(
    results: Sequence[Result], against: str, *, better: str = "clustered"
) -> dict[int, dict[float, Estimate]]:
    """Geometric mean over graphs of one plan's set / another's, by operators per stream and ratio.

    Not the arithmetic mean: some plans bear next to nothing, and their ratios run into the thousands.
    """
    return {
        per_stream: {
            ratio: geometric([r[better] / np.mean(r[against]) for r in group])
            for ratio, group in by(rows, "ratio").items()
        }
        for per_stream, rows in by(results, "per_stream").items()
    }


def least_lead(results: Sequence[Result]) -> float:
    """Clustered ROD's set / connected's in the worst of all graphs, ratios and runs."""
    return min(r["clustered"] / max(r["connected"]) for r in results)


def beats_connected(lead: Mapping[int, Mapping[float, Estimate]], results: Sequence[Result]) -> list[Check]:
    """That clustered ROD is above connected on average at every point, and in every single run."""
    checks = [
        Check(
            passed=e.low > 1,
            reason=f"{per_stream} per stream: connected is not beaten at ratio {ratio:g} ({e.mean:.2f})",
        )
        for per_stream, row in lead.items()
        for ratio, e in row.items()
    ]
    least = least_lead(results)
    return [*checks, Check(passed=least > 1, reason=f"in the worst run it is {least:.2f} of connected")]


def table(gain: Mapping[int, Mapping[float, Estimate]]) -> dict[str, Any]:
    """Means of `gains` for a summary."""
    return {f"{n}_per_stream": {r: e.mean for r, e in row.items()} for n, row in gain.items()}


def draw_gains(axes: Any, gain: Mapping[int, Mapping[float, Estimate]]) -> None:
    """A curve for each number of operators per stream, named at its end."""
    ends = []
    for (per_stream, row), colour, marker in zip(gain.items(), style.SEQUENCE, "os^", strict=True):
        style.curve(axes, list(row), list(row.values()), colour=colour, marker=marker)
        last = max(row)
        ends.append((last, row[last].mean, f"{per_stream} operators per stream", colour))
    axes.set_yscale("log")
    axes.axhline(1.0, color=style.GREY, linewidth=1.0, zorder=0)
    style.label_ends(axes, ends)


def _cells(ratios: Sequence[float], graphs: int, runs: int, seed: int, key: int) -> list[Item]:
    return [
        {
            "per_stream": per_stream,
            "ratio": ratio,
            "graph": graph,
            "seed": cell_seed(seed, key, per_stream, graph),
            "runs": runs,
        }
        for per_stream in reversed(PER_STREAM)
        for graph in range(graphs)
        for ratio in ratios
    ]


def _compare(item: Item, network: Network, cluster: Cluster, rng: np.random.Generator) -> Result:
    """``plain`` breaks ties between harmless nodes by streams cut, as ROD does here; ``any`` by chance."""
    problem = make_problem(network, cluster)
    chance = int(rng.integers(2**31))
    rated: list[Problem] = [make_problem(random_rates(network, rng), cluster) for _ in range(item["runs"])]
    return {
        **item,
        "clustered": ratio_of(problem, "rod"),
        "plain": ratio_of(problem, "rod", cluster="off"),
        "any": ratio_of(problem, "rod", cluster="off", class_one="random", seed=chance),
        "connected": [ratio_of(known, "connected") for known in rated],
    }
