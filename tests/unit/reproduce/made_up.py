"""Results written by hand, so that the verdict on them is known."""

from __future__ import annotations

import numpy as np

SIZES = (25, 50, 100, 200)


def resilience(
    rod=(0.1, 0.3, 0.6, 0.9), *, factors=None, graphs=6, keys=SIZES, key="operators", spread=(0.5, 1.0, 1.5)
):
    """Rivals at fixed shares of ROD, a little different on each graph, with a bad, a fair and a good run."""
    factors = factors or {"correlation": 0.6, "llf": 0.4, "random": 0.3, "connected": 0.2}
    results = []
    for value, base in zip(keys, rod, strict=True):
        for graph in range(graphs):
            own = base * (1 + 0.01 * graph)
            row = {"operators": 50, "streams": 5, "graph": graph, "rod": own, key: value}
            for name, factor in factors.items():
                share = factor(value) if callable(factor) else factor
                row[name] = [own * share * part for part in spread]
            results.append(row)
    return results


def by_inputs(line, *, graphs=6):
    """Rivals whose ratio to ROD is ``line(inputs)``."""
    names = ("correlation", "llf", "random", "connected")
    keys = (2, 3, 4, 5, 6, 7, 8)
    return resilience(
        (0.5,) * 7, factors=dict.fromkeys(names, line), graphs=graphs, keys=keys, key="streams", spread=(1.0,)
    )


def bounds(penalty, *, key="to_ideal", instead="origin", operators=50, high=1.0, points=200):
    """Points whose penalty is a given function of their distance."""
    rng = np.random.default_rng(0)
    measured = []
    for i in range(points):
        x = high * (i + 0.5) / points
        known = 0.2 + 0.1 * rng.random()
        point = {"to_ideal": 0.5, "apart": 0.5, "known": known, "origin": known, "wrong": known}
        point[key] = x
        point[instead] = known * (1 - penalty(x))
        measured.append(point)
    return [{"operators": operators, "graph": 0, "measured": measured}]


def sent(gain, *, ratios, against="plain", graphs=5):
    """Clustered ROD at ``gain(per_stream, ratio)`` times a rival."""
    rows = []
    for per_stream in (10, 20, 40):
        for ratio in ratios:
            for graph in range(graphs):
                row = {"per_stream": per_stream, "ratio": ratio, "graph": graph}
                row.update(clustered=0.5, plain=0.4, any=0.3, connected=[0.1, 0.1])
                rival = 0.5 / (gain(per_stream, ratio) * (1 + 0.001 * graph))
                row[against] = [rival, rival] if against == "connected" else rival
                rows.append(row)
    return rows


def cloud(ratio, *, name="g", count=1000):
    """Matrices whose feasible ratio is a given function of the heuristic's value."""
    x = np.linspace(0.001, 0.999, count)
    return [{"chunk": 0, name: x.tolist(), "ratio": [float(ratio(v)) for v in x]}]


FIGURES = {
    "latency_ratio": 2.0,
    "load_std": 0.1,
    "load_std_bound": 0.1,
    "load_correlation": 0.0,
    "load_spread": 0.0,
    "held_out_load_std": 0.1,
    "held_out_load_correlation": 0.0,
    "moves": 3,
    "moved_load": 1.0,
}


def simulated(experiment, figures):
    """The cells of a simulation experiment, with the figures that ``figures(cell)`` gives them."""
    return [{**cell, **FIGURES, **figures(cell)} for cell in experiment.cells(True, 0)]


def by_name(**latencies):
    """Latency ratios by algorithm, as numbers or as functions of the cell."""

    def figures(cell):
        value = latencies[cell["algorithm"]]
        return {"latency_ratio": value(cell) if callable(value) else value}

    return figures


def course(std):
    """The course of a run of three seconds."""
    return {
        "at_s": [1.0, 2.0, 3.0],
        "latency_s": [None, 0.1, 0.2],
        "moved": [0.0, 1.0, 1.0],
        "std": [None, 0.2, std],
        "correlation": [None, 0.1, 0.5],
    }


def on_a_cluster(experiment, slowness):
    """Batch times: the share of all CPUs, times how much slower than that a planner's fullest node is."""
    (cell,) = experiment.cells(False, 0)
    took = {
        name: [
            [slowness.get(name, slowness["others"]) * experiment.BATCH_S * use] * cell["batches"]
            for use in (experiment.FULL_USE * multiplier / 4.0 for multiplier in experiment.MULTIPLIERS)
        ]
        for name in experiment.PLANNERS
    }
    return [{**cell, "took_s": took, "capped": True, "own_use": 0.1}]
