"""What 40 queries that share a beginning cost in CPU, against the beginning once and 40 ends.

Every query filters the same packets, computes with them, and ends in a filter of its own. The beginning is
written out in each query, under other names and in other spelling: nothing but its meaning says that it is
the same. Measured is the CPU of the operators. The baseline is the network that an expert would write by
hand, with the beginning once; beside it stands the same network without reuse.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from levelwind.bench.result import Figure, Result, Settings, compared
from levelwind.bench.runtime_worlds import steady, watch
from levelwind.testing.sides import answer, network_of, ours

NAME = "reuse"
MODULE = "levelwind.bench.reuse"
QUERIES, ROWS, BATCHES, ROUNDS = 40, 20_000, 20, 3
MOST = 1.2
# One condition, one computation, written in two ways each.
KEPT = ("value >= 100 AND key <> 'k0'", "'k0' != key and (100 <= `value`)")
SCALED = ("sqrt(value * 2.0) + length(upper(key))", "SQRT( value*2.0 ) + LENGTH(UPPER(key))")


def document(queries: int, *, shared: bool) -> dict[str, Any]:
    """Queries of three operators; with ``shared`` the first two are written once."""
    operators: list[dict[str, Any]] = []
    for q in range(queries):
        first, second = ("kept", "scaled") if shared else (f"kept{q}", f"scaled{q}")
        if q == 0 or not shared:
            operators += [
                {"name": first, "kind": "filter", "input": "packets", "where": KEPT[q % 2]},
                {"name": second, "kind": "map", "input": first, "select": {"key": "key", "x": SCALED[q % 2]}},
            ]
        end = {
            "name": f"end{q}",
            "kind": "filter",
            "input": second,
            "where": f"x < {10 + q % 5} and key = 'k{q}'",
        }
        operators.append(end)
    return {
        "name": NAME,
        "streams": {
            "packets": {
                "schema": {"ts": "timestamp", "key": "string", "value": "int"},
                "time": "ts",
                "rate": ROWS,
                "source": {
                    "format": "generator", "shape": "steady", "rate": ROWS, "speed": "max", "batch": "1s",
                    "seed": 1, "columns": {"value": {"kind": "uniform", "low": 0, "high": 999}},
                },
            }
        },
        "operators": [{**each, "cost": "1us", "selectivity": 0.9} for each in operators],
        "outputs": {f"out{q}": {"input": f"end{q}"} for q in range(queries)},
    }  # fmt: skip


def levelwind_side(queries: int, shared: bool, reuse: bool, batches: int) -> dict[str, Any]:
    """One run: CPU of the operators by batch."""
    network = network_of(document(queries, shared=shared))
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        seen = watch(network, folder=Path(folder), nodes=1, batches=batches, reuse=reuse)
    return {
        "cpu_s": [sum(box.cpu_s for _, box in each.step.boxes) for each in seen],
        "operators": len(seen[-1].step.program.layout.boxes),
        "rows_out": sum(entry.rows for each in seen for entry in each.step.commit.outbox),
    }


def run(settings: Settings, *, queries: int = QUERIES, batches: int = BATCHES) -> Result:
    """All three in turn."""
    sides = {
        "reuse": {"shared": False, "reuse": True},
        "by hand": {"shared": True, "reuse": False},
        "apart": {"shared": False, "reuse": False},
    }
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    for number in range(settings.rounds(ROUNDS)):
        for name in reversed(sides) if number % 2 else sides:
            settings.step(f"{name}, round {number + 1}")
            found[name].append(ours(MODULE, "ours", queries=queries, batches=batches, **sides[name]))
    cpu = {name: [median(steady(one["cpu_s"])) for one in rounds] for name, rounds in found.items()}
    ratio = median(a / b for a, b in zip(cpu["reuse"], cpu["by hand"], strict=True))
    boxes = {name: rounds[0]["operators"] for name, rounds in found.items()}
    return compared(
        NAME,
        cpu["reuse"],
        cpu["by hand"],
        labels=(f"{queries} queries with one beginning, CPU a batch", "the beginning written once, by hand"),
        figures=(
            Figure(label="reuse over by hand", value=ratio, unit="times", limit=MOST),
            Figure(label="without reuse", value=median(cpu["apart"]), unit="s"),
        ),
        notes=(
            f"operators that run: {boxes['reuse']} with reuse, {boxes['by hand']} by hand, "
            f"{boxes['apart']} without",
        ),
        details=found,
    )


if __name__ == "__main__":
    answer({"ours": levelwind_side})
