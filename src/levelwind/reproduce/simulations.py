"""The simulated worlds of seed 001, section 5 (seed 000, section 6.2), and what is measured in them.

Chains of ten operators whose streams burst at different times, on twenty nodes: table 2. What table 2 says of
thresholds, costs, selectivities, rates and migration are the defaults of the policies and of the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from levelwind.balance import policy_names
from levelwind.model import Cluster
from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Result
from levelwind.reproduce.statistics import Estimate, by, extent, geometric
from levelwind.reproduce.worlds import cell_seed
from levelwind.sim.driver import simulate
from levelwind.sim.outcome import Outcome as Simulated
from levelwind.sim.scenario import Chains, Named, Scenario
from levelwind.sim.workloads import OnOff, Periodic

CHAIN = 10
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9)
TABLE_2: Mapping[str, Any] = {
    "nodes": 20,
    "per_node": 10,
    "workload": "periodic",
    "phases": "even",
    "period_s": 10.0,
    "ratio": 4.0,
    "window_s": 10.0,
    "samples": 10,
    "start": "random",
    "planner": None,
    "policy": None,
    "clean": True,
}
# Runs and recorded seconds: the paper has five runs and does not say how long they are.
RUNS = {True: 2, False: 5}
DURATION_S = {True: 60.0, False: 120.0}
# Table 2's window holds exactly one period, and two ways off that edge.
EDGES: Mapping[str, Mapping[str, float]] = {
    "table 2": {},
    "window 5 s": {"window_s": 5.0},
    "period 15 s": {"period_s": 15.0},
}

STILL = "averages over a window of exactly one period stand still, so policies have little to balance"
TICKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)

Curves = dict[str, dict[Any, Estimate]]


def cell(quick: bool, seed: int, run: int, algorithm: str, load: float, **changes: Any) -> Item:
    """One simulation of an algorithm, a planner or a policy, in table 2's setting, changed where it is said.

    All cells of one run and seed see the same network under the same rows, whatever else they differ in.
    """
    role = "policy" if algorithm in policy_names() else "planner"
    return {
        **TABLE_2,
        role: algorithm,
        "duration_s": DURATION_S[quick],
        "algorithm": algorithm,
        "load": load,
        "run": run,
        "seed": cell_seed(seed, 5002, run),
        **changes,
    }


def scenario_of(item: Item) -> Scenario:
    """What the simulator is given for a cell."""
    bursts = OnOff() if item["workload"] == "on_off" else _periodic(item)
    return Scenario(
        network=Chains(chains=round(item["nodes"] * item["per_node"] / CHAIN), length=CHAIN),
        cluster=Cluster.equal(item["nodes"]),
        workload=bursts,
        load=item["load"],
        start=item["start"],
        planner=_named(item["planner"]),
        policy=_named(item["policy"]),
        window_s=item["window_s"],
        samples=item["samples"],
        warmup_s=max(20.0, item["window_s"]),
        duration_s=item["duration_s"],
        clean=item["clean"],
    )


def measure(item: Item) -> Result:
    """One simulation."""
    return {**item, **figures(simulate(scenario_of(item), seed=item["seed"]))}


def figures(outcome: Simulated) -> Result:
    """The figures of a simulation that the papers look at."""
    return {
        "latency_ratio": outcome.latency_ratio,
        "load_std": outcome.load_std,
        "load_std_bound": outcome.load_std_bound,
        "load_correlation": outcome.load_correlation,
        "load_spread": outcome.load_spread,
        "held_out_load_std": outcome.held_out_load_std,
        "held_out_load_correlation": outcome.held_out_load_correlation,
        "moves": len(outcome.moves),
        "moved_load": outcome.moved_load,
    }


def curves(
    results: Sequence[Result],
    algorithms: Sequence[str],
    *,
    what: str = "latency_ratio",
    over: str = "load",
) -> Curves:
    """A figure of each algorithm by a key of the cells: mean over runs, as the paper has it, and extremes."""
    groups = by(results, "algorithm")
    return {
        name: {at: extent([r[what] for r in rows]) for at, rows in by(groups[name], over).items()}
        for name in algorithms
    }


def share(
    results: Sequence[Result], one: str, other: str, *, what: str = "latency_ratio", over: str = "load"
) -> dict[Any, float]:
    """One algorithm's figure over another's in the same run, by a key: geometric mean over runs."""
    return {
        at: geometric([a / b for a, b in _side_by_side(rows, one, other, what)]).mean
        for at, rows in by(results, over).items()
    }


def below(
    results: Sequence[Result], one: str, other: str, most: Mapping[Any, float], *, over: str = "load"
) -> list[Check]:
    """That an algorithm has at most so much of another's latency, at each of the values listed."""
    found = share(results, one, other, over=over)
    return [
        Check(
            passed=found[at] <= limit,
            reason=f"at {over} {at:g} {one} has {found[at]:.3f} of {other}'s latency, not {limit:g} or less",
        )
        for at, limit in most.items()
    ]


