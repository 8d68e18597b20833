"""The figures of seed 003, chapters 4 to 6: what each runs, what the paper says, and whether it is so here.

The paper's cluster had five machines for queries, runs of thirty minutes and web server logs; here workers of
one machine are capped, streams are made up, and a full run counts at least 60 s of three rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from levelwind.reproduce.dcape_curves import Checks, Curves, all_at_least, at_least, at_most
from levelwind.reproduce.dcape_runs import Case


def _nodes(
    number: int, planner: str, counts: Sequence[int] = (1, 2, 3, 4, 5), **more: Any
) -> dict[str, Case]:
    return {
        f"{count} node{'s' if count > 1 else ''}": Case(number=number, nodes=count, planner=planner, **more)
        for count in counts
    }


def _patterns(number: int, nodes: int, **more: Any) -> dict[str, Case]:
    return {
        name: Case(number=number, nodes=nodes, planner=name, **more) for name in ("round_robin", "grouping")
    }


def _policies(number: int, nodes: int) -> dict[str, Case]:
    plain = _patterns(number, nodes)
    moved = {
        f"{name} + degradation": Case(number=number, nodes=nodes, planner=name, policy="degradation")
        for name in plain
    }
    return plain | moved


MORE = ("2 nodes", "3 nodes", "4 nodes", "5 nodes")
SMALL = "A small plan put on more nodes is no slower than on one"
LARGE = "More nodes put out more"
GROUPED = "Grouping puts out at least as much as round robin"
# Points of a figure: where each stands on the x axis, and what is run for it.
Points = Mapping[str, tuple[float, Case]]
REQUESTS: Points = {
    f"{n} a second": (float(n), Case(number=2, nodes=1, planner="round_robin", requests=n))
    for n in (0, 10, 50, 200)
}
# Plans of one operator: each has two connections.
COPIES: Points = {
    f"{n} plans": (2.0 * n, Case(number=0, nodes=1, planner="round_robin", copies=n))
    for n in (1, 4, 8, 16, 24)
}


def _points(title: str, what: str, points: Points, paper: str, claim: str, checks: Checks) -> Curves:
    """One node, and more and more of something."""
    return Curves(
        TITLE=title,
        paper=paper,
        claim=claim,
        cases={label: case for label, (_, case) in points.items()},
        what=what,
        against={label: at for label, (at, _) in points.items()},
        checks=checks,
    )


def _footprint(title: str, what: str, paper: str, claim: str, limit: float) -> Curves:
    five = {"five nodes": Case(number=3, nodes=5, planner="round_robin", policy="degradation")}
    return Curves(TITLE=title, paper=paper, claim=claim, cases=five, what=what, checks=at_most(limit))


def _small(title: str, number: int, window_s: float) -> Curves:
    return Curves(
        TITLE=title,
        paper="one to five machines have the same throughput",
        claim=f"{SMALL}, within 10%",
        cases=_nodes(number, "round_robin", window_s=window_s),
        checks=all_at_least("1 node", MORE, 0.9),
    )


def _grown(title: str, number: int, planner: str) -> Curves:
    return Curves(
        TITLE=title,
        paper="more machines have more throughput, five 25% to 33% more than one",
        claim=f"{LARGE}: five nodes at least a quarter more than one",
        cases=_nodes(number, planner),
        checks=at_least("5 nodes", "1 node", 1.25),
    )


def _rivals(title: str, number: int, nodes: int, **more: Any) -> Curves:
    return Curves(
        TITLE=title,
        paper="grouping has more throughput than round robin",
        claim=GROUPED,
        cases=_patterns(number, nodes, **more),
        checks=at_least("grouping", "round_robin"),
    )


def _redistributed(title: str, number: int, nodes: int, factor: float) -> Curves:
    return Curves(
        TITLE=title,
        paper="redistribution doubles what round robin puts out (plan 2); grouping gains 5% to 10%",
        claim=f"Degradation by output rate puts out at least {factor:g} times what round robin alone does",
        cases=_policies(number, nodes),
        checks=at_least("round_robin + degradation", "round_robin", factor),
    )


FIGURES: dict[str, Curves] = {
    "dcape_4_3": _points(
        "Throughput of one node with more and more control messages",
        "rate",
        REQUESTS,
        "50 messages a second cost nothing",
        "50 messages a second cost less than a tenth of the throughput",
        at_least("50 a second", "0 a second", 0.9),
    ),
    "dcape_4_5": _points(
        "Output rate of one node with more and more connections",
        "rate",
        COPIES,
        "falls beyond 8 to 12 connections",
        "16 plans with as many rows in all put out less per second than 4",
        at_least("4 plans", "16 plans"),
    ),
    "dcape_4_6": _points(
        "Share of CPU that goes into operators, by number of connections",
        "share",
        COPIES,
        "falls with the number of connections",
        "24 plans with as many rows in all leave a smaller share to operators than one",
        at_least("1 plans", "24 plans"),
    ),
    "dcape_4_8": _footprint(
        "CPU of the manager over time, plan 3 on five nodes",
        "cpu_s",
        "rarely used",
        "Below 1% of a CPU per node",
        0.01,
    ),
    "dcape_4_9": _footprint(
        "Network use of the manager over time",
        "bytes_in",
        "400 bytes a second in",
        "Below 10 kB per node and second",
        1e4,
    ),
    "dcape_4_10": _footprint(
        "Memory of the manager over time", "memory_bytes", "below 20 MB", "Below 4 MB per node", 4e6
    ),
    "dcape_5_4": _small("Plan 1 as five single-stream operators, 1 to 5 nodes, round robin", 0, 10.0),
    "dcape_5_5": _small("Plan 1 with windows of 2 s, 1 to 5 nodes, round robin", 1, 2.0),
    "dcape_5_6": _small("Plan 1 with windows of 10 s, 1 to 5 nodes, round robin", 1, 10.0),
    "dcape_5_7": _grown("Plan 2, 1 to 5 nodes, round robin", 2, "round_robin"),
    "dcape_5_8": _grown("Plan 2, 1 to 5 nodes, grouping", 2, "grouping"),
    "dcape_5_9": _grown("Plan 3, 1 to 5 nodes, grouping", 3, "grouping"),
    "dcape_5_10": _grown("Plan 4, 1 to 5 nodes, grouping", 4, "grouping"),
    "dcape_5_11": Curves(
        TITLE="State of plan 4 over time, 1 to 5 nodes, grouping",
        paper="a single machine runs out of memory after twenty minutes",
        claim="One node alone holds no more state than five together: windows bound it",
        cases=_nodes(4, "grouping"),
        what="memory",
        checks=at_least("5 nodes", "1 node", 0.8),
    ),
    "dcape_5_12": _rivals("Plan 1 with windows of 60 s on four nodes: both patterns", 1, 4, window_s=60.0),
    "dcape_5_14": Curves(
        TITLE="Plan 2 on 2, 4 and 5 nodes: both patterns",
        paper="grouping always wins",
        claim=GROUPED,
        cases={
            f"{name} on {nodes}": case for nodes in (2, 4, 5) for name, case in _patterns(2, nodes).items()
        },
        checks=lambda found: [
            part
            for nodes in (2, 4, 5)
            for part in at_least(f"grouping on {nodes}", f"round_robin on {nodes}")(found)
        ],
    ),
    "dcape_5_15": _rivals("Plan 3 on four nodes: both patterns", 3, 4),
    "dcape_5_16": _rivals("Plan 4 on five nodes: both patterns", 4, 5),
    "dcape_6_3": Curves(
        TITLE="Plan 2, a join moved back and forth, against leaving it",
        paper="moving an operator every minute costs nothing",
        claim="A join that is moved again and again costs less than 3% of the throughput",
        cases={
            "left alone": Case(number=2, nodes=2, planner="grouping", window_s=20.0),
            "moved": Case(number=2, nodes=2, planner="grouping", window_s=20.0, move_every=20),
        },
        checks=at_least("moved", "left alone", 0.97),
    ),
    "dcape_6_4": _redistributed("Plan 2 on three nodes, with redistribution and without", 2, 3, 1.1),
    "dcape_6_5": _redistributed("Plan 3 on two nodes, with redistribution and without", 3, 2, 1.05),
    "dcape_6_6": _redistributed("Plan 3 on three nodes, with redistribution and without", 3, 3, 1.05),
}
