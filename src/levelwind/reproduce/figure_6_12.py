"""Figures 6.12 and 6.13 of seed 000: latency of traffic monitoring on five machines, as the rates rise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.statistics import rounded

TITLE = "Mean and largest latency on a capped cluster of five, as the rates rise (with figure 6.13)"
RIVALS = ("correlation", "llf", "max_rate", "random", "connected")
PLANNERS = ("rod", "resilient", *RIVALS)
# The paper's rate multipliers, and the mean use of all CPUs that it had with ROD at the last.
MULTIPLIERS = (1.0, 2.0, 3.0, 3.5, 4.0)
FULL_USE = 0.91
# Seconds of packets in a batch: enough that the work on them is more than what any batch costs.
BATCH_S = 4
SECONDS = {True: 8, False: 40}
# A last batch that waited longer than this for the one before: overloaded. The paper's machines ran out of
# memory.
BEHIND_S = 3.0
# Batch times of runs after one another differ by so much.
NOISE = 0.1
PAPER = "ROD has the least mean and largest latency at multipliers 1 to 3.5, and alone survives 4 (curves)"
CLAIM = (
    "no rival has a mean or largest latency below ROD's by more than a tenth at any multiplier, and at 4 all "
    "of them but not ROD are overloaded"
)


def cells(quick: bool, seed: int) -> list[Item]:
    """One piece of work: a cluster takes the whole machine."""
    return [{"batches": SECONDS[quick] // BATCH_S, "batch_s": BATCH_S, "seed": seed}]


def measure(item: Item, /) -> Result:
    """Run every planner on the cluster, in a process of its own."""
    from levelwind.testing.sides import ours

    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = ours(
            "levelwind.reproduce.traffic_engine",
            "engine",
            folder=folder,
            planners=PLANNERS,
            multipliers=MULTIPLIERS,
            full_use=FULL_USE,
            **item,
            patience_s=7200.0,
        )
    return {**item, **found}


def waits(batch_s: Sequence[float], every_s: float) -> list[float]:
    """Of each batch, from the arrival of its last packet to its start: until the batch before is done.

    Examples
    --------
    >>> waits([0.5, 1.5, 0.5, 0.5], every_s=1.0)
    [0.0, 0.0, 0.5, 0.0]
    """
    found, done = [], 0.0
    for number, seconds in enumerate(batch_s, start=1):
        found.append(max(done - number * every_s, 0.0))
        done = number * every_s + found[-1] + seconds
    return found


def latencies(batch_s: Sequence[float], every_s: float) -> list[float]:
    """Of the packets of each batch, from the middle of their arrival to the end of the batch.

    Examples
    --------
    >>> latencies([0.5, 1.5, 0.5], every_s=1.0)
    [1.0, 2.0, 1.5]
    """
    waited = waits(batch_s, every_s)
    return [every_s / 2 + wait + seconds for wait, seconds in zip(waited, batch_s, strict=True)]


def summarise(results: Sequence[Result]) -> Outcome:
    """Compare ROD with each rival at every multiplier."""
    (result,) = results
    series = {
        name: [latencies(batches, BATCH_S) for batches in found] for name, found in result["took_s"].items()
    }
    mean = {name: [fmean(each) for each in found] for name, found in series.items()}
    most = {name: [max(each) for each in found] for name, found in series.items()}
    behind = {name: waits(found[-1], BATCH_S)[-1] for name, found in result["took_s"].items()}
    checks = [
        Check(
            passed=of[rival][at] >= (1.0 - NOISE) * of["rod"][at],
            reason=f"at {multiplier:g} {rival} has {what} {of[rival][at]:.2f} s, ROD {of['rod'][at]:.2f} s",
        )
        for what, of in (("mean", mean), ("largest", most))
        for at, multiplier in enumerate(MULTIPLIERS)
        for rival in RIVALS
    ]
    survivors = [name for name in RIVALS if behind[name] <= BEHIND_S]
    reason = f"not overloaded at 4: {', '.join(survivors)}"
    checks.append(Check(passed=not survivors, reason=reason))
    reason = f"ROD is {behind['rod']:.1f} s behind at 4"
    checks.append(Check(passed=behind["rod"] <= BEHIND_S, reason=reason))
    ours = {
        "mean_s": mean,
        "largest_s": most,
        "behind_at_4_s": behind,
        "capped": result["capped"],
        "own_use": result["own_use"],
        "multipliers": list(MULTIPLIERS),
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """Mean latency beside the largest, on a log axis."""
    (result,) = results
    with style.figure(path, width=8.4, columns=2) as panels:
        figures: dict[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "largest": max}
        for axes, (title, figure) in zip(panels, figures.items(), strict=True):
            axes.set_title(f"{title} latency, seconds")
            axes.set_xlabel("rate multiplier")
            axes.set_yscale("log")
            style.plain_ticks(axes, MULTIPLIERS)
            for name, found in result["took_s"].items():
                axes.plot(
                    MULTIPLIERS,
                    [figure(latencies(batches, BATCH_S)) for batches in found],
                    color=style.COLOURS[name],
                    marker=style.MARKERS[name],
                    label=style.LABELS[name],
                    markeredgecolor="white",
                    markeredgewidth=0.6,
                )
        style.legend_above(panels, columns=4)
