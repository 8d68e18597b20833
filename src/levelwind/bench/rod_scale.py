"""How fast ROD plans large networks, against ROD as printed.

Ours looks only at the streams that an operator's load follows, and counts the streams it cuts; figure 4.9
taken literally works through all nodes and streams for every operator and takes the first class I node.
With ``class_one=first`` ours makes the very same plan, so that figure compares the programs alone. All
plan the same random trees (20 streams), each time in a fresh process and from a ready problem. The large
size is held against its limit only.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from statistics import median
from typing import Any

from levelwind.bench.result import Figure, Result, Settings, compared
from levelwind.bench.timing import interleaved, process_output

NAME = "rod_scale"
ROUNDS, LARGE_ROUNDS = 5, 3
SAME = "rod class_one=first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A network to plan, and what planning it may cost."""

    operators: int
    nodes: int
    limit_s: float
    streams: int = 20
    limit_mb: float | None = None

    def __str__(self) -> str:
        return f"{self.operators:,} operators on {self.nodes:,} nodes"


MIDDLE = Size(operators=10_000, nodes=100, limit_s=0.5, limit_mb=500.0)
LARGE = Size(operators=100_000, nodes=1_000, limit_s=30.0)


def run(settings: Settings, *, middle: Size = MIDDLE, large: Size = LARGE) -> Result:
    """Measure both sizes."""
    seen: dict[str, list[dict[str, Any]]] = {"rod": [], SAME: [], "literal": []}

    def seconds(planner: str) -> float:
        settings.step(f"{planner}, {middle}")
        answer = _planned(planner, middle, settings.seed, measured=not seen[planner])
        seen[planner].append(answer)
        return float(answer["seconds"])

    rounds = settings.rounds(ROUNDS)
    taken = interleaved({name: lambda name=name: seconds(name) for name in seen}, rounds)  # type: ignore[misc]
    alone = []
    for _ in range(settings.rounds(LARGE_ROUNDS, most=LARGE_ROUNDS)):
        settings.step(f"rod, {large}")
        alone.append(_planned("rod", large, settings.seed))
    ratios = {name: answers[0]["ratio"] for name, answers in seen.items()}
    same = Figure(label="with class_one=first: the baseline's plan", value=median(taken[SAME]), unit="s")
    memory = Figure(
        label=f"peak memory, {middle}",
        value=max(answer["peak_mb"] for answer in seen["rod"]),
        unit="MB",
        limit=middle.limit_mb,
    )
    large_seconds = Figure(
        label=str(large), value=median(answer["seconds"] for answer in alone), unit="s", limit=large.limit_s
    )
    large_memory = Figure(
        label=f"peak memory, {large}",
        value=max(answer["peak_mb"] for answer in alone),
        unit="MB",
        limit=large.limit_mb,
    )
    return compared(
        NAME,
        taken["rod"],
        taken["literal"],
        labels=(str(middle), "figure 4.9 taken literally"),
        limit=middle.limit_s,
        figures=(same, memory, large_seconds, large_memory),
        notes=(
            f"feasible ratio {ratios['rod']:.4f} against {ratios['literal']:.4f} with the first class I node",
            f"class_one=first alone is {median(taken['literal']) / median(taken[SAME]):.3g} times as fast "
            "as the baseline, for the same plan",
            "peak memory is that of the whole process: Python, NumPy, the network and the problem included",
        ),
        details={
            "rounds_s": taken,
            "large_rounds_s": [answer["seconds"] for answer in alone],
            "memory_before_planning_mb": max(answer["before_mb"] for answer in seen["rod"]),
            "feasible_ratio": ratios,
        },
    )


def _planned(planner: str, size: Size, seed: int, *, measured: bool = False) -> dict[str, Any]:
    numbers = (size.operators, size.nodes, size.streams, seed, int(measured))
    command = (sys.executable, "-m", "levelwind.bench.plan_once", *map(str, numbers), *planner.split())
    answer: dict[str, Any] = json.loads(process_output(command))
    return answer
