"""What the commands on a run share: finding its directory, waiting for it, and the table of how it fares."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from levelwind.cli.errors import DONE, NO
from levelwind.cli.figures import number, plain_table
from levelwind.cli.options import FormatOption
from levelwind.cli.output import answer, note
from levelwind.errors import input_error

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from levelwind.runtime.changes import Change
    from levelwind.runtime.rundir import Command, RunDirectory

RunArgument = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="The directory of the run; run names it first.", show_default=False),
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.0, metavar="SECONDS", help="How long to wait for it.")
]
POLL_S = 0.1
# Nodes that are drawn one by one; of more, the fullest.
MOST_NODES = 20
BAR = 20


def find_run(path: Path) -> RunDirectory:
    """The directory of a run, or bad input."""
    from levelwind.runtime.rundir import RunDirectory

    return RunDirectory.find(path)


def find_running(path: Path) -> RunDirectory:
    """The directory of a run that is at work, or bad input."""
    found = find_run(path)
    if not found.is_running():
        state = found.status().get("state", "not started")
        rule = "must be a run that is at work"
        raise input_error(rule, key="RUN", value=f"{path}: {state}")
    return found


def wait_until(done: Callable[[], bool], timeout_s: float) -> bool:
    """Look again and again until it is done or the time is over; whether it is done."""
    until = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() >= until:
            return False
        time.sleep(POLL_S)
    return True


def new_id() -> str:
    """A name for a command, by which the run's answer to it is known."""
    return uuid4().hex


def change_run(found: RunDirectory, asked: Command, timeout_s: float, format: FormatOption) -> int:
    """Ask for a change of the network, wait until the run has made it, and say what it came to."""
    before = len(found.changes())
    waiting = found.ask(asked)

    def answers() -> list[Change]:
        return [change for change in found.changes()[before:] if change.id == asked.id]

    wait_until(lambda: bool(answers()) or not found.is_running(), timeout_s)
    made = answers()
    if not made:
        waiting.unlink(missing_ok=True)
        note("not done yet; it waits for the next batch" if found.is_running() else "the run ended before")
        return NO
    if made[0].refused:
        raise input_error(made[0].refused, key="RUN")
    change = made[0]
    told = {
        "run": str(found.path.absolute()),
        "step": change.step,
        "outputs": list(change.outputs),
        "operators": list(change.operators),
    }
    answer(format, lambda: told, lambda: change_line(told | {"command": change.command}))
    return DONE


def change_line(change: Mapping[str, Any]) -> str:
    """A change of the network in a line."""
    if change["command"] == "windows":
        return f"new windows for {', '.join(change['operators'])} at batch {change['step']}"
    done = "added" if change["command"] == "add" else "removed"
    return f"{done} {', '.join(change['outputs']) or 'no output'} at batch {change['step']}"


