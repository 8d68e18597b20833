"""``levelwind demo``: the main job, on this machine, in under two minutes."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.errors import DONE
from levelwind.cli.figures import number, plain_table
from levelwind.cli.live import Watcher
from levelwind.cli.options import FormatOption
from levelwind.cli.output import answer
from levelwind.errors import input_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from levelwind.spark.demo import Outcome

Seconds = Annotated[
    int, typer.Option("--seconds", min=8, metavar="N", help="How long each placement gets the packets.")
]
OutDirectory = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Where results go; a new temporary directory if unstated."),
]
MOST_NODES = 8


def demo(seconds: Seconds = 25, out: OutDirectory = None, format: FormatOption = None) -> int:
    """Run 160 windowed aggregates on bursty traffic, placed in two ways, on embedded Spark.

    The packets are made up by a seeded generator with self-similar bursts: no trace of real packets comes
    with the product, since none was found whose terms allow it. They are replayed at 60 times their own
    speed. Both placements get the same packets and the same nodes, whose share of a core is fitted to this
    machine.

    Example:
      levelwind demo
    """
    directory = _directory(out)
    from levelwind.spark.demo import Watch
    from levelwind.spark.demo import demo as carry_out

    nodes = max(2, min(MOST_NODES, len(os.sched_getaffinity(0))))
    _say("traffic monitoring: 16 aggregates on each of 10 sub-streams = 160 operators, one Spark query")
    _say("packets from a seeded generator with self-similar bursts, replayed at 60 times their own speed")
    with ExitStack() as stack:
        watcher: list[Watcher] = []

        def follow(begun: Any, planner: str) -> None:
            stack.close()
            watcher[:] = [stack.enter_context(Watcher()).watch(begun)]

        def step(done: Any) -> None:
            if watcher:
                watcher[0].on_step(done)

        def say(text: str) -> None:
            stack.close()
            watcher.clear()
            _say(text)

        found = carry_out(
            directory, nodes=nodes, seconds=seconds, watch=Watch(say=say, follow=follow, step=step)
        )
    answer(format, lambda: [outcome.as_dict() for outcome in found], lambda: _text(found, nodes))
    return DONE


def _directory(out: Path | None) -> Path:
    if out is None:
        return Path(tempfile.mkdtemp(prefix="levelwind-demo-"))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        rule = "must be a directory that is new or empty"
        raise input_error(rule, key="--out", value=str(out))
    return out.absolute()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _text(found: Sequence[Outcome], nodes: int) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    table = plain_table()
    table.add_column("")
    for outcome in found:
        table.add_column(outcome.planner, justify="right")
    rows = {
        "feasible set, of the ideal": [number(o.feasible_ratio) for o in found],
        "largest node load, by the model": [f"{o.expected_load:.0%}" for o in found],
        "largest node load, measured": [f"{o.largest_load:.0%}" for o in found],
        "seconds with a node overloaded": [f"{o.overloaded_seconds} of {o.seconds}" for o in found],
        "batch time p50": [f"{o.batch_p50_s:.2f} s" for o in found],
        "batch time p99": [f"{o.batch_p99_s:.2f} s" for o in found],
        "largest lag": [f"{o.largest_lag_s:.2f} s" for o in found],
        "packets": [f"{o.rows:,}" for o in found],
        "result rows": [f"{o.results:,}" for o in found],
    }
    for name, cells in rows.items():
        table.add_row(name, *cells)
    lines = [
        f"What placement bought: {nodes} nodes, 160 operators, the same packets for both.",
        "",
        "A node is overloaded above 100 %: its operators ask for more than its share of a core.",
        *(f"results of {o.planner}: {o.directory}/outputs" for o in found),
    ]
    return Group(Text(lines[0]), Text(), table, Text(), *(Text(line, overflow="fold") for line in lines[2:]))
