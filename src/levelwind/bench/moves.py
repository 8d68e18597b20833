"""What a move costs: a batch with moves against those around it, and the dissertation's figures beside it.

Figures 2.5 to 2.7 of seed 000 show Borealis: 60 ms, and 80 ms more for each stateless operator; a time that
grows with the open windows of an aggregate; the sum of the single times for aggregates that move together.
Ours moves between two batches, from the last commit. What it costs is read off twice:

- *extra*: how much longer the batch with the move takes than those around it;
- *read*: milliseconds that the new node needs for each megabyte of state that it reads, as the move's own
  record says. What it still has from before is not read again.

The two nodes are workers of a cluster on this machine, each with processes and a memory of its own. Every
aggregate moves once, to where nobody has seen its state; filters go there and back. Operators read the
streams themselves, so that a move changes no hop. Those that are not moved must not notice: their CPU time in
batches with moves, over that in the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.runtime_worlds import (
    WARM_UP,
    Line,
    Seen,
    batch_seconds,
    file_source,
    line_through,
    watch,
    write_files,
)
from levelwind.spark.api import ScriptedMove
from levelwind.spark.session import start_session
from levelwind.testing.loopback import LoopbackCluster
from levelwind.testing.sides import answer, network_of, ours

NAME = "moves"
MODULE = "levelwind.bench.moves"
STATELESS = (1, 4, 16, 64)
SIZES = (30_000, 100_000, 300_000, 1_000_000)
TOGETHER = (1, 4, 8, 16)
TOGETHER_WINDOWS = 10_000
# Of each set of aggregates: one slow batch must not tilt a line.
COPIES = 3
ROWS = 1_000
ONE = {"stateless": "stateless operator", "size": "window", "together": "aggregate of 10,000 windows"}
# A batch with moves, then quiet ones.
GAP = 3
ROUNDS, FULL_ROUNDS = 2, 8
# The dissertation's figure 2.5: what a move takes, and what each stateless operator adds.
THEIR_START_MS, THEIR_EACH_MS = 60.0, 80.0
START_US = 1_767_225_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Operators that read one stream; ``sizes`` has the keys of each aggregate's own column, 0: a filter.

    ``acts`` are the sets of operators that are moved together, each under the number it stands for; they
    are moved ``back``, too, or once and for all.
    """

    sizes: tuple[int, ...]
    acts: tuple[tuple[int, tuple[int, ...]], ...]
    back: bool = False

    @property
    def names(self) -> list[str]:
        """The operators in order."""
        return [f"o{number}" for number in range(len(self.sizes))]

    def document(self, folder: Path) -> dict[str, Any]:
        """As a network file. Aggregates by different columns have nothing to share."""
        schema = {"ts": "timestamp", "value": "double"} | {
            f"k{number}": "bigint" for number, size in enumerate(self.sizes) if size
        }
        operators = []
        for number, size in enumerate(self.sizes):
            operator: dict[str, Any] = {
                "name": f"o{number}",
                "input": "rows",
                "cost": "1us",
                "selectivity": 0.1,
            }
            if size:
                operator |= {
                    "kind": "aggregate", "by": [f"k{number}"], "window": {"size": "1h"},
                    "compute": {"n": "count(*)", "mean": "avg(value)"},
                }  # fmt: skip
            else:
                operator |= {"kind": "filter", "where": f"value < {number + 1} / 100.0"}
            operators.append(operator)
        stream = {"schema": schema, "time": "ts", "source": file_source(folder)}
        return {"name": NAME, "streams": {"rows": stream}, "operators": operators}

    def tables(self, batches: int) -> Iterator[pa.Table]:
        """First a batch with all keys, then small ones."""
        for number in range(batches):
            count = max(ROWS, *self.sizes) if number == 0 else ROWS
            rows = np.arange(count) + number * ROWS
            times = START_US + number * 1_000_000 + np.arange(count) * 1_000_000 // count
            columns: dict[str, Any] = {
                "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
                "value": pa.array((rows % 1_000) / 1_000.0),
            }
            columns |= {f"k{n}": pa.array(rows % size) for n, size in enumerate(self.sizes) if size}
            yield pa.table(columns)

    def schedule(self, rounds: int) -> list[tuple[int, int, str]]:
        """(batch, number of the act, node moved to); ``rounds`` is for acts that go back."""
        there = [(number, "n2") for number in range(len(self.acts))]
        several = [(n, node) for n, _ in there for node in ("n2", "n1")] * rounds if self.back else there
        return [(WARM_UP + GAP * place, number, node) for place, (number, node) in enumerate(several)]