def shown_path(path: Path) -> str:
    """A path as short as it can be said here."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def run_view(status: Mapping[str, Any], *, name: str, directory: Path) -> RenderableType:
    """How a run fares: its nodes with their loads, then figures of the whole."""
    from rich.console import Group
    from rich.text import Text

    steps = status.get("steps", 0)
    head = f"{name}: {status.get('state', 'unknown')}, {steps} batch{'' if steps == 1 else 'es'}"
    parts: list[RenderableType] = [Text(head, overflow="fold")]
    if status.get("nodes"):
        parts += [Text(), node_table(status["nodes"]), Text()]
    if status.get("failure"):
        parts.append(Text(status["failure"], overflow="fold"))
    parts += [Text(line, overflow="fold") for line in figure_lines(status)]
    if status.get("manager"):
        parts.append(Text(manager_line(status["manager"]), overflow="fold"))
    parts += [Text(line, overflow="fold") for line in spread_lines(status)]
    parts += [Text(change_line(change), overflow="fold") for change in status.get("changes") or ()]
    parts += [Text(f"alarm: {text}", overflow="fold") for text in status.get("alarms") or ()]
    parts.append(Text(f"run directory {shown_path(directory)}", overflow="fold"))
    return Group(*parts)


def node_table(nodes: Mapping[str, Mapping[str, Any]]) -> Table:
    """The nodes with their loads; of many, the fullest."""
    table = plain_table()
    table.add_column("node", overflow="fold")
    table.add_column("load")
    table.add_column("", justify="right")
    table.add_column("operators", justify="right")
    table.add_column("rows/s", justify="right")
    names = list(nodes)
    if len(names) > MOST_NODES:
        names = sorted(names, key=lambda name: -nodes[name]["load"])[:MOST_NODES]
    for name in names:
        node = nodes[name]
        figures = (f"{node['load']:.0%}", str(node["operators"]), grouped(node["rows_per_second"]))
        table.add_row(name, load_bar(node["load"]), *figures)
    if len(nodes) > MOST_NODES:
        rest = [node for name, node in nodes.items() if name not in names]
        mean = sum(node["load"] for node in rest) / len(rest)
        count = sum(node["operators"] for node in rest)
        rows = sum(node["rows_per_second"] for node in rest)
        table.add_row(f"{len(rest)} more", load_bar(mean), f"{mean:.0%}", str(count), grouped(rows))
    return table


def load_bar(load: float) -> Text:
    """A load as a bar, in the colour of its danger."""
    from rich.text import Text

    full = min(BAR, round(load * BAR))
    colour = "green" if load < 0.7 else "yellow" if load < 0.9 else "red"
    return Text.assemble(("█" * full, colour), ("·" * (BAR - full), "dim"))


def figure_lines(status: Mapping[str, Any]) -> list[str]:
    """Rows, batch times, event time and the like, in a few short lines."""
    batch = status.get("batch_seconds") or {}
    lines = []
    if batch.get("last") is not None:
        times = ", ".join(f"{name} {number(batch.get(name))}" for name in ("p50", "p99"))
        lines.append(f"batch {number(batch['last'])} s ({times})")
    rate = grouped(status.get("rows_per_second", 0))
    lines.append(f"rows {grouped(status.get('rows', 0))}, {rate}/s; {time_reached(status)}")
    out = ", ".join(f"{name} {grouped(rows)}" for name, rows in (status.get("outputs") or {}).items())
    if len(out) > 200:
        out = grouped(sum(status["outputs"].values()))
    counts = f"dead letters {grouped(status.get('dead_letters', 0))}, moves {status.get('moves', 0)}"
    if status.get("shed"):
        counts += f", rows shed {grouped(status['shed'])}"
    lines.append(f"rows out: {out or 'none'}; {counts}")
    if status.get("shares"):
        held = ", ".join(f"{name} {share:.0%}" for name, share in status["shares"].items())
        lines.append(f"overload: take only a share of their rows: {held}")
    return lines


def manager_line(spent: Mapping[str, float | None]) -> str:
    """What the manager itself spends. Its rates are not known before its second report."""
    cpu_s, came, went = (spent.get(key) for key in ("cpu_s", "bytes_in", "bytes_out"))
    held = f"{grouped((spent.get('memory_bytes') or 0.0) / 1000)} kB held per node"
    if cpu_s is None or came is None or went is None:
        return f"manager: {held}"
    rates = f"{grouped(1e6 * cpu_s)} µs of CPU, {grouped(came)} bytes in, {grouped(went)} out"
    return f"manager: per node and second {rates}; {held}; longest event {number(spent['longest_ms'])} ms"


def spread_lines(status: Mapping[str, Any]) -> list[str]:
    """How each spread join routes its rows, and why."""
    return [f"{name}: {told['reason']}" for name, told in (status.get("spread") or {}).items()]


def time_reached(status: Mapping[str, Any]) -> str:
    """The lag of a live source; of a replay, the event time that it has come to."""
    lag = status.get("lag_seconds")
    if lag is not None:
        return f"lag {number(max(0.0, lag))} s"
    reached = status.get("event_time")
    return f"event time {reached[:19].replace('T', ' ')}" if reached else "no event time"


def grouped(value: float) -> str:
    """A count with its thousands apart."""
    return f"{value:,.0f}"
