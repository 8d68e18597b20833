"""All benchmarks by name, and the one function that runs them.

Each is the module of its name, imported when it runs: to list them nobody waits for NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from levelwind.bench.machine import machine_note
from levelwind.bench.result import Settings
from levelwind.errors import chosen_names

Progress = Callable[[int, int, str], None]
BENCHMARKS = {
    "rod_scale": "rod on 10,000 and 100,000 operators, against figure 4.9 taken literally",
    "plan_file": "levelwind plan on a 10,000-operator file, against reading it with yaml.SafeLoader",
    "start": "start-up of the small commands, against importing NumPy",
    "volume": "error of the feasible set's volume, against hit-or-miss with as many points",
    "resilient": "feasible set of resilient over that of rod, and CPU time against its budget",
    "balance": "the correlation planner against print taken literally; sub-domains, policies, the manager",
    "simulator": "events per second of the simulator, against plain Python with a heap",
    "many_queries": "160 windowed aggregates in one run, against plain Structured Streaming's queries",
    "wide": "a batch of 1,000 small operators, against one filter per stream",
    "deep": "one more hop between nodes, against a batch without hops",
    "throughput": "rows per second through a split aggregate, against the same plain query",
    "join": "a three-way band join on several instances, against buckets by hand in a plain query",
    "routing": "CPU of sending rows of a spread join to 30 instances, against that of the busiest of them",
    "state": "bytes that a checkpoint writes, against the bytes of what has changed",
    "steady": "memory and checkpoint of a run that goes on at one rate, last third against second",
    "moves": "a batch with moves, against those around it; time and bytes per operator and window",
    "burst": "the rate that planners and policies sustain on a capped cluster, over that of connected",
    "agreement": "node loads and latency in the simulator, against the same network on a capped cluster",
    "relaxation": "relaxation of 1,000 queries on 1,550 nodes, against figure 7 and a search of all nodes",
    "reuse": "CPU of 40 queries that share a beginning, against the beginning once and 40 ends",
    "dcape": "the papers' query plans by nodes, pattern and policy: grouping against round_robin",
    "prediction": "costs by the papers' equations, fitted at one rate and window, against those measured",
    "manager": "CPU of the manager per report at 1,000 nodes and 20,000 operators, against its limit",
    "feasible": "the feasible set measured on a capped cluster, against the model's",
}


def names() -> tuple[str, ...]:
    """Names of all benchmarks, in the order in which they run."""
    return tuple(BENCHMARKS)


def describe() -> list[dict[str, str]]:
    """What each benchmark compares."""
    return [{"name": name, "title": title} for name, title in BENCHMARKS.items()]


def run(
    chosen: Sequence[str] = (),
    *,
    repeat: int | None = None,
    full: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    directory: Path | None = None,
) -> list[dict[str, Any]]:
    """Run benchmarks, one after the other, and return the contract's list.

    Parameters
    ----------
    chosen
        Names; none means all.
    repeat
        Rounds of each (graphs, for ``resilient``), each benchmark's own number by default.
    full
        The long version of those that have one.
    progress
        Called as ``progress(done, total, what)`` before each step.
    directory
        Where long ones keep what they have measured; nowhere by default.
    """
    selected = chosen_names(chosen, BENCHMARKS, "must be a benchmark")
    machine = machine_note()
    answers = []
    for done, name in enumerate(selected):

        def step(what: str, done: int = done, name: str = name) -> None:
            if progress is not None:
                progress(done, len(selected), f"{name}: {what}")

        step("starting")
        settings = Settings(repeat=repeat, full=full, seed=seed, step=step, directory=directory)
        answer = import_module(f"levelwind.bench.{name}").run(settings).as_dict()
        answer["notes"].append(machine)
        answers.append(answer)
    return answers
