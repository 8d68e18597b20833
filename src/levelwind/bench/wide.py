"""A wide network: 1,000 small operators on a few rows each, against one operator per stream.

250 chains of filter, map, filter and tumbling count, on 20 streams that bring a few rows per batch. Rows cost
next to nothing here: what is left is the price of having an operator. The baseline is a batch of the same
streams with one filter each, which is what a batch costs anyway; the ratio is below 1 and says how much comes
on top. Chains are not cut: every other one stands on the other node.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from levelwind.bench.result import Figure, Result, Settings, compared
from levelwind.bench.runtime_worlds import batch_seconds, steady, watch
from levelwind.testing.sides import answer, network_of, ours

NAME = "wide"
MODULE = "levelwind.bench.wide"
LIMIT_S = 2.0
CHAINS, STREAMS, LENGTH = 250, 20, 4
ROWS = 5
BATCHES, FULL_BATCHES = 20, 60
ROUNDS = 1


def document(
    chains: int, *, length: int = LENGTH, streams: int = STREAMS, rows: int = ROWS
) -> dict[str, Any]:
    """Chains of up to four steps, one stream after the other."""
    operators: list[dict[str, Any]] = []
    for chain in range(chains):
        steps = _chain(chain, f"s{chain % streams}")[:length]
        operators += [{**step, "cost": "1us", "selectivity": 0.9} for step in steps]
    return {
        "name": NAME,
        "streams": {
            f"s{number}": {
                "schema": {"ts": "timestamp", "key": "string", "value": "int"},
                "time": "ts",
                "rate": rows,
                "source": {
                    "format": "generator", "shape": "steady", "rate": rows, "speed": "max", "batch": "1s",
                    "seed": number, "columns": {"value": {"kind": "uniform", "low": 0, "high": 999}},
                },
            }
            for number in range(streams)
        },
        "operators": operators,
    }  # fmt: skip


def _chain(number: int, stream: str) -> list[dict[str, Any]]:
    high, scaled, kept, counted = (f"c{number}_{what}" for what in ("high", "scaled", "kept", "counted"))
    return [
        {"name": high, "kind": "filter", "input": stream, "where": f"value >= {number % 100}"},
        {"name": scaled, "kind": "map", "input": high, "select": {"key": "key", "value": "value * 2"}},
        {"name": kept, "kind": "filter", "input": scaled, "where": f"value < {1990 - number % 100}"},
        {
            "name": counted, "kind": "aggregate", "input": kept, "by": ["key"], "window": {"size": "5s"},
            "compute": {"n": "count(*)"},
        },
    ]  # fmt: skip


def placement(network: dict[str, Any]) -> dict[str, str]:
    """Whole chains, every other one of a stream on the other node."""
    return {
        operator["name"]: f"n{1 + int(operator['name'][1:].partition('_')[0]) // STREAMS % 2}"
        for operator in network["operators"]
    }


def levelwind_side(chains: int, length: int, batches: int) -> dict[str, Any]:
    """One run."""
    written = document(chains, length=length)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        seen = watch(network_of(written), folder=Path(folder), placement=placement(written), batches=batches)
        commits = sorted(Path(folder, "checkpoint", "commits").iterdir())
        commit_bytes = commits[-1].stat().st_size
    return {
        "batch_s": batch_seconds(seen),
        "step_s": [each.step.wall_s for each in seen],
        "run_s": [each.step.run_s for each in seen],
        "commit_s": [each.step.commit_s for each in seen],
        "node_cpu_s": [sum(node.cpu_s for node in each.step.reports) for each in seen],
        "box_cpu_s": [sum(box.cpu_s for _, box in each.step.boxes) for each in seen],
        "rows": [sum(each.step.seen.values()) for each in seen],
        "commit_bytes": commit_bytes,
    }


def run(settings: Settings, *, chains: int = CHAINS, batches: int | None = None) -> Result:
    """Wide and thin in turn."""
    batches = batches or (FULL_BATCHES if settings.full else BATCHES)
    sizes = {"wide": (chains, LENGTH), "thin": (STREAMS, 1)}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in sizes}
    for number in range(settings.rounds(ROUNDS)):
        for name in reversed(sizes) if number % 2 else sizes:
            settings.step(f"{name}, round {number + 1}")
            count, length = sizes[name]
            found[name].append(ours(MODULE, "ours", chains=count, length=length, batches=batches))
    wide, thin = ([s for one in found[name] for s in steady(one["batch_s"])] for name in sizes)
    operators = chains * LENGTH
    extra_ms = 1e3 * (median(wide) - median(thin)) / (operators - STREAMS)
    last = found["wide"][-1]
    parts = {name: median(steady(last[name])) for name in ("run_s", "commit_s", "node_cpu_s", "box_cpu_s")}
    return compared(
        NAME,
        wide,
        thin,
        labels=(f"{operators:,} operators on {STREAMS} streams, a batch", "one filter per stream"),
        limit=LIMIT_S,
        figures=[
            Figure(label="each further operator", value=extra_ms, unit="ms"),
            Figure(
                label="CPU of both nodes' tasks and the readers, a batch", value=parts["node_cpu_s"], unit="s"
            ),
            Figure(label="CPU of the operators themselves, a batch", value=parts["box_cpu_s"], unit="s"),
            Figure(label="commit, a batch", value=parts["commit_s"], unit="s"),
        ],
        notes=(
            f"about {median(last['rows']):g} rows a batch from {STREAMS} made-up streams; none has an output",
            f"a commit is {last['commit_bytes'] / 1e3:,.0f} kB",
        ),
        details=found,
    )


if __name__ == "__main__":
    answer({"ours": levelwind_side})
