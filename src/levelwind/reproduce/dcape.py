"""The figures of seed 003, chapters 4 to 6: what each runs, what the paper says, and whether it is so here.

The paper's cluster had five machines for queries, runs of thirty minutes and web server logs; here workers of
one machine are capped, streams are made up, and a full run counts at least 60 s of three rounds each. Figures
share their runs: what two of them show is run once a round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from levelwind.reproduce.dcape_curves import STATE, Checks, Curves, all_at_least, at_least, at_most
from levelwind.reproduce.dcape_runs import BATCH_S, CAP, Case


def _nodes(
    number: int, planner: str, counts: Sequence[int] = (1, 2, 3, 4, 5), **more: Any
) -> dict[str, Case]:
    """The same on one node and on more; on one, every planner has the same plan."""
    return {
        f"{count} node{'s' if count > 1 else ''}": Case(
            number=number, nodes=count, planner=planner if count > 1 else "round_robin", **more
        )
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


# What every figure here has otherwise than the paper.
SET_UP = (
    f"workers on one machine are capped at {CAP} of a core each, where it had machines of two processors",
    "plans are ours in its sizes, and streams are made up at a steady rate and read as fast as can be, where "
    "it had web server logs at 40 rows a second",
    f"rows come in batches of {BATCH_S:g} s of stream, and take a batch for every hop",
    "each point is three runs of 60 s once windows are full (with --quick one of three batches, with half "
    "the rows), where it had one of 30 minutes",
)
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
REPLICAS = "plans of one operator share the same rows per second, where each of its replicas had its own"
# Plans of one operator: each has two connections.
COPIES: Points = {
    f"{n} plan{'s' if n > 1 else ''}": (2.0 * n, Case(number=0, nodes=1, planner="round_robin", copies=n))
    for n in (1, 4, 8, 16, 24)
}


def _points(
    title: str,
    what: str,
    points: Points,
    paper: str,
    claim: str,
    checks: Checks,
    first_look: tuple[str, ...],
    set_up: str,
    along: str,
) -> Curves:
    """One node, and more and more of something."""
    return Curves(
        TITLE=title,
        paper=paper,
        claim=claim,
        cases={label: case for label, (_, case) in points.items()},
        what=what,
        against={label: at for label, (at, _) in points.items()},
        along=along,
        checks=checks,
        first_look=first_look,
        set_up=(*SET_UP, set_up),
    )


def _footprint(title: str, what: str, paper: str, claim: str, limit: float) -> Curves:
    five = {"five nodes": Case(number=3, nodes=5, planner="round_robin", policy="degradation")}
    set_up = (*SET_UP, "the manager is part of the driver: what it takes in and out is counted, not sent")
    return Curves(
        TITLE=title, paper=paper, claim=claim, cases=five, what=what, checks=at_most(limit), set_up=set_up
    )


def _small(title: str, number: int, window_s: float) -> Curves:
    return Curves(
        TITLE=title,
        paper="one to five machines have the same throughput",
        claim=f"{SMALL}, within 10%",
        cases=_nodes(number, "round_robin", window_s=window_s),
        checks=all_at_least("1 node", MORE, 0.9),
        first_look=("1 node", "5 nodes"),
        set_up=SET_UP,
    )


def _grown(title: str, number: int, planner: str) -> Curves:
    return Curves(
        TITLE=title,
        paper="more machines have more throughput, five 25% to 33% more than one",
        claim=f"{LARGE}: five nodes at least a quarter more than one",
        cases=_nodes(number, planner),
        checks=at_least("5 nodes", "1 node", 1.25),
        first_look=("1 node", "5 nodes"),
        set_up=SET_UP,
    )


def _rivals(title: str, number: int, nodes: int, set_up: tuple[str, ...] = SET_UP, **more: Any) -> Curves:
    return Curves(
        TITLE=title,
        paper="grouping has more throughput than round robin",
        claim=GROUPED,
        cases=_patterns(number, nodes, **more),
        checks=at_least("grouping", "round_robin"),
        set_up=set_up,
    )


def _redistributed(title: str, number: int, nodes: int, factor: float) -> Curves:
    return Curves(
        TITLE=title,
        paper="redistribution doubles what round robin puts out (plan 2); grouping gains 5% to 10%",
        claim=f"Degradation by output rate puts out at least {factor:g} times what round robin alone does",
        cases=_policies(number, nodes),
        checks=at_least("round_robin + degradation", "round_robin", factor),
        first_look=("round_robin", "round_robin + degradation"),
        set_up=(*SET_UP, "the policy is asked after every batch, and what is drawn begins when it has moved"),
    )


# A join that is moved every so many batches, some 25 s, and one that is left alone.
MOVE_EVERY, MOVES = 10, 3
LEFT = Case(number=2, nodes=4, planner="grouping", apart=True, counted=MOVES * MOVE_EVERY)
MOVED = replace(LEFT, move_every=MOVE_EVERY)

FIGURES: dict[str, Curves] = {
    "dcape_4_3": _points(
        "Throughput of one node with more and more control messages",
        "rate",
        REQUESTS,
        "50 messages a second cost nothing",
        "50 messages a second cost less than a tenth of the throughput",
        at_least("50 a second", "0 a second", 0.9),
        ("0 a second", "50 a second"),
        "messages are requests to move an operator to where it stands, where it had requests to connect",
        "control messages a second",
    ),
    "dcape_4_5": _points(
        "Output rate of one node with more and more connections",
        "rate",
        COPIES,
        "falls beyond 8 to 12 connections",
        "16 plans with as many rows in all put out less per second than 4",
        at_least("4 plans", "16 plans"),
        ("1 plan", "4 plans", "16 plans", "24 plans"),
        REPLICAS,
        "connections",
    ),
    "dcape_4_6": _points(
        "Share of CPU that goes into operators, by number of connections",
        "share",
        COPIES,
        "falls with the number of connections",
        "24 plans with as many rows in all leave a smaller share to operators than one",
        at_least("1 plan", "24 plans"),
        ("1 plan", "4 plans", "16 plans", "24 plans"),
        REPLICAS,
        "connections",
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
        TITLE="State of plan 4 over time, 1 to 5 nodes, grouping: the fullest node",
        paper="a single machine runs out of memory after twenty minutes",
        claim="The fullest of five nodes holds at most half the state that one node alone does",
        cases=_nodes(4, "grouping"),
        what=STATE,
        checks=at_least("1 node", "5 nodes", 2.0),
        first_look=("1 node", "5 nodes"),
        set_up=(
            *SET_UP,
            "state is in bytes, where it had tuples; it follows from the streams alone, and is the same in "
            "every run",
        ),
    ),
    "dcape_5_12": _rivals(
        "Plan 1 with windows of 60 s on four nodes: both patterns",
        1,
        4,
        # A window holds six times as much: with all rows, gigabytes.
        window_s=60.0,
        rows=1 / 3,
        set_up=(*SET_UP, "of the plan's five operators two are joins, where it had five"),
    ),
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
            if f"grouping on {nodes}" in found
            for part in at_least(f"grouping on {nodes}", f"round_robin on {nodes}")(found)
        ],
        first_look=("round_robin on 5", "grouping on 5"),
        set_up=SET_UP,
    ),
    "dcape_5_15": _rivals("Plan 3 on four nodes: both patterns", 3, 4),
    "dcape_5_16": _rivals("Plan 4 on five nodes: both patterns", 4, 5),
    "dcape_6_3": Curves(
        TITLE="Plan 2 on four nodes, a join moved back and forth, against leaving it",
        paper="moving an operator every minute costs nothing",
        claim="What moving a join adds to its batches is less than 3% of a minute",
        cases={"left alone": LEFT, "moved": MOVED},
        judged="undisturbed",
        checks=at_least("moved", "left alone", 0.97),
        set_up=(
            *SET_UP,
            f"the last join and what reads it have a node for themselves, and are moved to an empty one and "
            f"back every {MOVE_EVERY} batches, more often than every minute; the claim is about what moves "
            "add to batches, since single runs differ by more than that",
            "windows are of 10 s, where it had 20",
        ),
    ),
    "dcape_6_4": _redistributed("Plan 2 on three nodes, with redistribution and without", 2, 3, 1.1),
    "dcape_6_5": _redistributed("Plan 3 on two nodes, with redistribution and without", 3, 2, 1.05),
    "dcape_6_6": _redistributed("Plan 3 on three nodes, with redistribution and without", 3, 3, 1.05),
}
