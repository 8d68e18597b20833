"""What knowing the lower bound of the rates is worth: figures 6.6 and 6.7, table 6.1."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from levelwind.frontend.generate import random_trees
from levelwind.loads import make_problem
from levelwind.loads.arrays import Floats
from levelwind.reproduce import style
from levelwind.reproduce.outcome import Item, Result
from levelwind.reproduce.statistics import Estimate, ratio_of_totals
from levelwind.reproduce.worlds import STREAMS, bounded, equal_cluster, feasible_ratio, ideal_point, planned

# Of the few negative penalties, those below are drawn here.
LOWEST_DRAWN = -0.25


def measure(item: Item) -> Result:
    """One graph, many lower bound points B: the feasible set above B of plans made for B, 0 and another Z.

    B and Z are uniform in the ideal set. With ``bins`` the points B are drawn evenly from as many bins of
    their distance to the ideal plane: that distance has density 5(1 − x)⁴, so far ones are rare by chance,
    while the direction does not depend on it. Sets are shares of the ideal set above B, so that every
    point counts alike; as the paper's penalty is a ratio of two sets above the same B, it is the same.
    """
    rng = np.random.default_rng(item["seed"])
    network = random_trees(rng, operators=item["operators"], streams=STREAMS)
    plain = make_problem(network, equal_cluster())
    origin_plan = planned(plain, "rod")
    points = []
    for i in range(item["points"]):
        real, assumed = ideal_point(rng, STREAMS), ideal_point(rng, STREAMS)
        if item.get("bins"):
            real = _at_distance(real, (i % item["bins"] + rng.random()) / item["bins"])
        problem = bounded(network, plain, real)
        plans = {
            "known": planned(problem, "rod"),
            "origin": origin_plan,
            "wrong": planned(bounded(network, plain, assumed), "rod"),
        }
        points.append(
            {
                "to_ideal": float(1.0 - real.sum()),
                "assumed_to_ideal": float(1.0 - assumed.sum()),
                "apart": float(np.linalg.norm(real - assumed)),
                **{name: feasible_ratio(problem, plan) for name, plan in plans.items()},
            }
        )
    return {**item, "measured": points}


def penalty(points: Sequence[dict[str, Any]], instead: str) -> Estimate:
    """(known − instead) / known as a ratio of totals: defined even where single sets are empty."""
    known = np.array([p["known"] for p in points])
    return ratio_of_totals(known - np.array([p[instead] for p in points]), known)


def mean_penalty(points: Sequence[dict[str, Any]], instead: str) -> tuple[float, float]:
    """Mean of single penalties where the paper's formula is defined, and the share where it is not."""
    defined = [(p["known"] - p[instead]) / p["known"] for p in points if p["known"] > 0]
    return (float(np.mean(defined)) if defined else float("nan")), 1.0 - len(defined) / len(points)


def all_points(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The points of all graphs."""
    return [point for result in results for point in result["measured"]]


def binned(
    points: Sequence[dict[str, Any]], key: str, edges: Sequence[float], instead: str
) -> dict[float, Estimate]:
    """Penalty by bins of ``key``, named by the bin's middle; bins in which no set is left are dropped."""
    bins: dict[float, Estimate] = {}
    for low, high in pairwise(edges):
        inside = [p for p in points if low <= p[key] < high]
        if inside and any(p["known"] > 0 for p in inside):
            bins[round((low + high) / 2, 6)] = penalty(inside, instead)
    return bins


def _at_distance(point: Floats, to_ideal: float) -> Floats:
    """The point moved along its ray from the origin until it is this far from the ideal plane."""
    return point / point.sum() * (1.0 - to_ideal)


def draw_penalty(
    axes: Any, points: Sequence[dict[str, Any]], key: str, instead: str, edges: Sequence[float]
) -> None:
    """Single penalties where they are defined, and the ratio of totals of each bin over them.

    A plan made for the true bound is a heuristic's too: it can lose, and its penalty is then negative.
    """
    defined = [p for p in points if p["known"] > 0]
    single = [(p["known"] - p[instead]) / p["known"] for p in defined]
    axes.scatter(
        [p[key] for p in defined],
        np.maximum(single, LOWEST_DRAWN),
        s=5,
        color=style.SKY,
        alpha=0.45,
        linewidths=0,
        rasterized=True,
        label="one point",
    )
    bins = binned(points, key, edges, instead)
    style.curve(axes, list(bins), list(bins.values()), colour=style.BLUE, label="ratio of totals, 95%")
    axes.set_ylim(max(LOWEST_DRAWN, min(0.0, *single)) - 0.03, 1.05)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, markerscale=1.6)
