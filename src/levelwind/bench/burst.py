"""Bursts on a real cluster: the rates that ways of placing and moving operators bear, one against another.

Four workers on this machine, each capped at a part of a core. Streams whose bursts take turns (`phases`), or
that carry the packet counts of real captures (`trace`), are each read by `model` operators that burn their
cost, as aggregates would. The rates rise level by level, each level one round of the bursts. A level is borne
if its slowest batch takes no longer than the rows of a batch take to arrive; the highest rate sustained lies
between the last level borne and the next, by a straight line. A run ends with the first level not borne.

Contenders take turns, round after round. Plans are made from one round of the bursts at level 1; policies go
on from there.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.model import Network
from levelwind.planning import plan
from levelwind.runtime.coordinator import Step
from levelwind.runtime.rundir import Command
from levelwind.spark.api import prepare
from levelwind.spark.session import start_session
from levelwind.testing.loopback import LoopbackCluster
from levelwind.testing.sides import answer, network_of, ours

NAME = "burst"
MODULE = "levelwind.bench.burst"
WORKERS, CAP = 4, 0.35
# Seconds of stream in a batch, and batches in a round of the bursts.
BATCH_S, ROUND = 2, 8
STREAMS, READERS = 8, 5
HIGH_OVER_LOW = 4.0
# The whole cluster's mean load at level 1 (real traffic bursts higher), and the levels: each so many times
# the one before.
LEVEL_ONE = {"phases": 0.42, "trace": 0.25}
RISE = 1.25
LEVELS = tuple(RISE**level for level in range(6))
# Batches before the first level. The caps come into force for the last `SETTLE` of them, so that compiling is
# charged to no contender.
WARM_UP, SETTLE = 12, 4
ROUNDS, FULL_ROUNDS = 1, 5
OURS, RIVALS = "resilient", {"connected": 1.3, "llf": 1.1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A planner, and the policy that goes on from its plan."""

    planner: str
    policy: str | None = None

    @property
    def name(self) -> str:
        """As it stands in the table."""
        return self.planner if self.policy is None else f"{self.planner} + {self.policy}"


CONTENDERS = (
    Contender(planner="connected"),
    Contender(planner="llf"),
    Contender(planner="correlation", policy="cor_se_imp"),
    Contender(planner="rod"),
    Contender(planner="resilient"),
    Contender(planner="steady", policy="steady_pairs"),
)


def phases(rng: np.random.Generator) -> Any:
    """One round of each stream: high for half of it, one stream after the other; mean 1."""
    at = (np.arange(ROUND) + 0.5) / ROUND
    shift = np.arange(STREAMS)[:, None] / STREAMS
    high = (at + shift) % 1.0 < 0.5
    means = rng.uniform(0.7, 1.3, size=(STREAMS, 1))
    return means * np.where(high, HIGH_OVER_LOW, 1.0) / ((HIGH_OVER_LOW + 1.0) / 2)


def trace(rng: np.random.Generator) -> Any:
    """One round of each stream: seconds of real captures, their means made equal within a third."""
    with resources.files("levelwind.bench").joinpath("packet_counts.csv").open() as file:
        rows = list(csv.reader(line for line in file if not line.startswith("#")))
    counts = np.array(rows[1:], dtype=float).T[:STREAMS, :ROUND]
    means = rng.uniform(0.7, 1.3, size=(STREAMS, 1))
    return means * counts / counts.mean(axis=1, keepdims=True)


WORLDS = {"phases": phases, "trace": trace}