def _disjoint(counts: Sequence[int]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Sets of so many operators, none in two of them."""
    ends = [sum(counts[: place + 1]) for place in range(len(counts))]
    return tuple((count, tuple(range(end - count, end))) for count, end in zip(counts, ends, strict=True))


WORLDS = {
    "stateless": World(
        sizes=(0,) * max(STATELESS),
        acts=tuple((count, tuple(range(count))) for count in STATELESS),
        back=True,
    ),
    "size": World(
        sizes=SIZES * COPIES, acts=tuple((size, (number,)) for number, size in enumerate(SIZES * COPIES))
    ),
    "together": World(
        sizes=(TOGETHER_WINDOWS,) * (sum(TOGETHER) * COPIES), acts=_disjoint(TOGETHER * COPIES)
    ),
}


def levelwind_side(world: str, rounds: int) -> dict[str, Any]:
    """One run in which sets of operators go to the other node and back."""
    chosen = WORLDS[world]
    schedule = chosen.schedule(rounds)
    batches = schedule[-1][0] + GAP
    scripted = [
        ScriptedMove(step=at, operators=tuple(f"o{each}" for each in chosen.acts[number][1]), target=node)
        for at, number, node in schedule
    ]
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, LoopbackCluster(workers=2) as cluster:
        data = Path(folder, "rows")
        write_files(data, chosen.tables(batches))
        seen = watch(
            network_of(chosen.document(data)),
            folder=Path(folder, "run"),
            nodes=cluster.nodes(),
            session=start_session(cluster.master, cluster.configuration, log=Path(folder, "spark.log")),
            placement=dict.fromkeys(chosen.names, "n1"),
            moves=scripted,
            batches=batches,
        )
    taken = [float("nan"), *batch_seconds(seen)]
    return {
        "acts": [_act(seen, taken, at, chosen.acts[number]) for at, number, _ in schedule],
        "batch_s": taken[1:],
        "reloads": _reloads(seen),
    }


def _act(
    seen: Sequence[Seen], taken: Sequence[float], at: int, act: tuple[int, tuple[int, ...]]
) -> dict[str, Any]:
    """What one batch with moves took, beside the quiet ones around it."""
    step = seen[at].step
    quiet = [each for each in (at - 1, *range(at + 1, at + GAP)) if not seen[each].step.commit.moves]
    records = step.commit.moves
    return {
        "of": act[0],
        "moved": len(records),
        "bytes": sum(record.bytes for record in records),
        "read_ms": sum(record.milliseconds for record in records),
        "state_bytes": sum(box.state_bytes for _, box in step.boxes if box.box in act[1]),
        "batch_s": taken[at],
        "quiet_s": median(taken[each] for each in quiet),
        "others_cpu_s": _others_cpu(seen[at], act[1]),
        "others_quiet_cpu_s": median(_others_cpu(seen[each], act[1]) for each in quiet),
    }


def _others_cpu(seen: Seen, moved: Sequence[int]) -> float:
    """CPU seconds of the operators that were not moved."""
    return sum(box.cpu_s for _, box in seen.step.boxes if box.box not in moved)


def _reloads(seen: Sequence[Seen]) -> dict[str, int]:
    """How often state was read although its operator had not moved: by another process of the same node."""
    again = steps = 0
    for before, after in zip(seen[WARM_UP:], seen[WARM_UP + 1 :], strict=False):
        moved = {record.operator for record in after.step.commit.moves}
        names = [box.name for box in after.step.program.layout.boxes]
        for _, box in after.step.boxes:
            if names[box.box] not in moved and before.step.commit.boxes[names[box.box]].has_state:
                steps += 1
                again += bool(box.loaded_bytes)
    return {"again": again, "of": steps}


def run(settings: Settings, *, rounds: int | None = None, worlds: Sequence[str] = tuple(WORLDS)) -> Result:
    """All three experiments."""
    rounds = rounds or settings.rounds(FULL_ROUNDS if settings.full else ROUNDS)
    found: dict[str, dict[str, Any]] = {}
    for world in worlds:
        settings.step(f"{world}, {rounds} rounds")
        found[world] = ours(MODULE, "ours", world=world, rounds=rounds)
    return _result(found)


def extra_ms(acts: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """(number, milliseconds that the batch with the move took longer)."""
    return [(act["of"], 1e3 * (act["batch_s"] - act["quiet_s"])) for act in acts]


def reads(acts: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """(megabytes, milliseconds) of the moves for which state had to be read."""
    return [(act["bytes"] / 1e6, act["read_ms"]) for act in acts if act["bytes"]]


def fits(world: str, acts: Sequence[Mapping[str, Any]]) -> dict[str, Line]:
    """The lines through what one experiment found, by name; those with a single place are left out."""
    found = {"extra": _medians(extra_ms(acts))}
    if world != "stateless":
        found["state"] = _medians([(act["of"], act["state_bytes"]) for act in acts])
        found["read"] = reads(acts)
    return {what: line_through(points) for what, points in found.items() if len({at for at, _ in points}) > 1}


def _result(found: Mapping[str, Mapping[str, Any]]) -> Result:
    lines = {
        f"{world}, {what}": line
        for world, one in found.items()
        for what, line in fits(world, one["acts"]).items()
    }
    largest = [act for act in found["stateless"]["acts"] if act["of"] == max(STATELESS)]
    batch, quiet = (median(act[name] for act in largest) for name in ("batch_s", "quiet_s"))
    every = [act for world in found.values() for act in world["acts"] if act["others_quiet_cpu_s"]]
    return Result(
        name=NAME,
        ours=Figure(label=f"a batch with {max(STATELESS)} stateless operators moved", value=batch, unit="s"),
        baseline=Figure(label="the batches around it", value=quiet, unit="s"),
        ratio=quiet / batch,
        spread=spread_of([act["quiet_s"] / act["batch_s"] for act in largest]),
        figures=[
            *(_figure(name, line) for name, line in lines.items()),
            Figure(
                label="CPU of operators not moved, with a move over without",
                value=median(act["others_cpu_s"] / act["others_quiet_cpu_s"] for act in every),
                unit="times",
            ),
        ],
        notes=(*_notes(lines, found),),
        details={"lines": {name: line.as_dict() for name, line in lines.items()}, **found},
    )


def _figure(name: str, line: Line) -> Figure:
    """What one more of what was moved adds."""
    world, _, what = name.partition(", ")
    if what == "read":
        return Figure(label=f"{name}, each MB of state", value=line.slope, unit="ms")
    scale, of = (1_000, "1,000 windows") if world == "size" else (1, ONE[world])
    if what == "state":
        return Figure(label=f"state of {of}", value=line.slope * scale / 1e3, unit="kB")
    return Figure(label=f"{what} for each {of}", value=line.slope * scale, unit="ms")


def _notes(lines: Mapping[str, Line], found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, line in lines.items():
        world, _, what = name.partition(", ")
        unit = "bytes" if what == "state" else "ms"
        of = "MB" if what == "read" else ONE[world]
        yield f"{name}: {line.start:.3g} {unit} + {line.slope:.3g} {unit} per {of}, R² {line.r2:.3f}"
    yield (
        f"the dissertation has {THEIR_START_MS:g} ms + {THEIR_EACH_MS:g} ms per stateless operator: Borealis "
        "on its machines and over its network, ours within one machine"
    )
    for world, one in found.items():
        again, acts = one["reloads"], one["acts"]
        whole = sum(act["state_bytes"] for act in acts)
        if whole:
            yield (
                f"{world}: of the state moved {sum(act['bytes'] for act in acts) / whole:.0%} was read; "
                f"without a move, state was read {again['again']} of {again['of']} times"
            )


def _medians(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The median at each place: one slow batch does not tilt the line."""
    places = sorted({at for at, _ in points})
    return [(at, median(found for place, found in points if place == at)) for at in places]


if __name__ == "__main__":
    answer({"ours": levelwind_side})
