"""Figure 13 of seed 002: four queries over the same producers, with and without reuse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.statistics import rounded
from levelwind.reproduce.wide_area import cluster_of, same_producers
from levelwind.reproduce.worlds import cell_seed
from levelwind.sharing import plan_shared, usage_alone
from levelwind.space import TransitStub, find_routes, transit_stub

TITLE = "Network usage of four queries over the same producers: apart, shared, with multicast"
PAPER = "119.55 bytes with reuse against 152.32 without: 21% less, three of four queries sharing"
CLAIM = (
    "Reuse saves at least 40% over four queries on their own, more with multicast, and never costs anything"
)
CONSUMERS, PASSED = 4, 0.25
SMALL = TransitStub(transit_domains=4, transit_nodes=4, stub_domains=32, stub_nodes=5)
KINDS = {"apart": "each on its own", "shared": "shared", "multicast": "shared,\nwith multicast"}


def cells(quick: bool, seed: int) -> list[Item]:
    """Groups of four queries on networks of their own."""
    return [{"group": g, "seed": cell_seed(seed, 2013, g)} for g in range(8 if quick else 40)]


def measure(item: Item) -> Result:
    """Usage of a group."""
    rng = np.random.default_rng(item["seed"])
    topology = transit_stub(rng, SMALL)
    cluster = cluster_of(find_routes(topology).latency_ms, topology)
    network = same_producers(rng, cluster.names, consumers=CONSUMERS, passed=PASSED)
    shared, relayed = (plan_shared(network, cluster, multicast=relay) for relay in (False, True))
    return {
        **item,
        "apart": usage_alone(network, cluster),
        "shared": shared.usage,
        "multicast": relayed.usage,
        "unshared_together": shared.usage_apart,
        "served": len(shared.served_by),
    }


def summarise(results: Sequence[Result]) -> Outcome:
    """Savings over all groups, and the worst group."""
    total = {kind: sum(r[kind] for r in results) for kind in KINDS}
    saved = {kind: 1.0 - total[kind] / total["apart"] for kind in ("shared", "multicast")}
    dearer = max(r["multicast"] / r["unshared_together"] for r in results) - 1.0
    checks = [
        Check(passed=saved["shared"] >= 0.4, reason=f"reuse saves {saved['shared']:.1%}"),
        Check(passed=saved["multicast"] > saved["shared"], reason="multicast saves nothing more"),
        Check(passed=dearer <= 1e-9, reason=f"a group costs {dearer:.1%} more"),
    ]
    ours = {"saved": saved, "queries_served_by_others": float(np.mean([r["served"] for r in results]))}
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """Three bars."""
    with style.figure(path, width=4.4) as axes:
        mean = [float(np.mean([r[kind] for r in results])) for kind in KINDS]
        axes.bar(list(KINDS.values()), mean, color=(style.GREY, style.SKY, style.BLUE))
        axes.set_ylabel("network usage of four queries (bytes)")