def document(
    pattern: Any, rng: np.random.Generator, level_one: float, levels: Sequence[float] = LEVELS
) -> dict[str, Any]:
    """Operators on each stream, at rates that put ``level_one`` on the cluster, for all levels."""
    costs = rng.uniform(0.5, 1.5, size=(STREAMS, READERS)) * 4e-4
    scale = level_one * WORKERS * CAP / float((pattern.mean(axis=1) * costs.sum(axis=1)).sum())
    streams, operators = {}, []
    for number in range(STREAMS):
        # The sources play a rate each second; here all seconds of a batch have the same.
        rates = np.repeat(scale * pattern[number], BATCH_S)
        quiet = np.full(WARM_UP * BATCH_S, rates.min())
        played = np.concatenate([quiet, *(level * rates for level in levels)])
        streams[f"I{number}"] = {
            "schema": {"ts": "timestamp"},
            "time": "ts",
            "rate": [round(float(rate), 3) for rate in rates],
            "source": {
                "format": "generator", "shape": "series", "speed": "max", "batch": f"{BATCH_S}s",
                "rates": [round(float(rate), 3) for rate in played],
            },
        }  # fmt: skip
        operators += [
            {"name": f"o{number}_{place}", "kind": "model", "input": f"I{number}", "cost": float(cost)}
            for place, cost in enumerate(costs[number])
        ]
    return {"name": NAME, "hops": "next", "streams": streams, "operators": operators}


def engine_side(folder: str, world: str, seed: int, rounds: int) -> dict[str, Any]:
    """All contenders on one cluster, in turns."""
    rng = np.random.default_rng(seed)
    told = network_of(document(WORLDS[world](rng), rng, LEVEL_ONE[world]))
    found: dict[str, list[dict[str, Any]]] = {each.name: [] for each in CONTENDERS}
    capped = True
    with LoopbackCluster(workers=WORKERS) as cluster:
        session = start_session(cluster.master, cluster.configuration, log=Path(folder, "spark.log"))
        # A run that is not counted: what the cluster's processes do for the first time takes longer.
        _one(told, cluster, CONTENDERS[0], session, Path(folder, "first"))
        for number in range(rounds):
            order = CONTENDERS if number % 2 == 0 else CONTENDERS[::-1]
            for contender in order:
                place = Path(folder, f"{number}-{contender.planner}")
                found[contender.name].append(_one(told, cluster, contender, session, place))
                capped = capped and found[contender.name][-1]["capped"]
    return {"runs": found, "capped": capped}


def _one(
    told: Network, cluster: LoopbackCluster, contender: Contender, session: Any, folder: Path
) -> dict[str, Any]:
    """A run up the levels, until one is not borne."""
    nodes = cluster.nodes(CAP)
    seconds: list[float] = []
    loads: list[float] = []
    moves = 0

    def note(step: Step) -> None:
        nonlocal moves
        if step.commit.closed:
            return
        seconds.append(step.wall_s)
        loads.append(max(node_loads(step)))
        moves += len(step.commit.moves)
        cap_after_warm_up(cluster, len(seconds))
        level, rest = divmod(len(seconds) - WARM_UP, ROUND)
        if level > 0 and rest == 0 and max(seconds[-ROUND:]) > BATCH_S:
            begun.directory.ask(Command("stop"))  # read before the next batch begins

    made = plan(told, nodes, contender.planner)
    begun = prepare(
        told,
        nodes,
        placement=made,
        spark=session,
        run_dir=folder,
        until_idle=True,
        reuse=False,
        on_step=note,
        policy=contender.policy,
    )
    try:
        begun.start().wait()
    finally:
        begun.close()
        capped = cluster.capped
        cluster.cap(None)
    return {"batch_s": seconds[WARM_UP:], "load": loads[WARM_UP:], "moves": moves, "capped": capped}


def cap_after_warm_up(cluster: LoopbackCluster, batches: int) -> None:
    """Put the caps in force once enough batches have been run for all code to be compiled."""
    if batches == WARM_UP - SETTLE:
        cluster.cap(CAP)


def node_loads(step: Step) -> list[float]:
    """CPU that each node spent on its operators, of what it has for a batch."""
    spent = [0.0] * WORKERS
    for report, box in step.boxes:
        spent[report.node] += box.cpu_s
    return [each / (CAP * BATCH_S) for each in spent]


def levels_of(values: Sequence[float]) -> list[list[float]]:
    """The values of each whole level."""
    return [list(values[at : at + ROUND]) for at in range(0, len(values) - ROUND + 1, ROUND)]


