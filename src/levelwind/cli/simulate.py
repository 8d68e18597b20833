"""``levelwind simulate``: what a placement or a policy does to latency, before anything is deployed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.errors import DONE
from levelwind.cli.figures import number, plain_table
from levelwind.cli.inputs import writable
from levelwind.cli.options import FormatOption, Seed
from levelwind.cli.output import answer, console, warning

if TYPE_CHECKING:
    from rich.table import Table

    from levelwind.sim.outcome import Outcome
    from levelwind.sim.scenario import Scenario

ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="The scenario file, YAML or JSON.", show_default=False)
]
PlotFile = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE.png",
        help="Draw node loads, latency and moves over time.",
        show_default=False,
    ),
]
TraceOut = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE.csv", help="Write every event, a line each.", show_default=False),
]
# Rows of the text: the figure's name in the JSON, in words, and what it says.
_ROWS = (
    ("latency_ratio", "latency ratio", "mean latency over processing time alone"),
    ("latency_ms.mean", "latency, mean (ms)", "of the results, from arrival to output"),
    ("latency_ms.p50", "latency, median (ms)", ""),
    ("latency_ms.p99", "latency, p99 (ms)", "one result in a hundred takes longer"),
    ("load_std", "load std", "how much the nodes' loads vary, where the placement was decided"),
    ("load_std_bound", "load std bound", "no placement can vary less"),
    ("load_correlation", "load correlation", "near 1: all nodes are busy at once"),
    ("load_spread", "load spread", "fullest node minus emptiest"),
    ("held_out.load_std", "load std, held out", "the same on the load that then came"),
    ("held_out.load_correlation", "load correlation, held out", ""),
    ("moves", "moves", "operators moved while data flowed"),
    ("moved_load", "moved load", "CPU use of operators that moved"),
    ("tuples", "results", "whose latency was taken"),
    ("rows_held.mean", "rows held, mean", "waiting, in service or on the network"),
    ("rows_held.peak", "rows held, peak", ""),
    ("output_rate", "output rate", "results per second"),
    ("events_per_second", "events per second", "of the simulator itself"),
)


def simulate(
    scenario_file: ScenarioFile,
    plot_file: PlotFile = None,
    trace_file: TraceOut = None,
    seed: Seed = 0,
    format: FormatOption = None,
) -> int:
    """Simulate a scenario tuple by tuple: queues, bursts, moves, latency.

    The same seed gives the same trace to the byte; two planners under one seed get the same rows.

    Examples:
      levelwind simulate examples/bursts.yaml
      levelwind simulate examples/bursts.yaml --seed 1 --plot bursts.png
    """
    writable(plot_file, option="--plot")
    writable(trace_file, option="--trace")
    from levelwind.sim.driver import Run
    from levelwind.sim.scenario_file import load_scenario

    loaded = load_scenario(scenario_file)
    for text in loaded.warnings:
        warning(f"{scenario_file}: {text}")
    scenario = loaded.scenario
    with ExitStack() as stack:
        progress = stack.enter_context(_progress())
        trace = None
        if trace_file is not None:
            from levelwind.sim.traces import TraceFile

            trace = stack.enter_context(TraceFile(trace_file))
        run = Run(scenario, seed=seed, trace=trace, progress=progress)
        if trace is not None:
            joined = [change.joined.name for change in scenario.changes if change.joined is not None]
            trace.name(run.problem, run.simulator.plumbing, [*scenario.cluster.names, *joined])
        outcome = run.outcome()
    if plot_file is not None:
        from levelwind.sim.plots import draw

        draw(outcome, plot_file, title=_title(scenario, run.network.name))
    answer(format, outcome.as_dict, lambda: _table(outcome), remarks=outcome.alarms)
    return DONE


def _title(scenario: Scenario, network: str) -> str:
    decided = [named.name for named in (scenario.planner, scenario.policy) if named is not None]
    how = (
        " with ".join(decided) or f"start {scenario.start if isinstance(scenario.start, str) else 'as given'}"
    )
    load = "" if scenario.load is None else f", load {scenario.load:g}"
    return f"{network} on {len(scenario.cluster.nodes)} nodes{load}: {how}"


def _table(outcome: Outcome) -> Table:
    table = plain_table()
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("what it says", style="dim")
    figures: dict[str, Any] = outcome.as_dict()
    for key, label, meaning in _ROWS:
        value: Any = figures
        for part in key.split("."):
            value = value[part]
        table.add_row(label, number(value), meaning)
    return table


@contextmanager
def _progress() -> Iterator[Callable[[float, float], None]]:
    """A bar of simulated seconds on a terminal, elsewhere nothing: most scenarios take seconds."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=console(sys.stderr), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("preparing", total=None)

        def show(done_s: float, total_s: float) -> None:
            said = f"{done_s:.0f} of {total_s:.0f} simulated seconds"
            bar.update(task, completed=done_s, total=total_s, description=said, refresh=True)

        yield show
