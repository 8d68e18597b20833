"""A three-way band join spread over instances, against one instance and against plain Structured Streaming.

Three streams of points; a group is three rows within 5 s of each other, neighbours at most a band apart in
every dimension. A batch is a file of each stream that spans a second. Spark refuses such a join without an
equality. The best a user can do in plain Structured Streaming is to cut space into buckets as wide as the
band, send rows of two streams to three buckets in each dimension, join by bucket, and filter. All sides read
the same files, and must find as many groups: else the benchmark fails.

A narrow band in one dimension gives a row next to no work: that shows what spreading costs where nothing is
to be gained. A wide band in eight dimensions leaves much to compare whatever is bucketed. Two cores have
little to give to four instances. So that is run on a cluster of four workers too, each capped at a part of a
core once warm: there one instance has a quarter of what four have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from levelwind.bench.join_sides import CAP, INSTANCES, MODULE, SHAPES, STREAMS, WARM, WORKERS, Shape
from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.runtime_worlds import steady, write_files
from levelwind.testing.sides import ours, side

NAME = "join"
BATCHES, FULL_BATCHES = 16, 40
ROUNDS = 3
PLAIN = "plain"
# Beside aligned routing with segments by hand, on so many instances: the other way, and what is chosen.
OTHERS, SPREAD_OVER = ("ctr", "auto"), 2


def run(settings: Settings) -> Result:
    """Each number of instances and the plain query in turn, on two cores and, once, on the capped cluster."""
    batches = FULL_BATCHES if settings.full else BATCHES
    rounds = settings.rounds(ROUNDS)
    free = {
        name: _Table(f"{name}, two cores", SHAPES[name], others=OTHERS if name == "wide" else ())
        for name in SHAPES
    }
    capped = _Table("wide, capped", SHAPES["wide"], warm_up=WARM)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        settings.step("files")
        for shape in SHAPES:
            for number, name in enumerate(STREAMS):
                made = SHAPES[shape].tables(batches, 10 * settings.seed + number)
                write_files(Path(folder, shape, name), made)
        for number in range(rounds):
            for shape, table in free.items():
                settings.step(f"{table.name}, round {number + 1} of {rounds}")
                asked: dict[str, Any] = {"shape": shape, "data": str(Path(folder, shape)), "batches": batches}
                # Every other round in reverse order: a slow spell of the machine hits all of them.
                for name in reversed(table.names) if number % 2 else table.names:
                    table.add(name, _side(name, asked))
            if number == 0:
                settings.step(capped.name)
                asked = {"shape": "wide", "data": str(Path(folder, "wide")), "batches": batches}
                for name, one in ours(MODULE, "capped", **asked).items():
                    capped.add(name, one)
                capped.add(PLAIN, side(MODULE, "plain capped", **asked))
    return summary([*free.values(), capped])


def _side(name: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    if name == PLAIN:
        return side(MODULE, "plain", **asked)
    if name in OTHERS:
        return ours(MODULE, "spread", **asked, instances=SPREAD_OVER, method=name)
    return ours(MODULE, "spread", **asked, instances=int(name))


class _Table:
    """What was measured on one cluster: batches once warm, by contender."""

    def __init__(
        self, name: str, shape: Shape, *, warm_up: int | None = None, others: Sequence[str] = ()
    ) -> None:
        self.name, self.warm_up = name, warm_up
        self.read = shape.rows * len(STREAMS)
        self.ours = (*map(str, INSTANCES), *others)
        self.names = (*self.ours, PLAIN)
        self.runs: dict[str, list[Mapping[str, Any]]] = {name: [] for name in self.names}

    def check(self) -> None:
        """All sides that came to their end found as many groups; else one loses rows, or doubles them."""
        found = {
            _label(name): sorted({one["groups"] for one in runs if not one.get("died")})
            for name, runs in self.runs.items()
        }
        if len({count for counts in found.values() for count in counts}) > 1:
            message = f"bench {NAME}, {self.name}: sides do not find the same groups: {found}"
            raise RuntimeError(message)

    def add(self, name: str, run: Mapping[str, Any]) -> None:
        self.runs[name].append(run)

    def batches(self, name: str) -> list[float]:
        return [s for one in self.runs[name] for s in self._warm(one.get("batch_s", []))]

    def speed(self, name: str) -> float:
        """Rows per second; none where nothing came of it."""
        values = self.batches(name)
        return self.read / median(values) if values else 0.0

    @property
    def best(self) -> str:
        """The number of instances that is fastest."""
        return max(map(str, INSTANCES), key=self.speed)

    def figures(self) -> list[Figure]:
        speeds = [
            Figure(label=f"{self.name}, {_label(name)}", value=self.speed(name), unit="rows/s")
            for name in self.names
        ]
        gained = self.speed(self.best) / self.speed("1")
        label = f"{self.name}, {_label(self.best)} over one"
        return [*speeds, Figure(label=label, value=gained, unit="times")]

    def notes(self) -> list[str]:
        groups = {_label(name): [one.get("groups") for one in self.runs[name]] for name in self.names}
        lines = [
            f"{self.name}: batches of {self.read:,} rows, {len(self.batches('1'))} counted; groups {groups}"
        ]
        for i in self.ours:
            cpu = [median(self._warm(each)) for each in self.runs[i][0]["node_cpu_s"]]
            shown = ", ".join(f"{each:.2f}" for each in cpu)
            lines.append(f"{self.name}, {_label(i)}: CPU seconds of the join a batch by node {shown}")
        died = [one["died"] for one in self.runs[PLAIN] if one.get("died")]
        return [*lines, *(f"{self.name}, the plain query: {text}" for text in died)]

    def _warm(self, values: Sequence[float]) -> list[float]:
        return steady(values) if self.warm_up is None else list(values[self.warm_up :])


def summary(tables: Sequence[_Table]) -> Result:
    """Speeds of all; the wide band on two cores stands first. Sides that disagree fail."""
    for table in tables:
        table.check()
    _, main, capped = tables
    mine, plain = main.batches(main.best), main.batches(PLAIN)
    all_capped = all(one.get("capped") for runs in capped.runs.values() for one in runs)
    caps = f"capped at {CAP} core each" if all_capped else "NOT capped: this machine does not allow it"
    return Result(
        name=NAME,
        ours=Figure(label=f"wide, {_label(main.best)}", value=main.speed(main.best), unit="rows/s"),
        baseline=Figure(label="buckets by hand in a plain query", value=main.speed(PLAIN), unit="rows/s"),
        ratio=median(plain) / median(mine) if plain else float("inf"),
        spread=spread_of([b / a for a, b in zip(mine, plain, strict=False)]) if plain else 0.0,
        figures=[figure for table in tables for figure in table.figures()],
        notes=[*(line for table in tables for line in table.notes()), f"{WORKERS} workers {caps}"],
        details={table.name: table.runs for table in tables},
    )


def _label(name: str) -> str:
    if name in OTHERS:
        return f"{SPREAD_OVER} instances, {name}"
    return {PLAIN: "plain query", "1": "1 instance"}.get(name, f"{name} instances")