def sustained(batch_s: Sequence[float]) -> float:
    """The highest rate borne, in times the rates of level 1; 0 if not even that.

    Examples
    --------
    >>> sustained([0.5] * ROUND + [0.9] * ROUND + [1.1] * ROUND) == (RISE + RISE**2) / 2
    True
    """
    slowest = [max(level) for level in levels_of(batch_s)]
    for number, seconds in enumerate(slowest):
        if seconds > BATCH_S:
            if number == 0:
                return 0.0
            share = (BATCH_S - slowest[number - 1]) / (seconds - slowest[number - 1])
            return float(RISE ** (number - 1) + share * (RISE**number - RISE ** (number - 1)))
    return float(RISE ** (len(slowest) - 1)) if slowest else 0.0


def run(settings: Settings, *, worlds: Sequence[str] = tuple(WORLDS), rounds: int | None = None) -> Result:
    """Both worlds, and a table for each in the notes."""
    rounds = rounds or settings.rounds(FULL_ROUNDS if settings.full else ROUNDS)
    found: dict[str, Any] = {}
    for world in worlds:
        settings.step(f"{world}: {len(CONTENDERS)} contenders, {rounds} rounds")
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            arguments = {"folder": folder, "world": world, "seed": settings.seed, "rounds": rounds}
            found[world] = ours(MODULE, "engine", patience_s=7200.0, **arguments)
    return _result(found, rounds)


def _result(found: Mapping[str, Any], rounds: int) -> Result:
    borne = {
        world: {
            name: median(sustained(each["batch_s"]) for each in runs) for name, runs in one["runs"].items()
        }
        for world, one in found.items()
    }
    first = next(iter(found))
    mine = [sustained(each["batch_s"]) for each in found[first]["runs"][OURS]]
    base = [sustained(each["batch_s"]) for each in found[first]["runs"]["connected"]]
    figures = [
        # Limits are upper bounds: the rival's rate over ours.
        Figure(
            label=f"{world}: {rival} over {OURS}",
            value=rates[rival] / rates[OURS],
            unit="share",
            limit=1 / goal,
        )
        for world, rates in borne.items()
        for rival, goal in RIVALS.items()
    ]
    return Result(
        name=NAME,
        ours=Figure(label=f"highest rate sustained by {OURS}, {first}", value=median(mine), unit="x level 1"),
        baseline=Figure(label="by connected", value=median(base), unit="x level 1"),
        ratio=median(mine) / max(median(base), 1e-9),
        spread=spread_of([a / b for a, b in zip(mine, base, strict=True) if b > 0]) if any(base) else 0.0,
        figures=figures,
        notes=[line for world, one in found.items() for line in _table(world, one, rounds)],
        details=dict(found),
    )


def _table(world: str, one: Mapping[str, Any], rounds: int) -> list[str]:
    caps = f"capped at {CAP} core each" if one["capped"] else "NOT capped: this machine does not allow it"
    lines = [
        f"{world}: {WORKERS} workers {caps}; medians of {rounds}; batch times and largest load over the "
        f"first {_common(one)} levels"
    ]
    for name, runs in one["runs"].items():
        upto = _common(one) * ROUND
        cells = {
            "p50": median(median(each["batch_s"][:upto]) for each in runs),
            "p99": median(float(np.quantile(each["batch_s"][:upto], 0.99)) for each in runs),
            "load": median(max(each["load"][:upto]) for each in runs),
            "rate": median(sustained(each["batch_s"]) for each in runs),
            "moves": median(each["moves"] for each in runs),
        }
        lines.append(
            f"{world}: {name}: sustains {cells['rate']:.2f}, batch p50 {cells['p50']:.2f} s, "
            f"p99 {cells['p99']:.2f} s, largest node load {cells['load']:.0%}, {cells['moves']:.0f} moves"
        )
    return lines


def _common(one: Mapping[str, Any]) -> int:
    """Levels that every contender went through in most of its runs."""
    return int(min(median(len(levels_of(each["batch_s"])) for each in runs) for runs in one["runs"].values()))


if __name__ == "__main__":
    answer({"engine": engine_side})
