"""A deep network: what a hop between nodes costs, against a batch without hops.

A chain of ten operators on four nodes. Cut nowhere, once, three times or at every arc it has 0, 1, 3 or 9
hops; the cuts are changed by moves, in turn, within one run, so that all of them see the same machine. A hop
*within* the batch is one more exchange; a hop to the *next* batch costs the writing of rows in flight, and
its rows come out that much later. The straight line through seconds against hops gives the cost of one more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.runtime_worlds import WARM_UP, batch_seconds, line_through, watch
from levelwind.spark.api import ScriptedMove
from levelwind.testing.sides import answer, network_of, ours

NAME = "deep"
MODULE = "levelwind.bench.deep"
LENGTH, NODES = 10, 4
HOPS = (0, 1, 3, 9)
ROWS = 2_000
# Batches under one plan, of which the first, with the moves in it, is left out.
STAY = 4
ROUNDS, FULL_ROUNDS = 3, 10


def document(hops: str) -> dict[str, Any]:
    """The chain: maps that let every row through."""
    return {
        "name": NAME,
        "hops": hops,
        "streams": {
            "s": {
                "schema": {"ts": "timestamp", "value": "bigint"},
                "time": "ts",
                "rate": ROWS,
                "source": {
                    "format": "generator", "shape": "steady", "rate": ROWS, "speed": "max", "batch": "1s",
                    "columns": {"value": {"kind": "uniform", "low": 0, "high": 999}},
                },
            }
        },
        "operators": [
            {
                "name": f"o{number}", "kind": "map", "input": f"o{number - 1}" if number else "s",
                "select": {"value": "value + 1"}, "cost": "1us", "selectivity": 1,
            }
            for number in range(LENGTH)
        ],
    }  # fmt: skip


def placement(hops: int) -> dict[str, str]:
    """The chain in ``hops`` + 1 pieces of about one length, on the nodes in turn.

    Examples
    --------
    >>> list(placement(3).values())
    ['n1', 'n1', 'n1', 'n2', 'n2', 'n3', 'n3', 'n3', 'n4', 'n4']
    """
    return {f"o{number}": f"n{number * (hops + 1) // LENGTH % NODES + 1}" for number in range(LENGTH)}


def schedule(rounds: int) -> list[tuple[int, int]]:
    """(first batch, hops) of every stretch, every other round in reverse order."""
    found = []
    at = WARM_UP
    for number in range(rounds):
        for hops in reversed(HOPS) if number % 2 else HOPS:
            found.append((at, hops))
            at += STAY
    return found


def scripted(stretches: Sequence[tuple[int, int]]) -> list[ScriptedMove]:
    """The moves that bring every plan about."""
    return [
        ScriptedMove(step=step, operators=(name,), target=node, cause=f"{hops} hops")
        for step, hops in stretches
        for name, node in placement(hops).items()
    ]


def levelwind_side(hops: str, rounds: int) -> dict[str, Any]:
    """One run through all plans."""
    stretches = schedule(rounds)
    batches = stretches[-1][0] + STAY
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        seen = watch(
            network_of(document(hops)),
            folder=Path(folder),
            nodes=NODES,
            placement=placement(0),
            moves=scripted(stretches),
            batches=batches,
        )
    taken = [float("nan"), *batch_seconds(seen)]
    found: dict[str, list[list[float]]] = {str(number): [] for number in HOPS}
    for first, number in stretches:
        found[str(number)].append(taken[first + 1 : first + STAY])
    return {
        "stretches_s": found,
        "supersteps": {str(n): seen[first + 1].step.program.depth for first, n in stretches},
        "sent_bytes": {
            str(n): sum(node.sent_bytes for node in seen[first + 1].step.reports) for first, n in stretches
        },
    }


def run(settings: Settings, *, rounds: int | None = None) -> Result:
    """Both ways to count hops."""
    rounds = rounds or settings.rounds(FULL_ROUNDS if settings.full else ROUNDS)
    found = {}
    for way in ("within", "next"):
        settings.step(f"hops {way}")
        found[way] = ours(MODULE, "ours", hops=way, rounds=rounds)
    lines = {way: line_through(_points(one["stretches_s"])) for way, one in found.items()}
    each = {way: _medians(one["stretches_s"]) for way, one in found.items()}
    per_round = [
        line_through((hops, median(found["within"]["stretches_s"][str(hops)][number])) for hops in HOPS)
        for number in range(rounds)
    ]
    within, following = lines["within"], lines["next"]
    base = each["within"][0]
    return Result(
        name=NAME,
        ours=Figure(label="one more hop within the batch", value=within.slope, unit="s"),
        baseline=Figure(label="a batch without hops", value=base, unit="s"),
        ratio=base / within.slope,
        spread=spread_of([line.start / line.slope for line in per_round]),
        figures=[
            *(
                Figure(label=f"a batch, {way}, hops: {hops}", value=s, unit="s")
                for way in each
                for hops, s in each[way].items()
            ),
            Figure(label="one more hop to the next batch", value=following.slope, unit="s"),
        ],
        notes=(
            f"within: {within.start:.3f} s + {within.slope:.4f} s per hop, R² {within.r2:.3f}; "
            f"next: {following.start:.3f} s + {following.slope:.4f} s per hop, R² {following.r2:.3f}",
            "hops to the next batch put rows out as many batches later; the seconds here are of one batch",
            f"{ROWS:,} rows a batch, ten maps; the ratio: how many hops cost as much as a batch",
        ),
        details={"lines": {way: line.as_dict() for way, line in lines.items()}, **found},
    )


def _points(stretches: Mapping[str, Sequence[Sequence[float]]]) -> list[tuple[float, float]]:
    return [(int(hops), seconds) for hops, several in stretches.items() for one in several for seconds in one]


def _medians(stretches: Mapping[str, Sequence[Sequence[float]]]) -> dict[int, float]:
    return {
        int(hops): median(seconds for one in several for seconds in one)
        for hops, several in stretches.items()
    }


if __name__ == "__main__":
    answer({"ours": levelwind_side})