def by_setting(found: Mapping[str, Sequence[Check]]) -> list[Check]:
    """One check for each of `EDGES`; where table 2's setting fails, it says which of the others do not."""
    failed = {name: [c.reason for c in checks if not c.passed] for name, checks in found.items()}
    kept = [name for name, reasons in failed.items() if not reasons]
    checks = []
    for name, reasons in failed.items():
        edge = f" ({STILL}; as claimed with: {', '.join(kept) or 'none'})" if not EDGES[name] else ""
        checks.append(Check(passed=not reasons, reason=f"{name}: {', '.join(reasons)}{edge}"))
    return checks


def of_setting(results: Sequence[Result], setting: str) -> list[Result]:
    """The results in one of `EDGES`."""
    return [r for r in results if r["setting"] == setting]


def means(table: Curves) -> dict[str, dict[Any, float]]:
    """Means of `curves`, for a summary."""
    return {name: {at: e.mean for at, e in row.items()} for name, row in table.items()}


def draw_latencies(panels: Sequence[Any], tables: Sequence[Curves], *, dashed: Sequence[str] = ()) -> None:
    """A panel per table, a curve per algorithm, log axes; bars reach from the least run to the largest.

    Call it last: curves of a single panel are named at their ends, which depend on the final axes.
    """
    for axes, table in zip(panels, tables, strict=True):
        for name, row in table.items():
            style.curve(
                axes,
                list(row),
                list(row.values()),
                colour=style.COLOURS[name],
                marker=style.MARKERS[name],
                line="--" if name in dashed else "-",
                label=style.LABELS[name],
            )
    largest = max(e.high for table in tables for row in table.values() for e in row.values())
    for axes in panels:
        axes.set_yscale("log")
        style.plain_ticks(axes, [tick for tick in TICKS if tick < 1.2 * largest], axis="y")
        axes.set_ylim(bottom=1)
        if axes.get_subplotspec().is_first_col():
            axes.set_ylabel("latency ratio (log)")
    if len(panels) > 1:
        style.legend_above(panels, columns=len(tables[0]))
    else:
        last = {name: (max(row), row[max(row)]) for name, row in tables[0].items()}
        ends = [(x, e.mean, style.LABELS[name], style.COLOURS[name]) for name, (x, e) in last.items()]
        style.label_ends(panels[0], ends)


def _side_by_side(rows: Sequence[Result], one: str, other: str, what: str) -> list[tuple[float, float]]:
    found = {(r["algorithm"], r["run"]): r[what] for r in rows}
    runs = sorted({run for _, run in found})
    return [(found[one, run], found[other, run]) for run in runs]


def _periodic(item: Item) -> Periodic:
    return Periodic(ratio=item["ratio"], period_s=item["period_s"], phases=item["phases"])


def _named(name: str | None) -> Named | None:
    return None if name is None else Named(name=name)
