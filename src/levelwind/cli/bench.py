"""``levelwind bench``: how fast and how good we are, against a baseline, here and now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.batch import Names, batch, list_table
from levelwind.cli.errors import DONE
from levelwind.cli.figures import number, plain_table
from levelwind.cli.inputs import writable
from levelwind.cli.options import FormatOption, Seed
from levelwind.cli.output import answer, json_text
from levelwind.errors import chosen_names

if TYPE_CHECKING:
    from rich.table import Table

_MARK = {True: "✓", False: "✗", None: "-"}

OnlyList = Annotated[bool, typer.Option("--list", help="Only name the benchmarks.")]
Repeat = Annotated[
    int | None,
    typer.Option(
        "--repeat",
        min=1,
        metavar="N",
        help="Rounds of each benchmark (graphs, for resilient) instead of its own number.",
        show_default=False,
    ),
]
Full = Annotated[
    bool,
    typer.Option("--full", help="The long version where there is one: half an hour to two; dcape six."),
]
OutFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Write the results to this file too, as JSON. Beside it dcape --full keeps its runs, and goes "
        "on where it was interrupted.",
        show_default=False,
    ),
]


def bench(
    wanted: Names = None,
    only_list: OnlyList = False,
    repeat: Repeat = None,
    full: Full = False,
    out: OutFile = None,
    seed: Seed = 0,
    format: FormatOption = None,
) -> int:
    """Measure speed and quality against baselines.

    Both sides run in turn on this machine. The ratio says how many times better we are: above 1 we win.
    A limit that is missed is a result, not a failure: the exit code is 0.

    Examples:
      levelwind bench --list
      levelwind bench volume --repeat 1
    """
    registry = import_module("levelwind.bench.registry")
    names = chosen_names(wanted, registry.names(), "must be a benchmark")
    if only_list:
        found = [item for item in registry.describe() if item["name"] in names]
        answer(format, lambda: found, lambda: list_table(found))
        return DONE
    writable(out, option="--out")
    with batch(len(names)) as progress:
        results = registry.run(
            names,
            repeat=repeat,
            full=full,
            seed=seed,
            progress=progress,
            directory=None if out is None else out.absolute().parent,
        )
    if out is not None:
        out.write_text(json_text(results), encoding="utf-8")
    answer(format, lambda: results, lambda: _table(results), remarks=_remarks(results))
    return DONE


def _table(results: Sequence[Mapping[str, Any]]) -> Table:
    """A line per benchmark, and below it one for each further figure."""
    table = plain_table()
    table.add_column("name")
    for name in ("ours", "baseline", "ratio", "limit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("ok", justify="center")
    for result in results:
        unit, (first, *others) = result["unit"], result["figures"]
        ratio = f"{number(result['ratio'])} ± {number(result['ratio'] * result['spread'] / 2)}"
        baseline = _measured(result["baseline"], unit)
        table.add_row(result["name"], *_figure(first, baseline, ratio))
        for figure in others:
            table.add_row(f"  {figure['label']}", *_figure(figure))
    return table


def _figure(figure: Mapping[str, Any], baseline: str = "", ratio: str = "") -> tuple[str, ...]:
    unit, limit = figure["unit"], figure["limit"]
    most = "-" if limit is None else f"{limit:g} {unit}"
    return _measured(figure["value"], unit), baseline, ratio, most, _MARK[figure["ok"]]


def _measured(value: float, unit: str) -> str:
    return number(value) if unit == "ratio" else f"{number(value)} {unit}"


def _remarks(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The notes of all results, each under its name; the machine is the same for all and told once."""
    return [
        text if text.startswith("machine: ") else f"{result['name']}: {text}"
        for result in results
        for text in result["notes"]
    ]
