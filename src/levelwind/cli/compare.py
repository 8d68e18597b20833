"""``levelwind compare``: planners side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from levelwind.cli.errors import DONE, NO
from levelwind.cli.figures import FIGURE, Figure, figure_columns, number, plain_table
from levelwind.cli.inputs import parse_settings, read_both, read_current
from levelwind.cli.options import ClusterFile, FormatOption, FromFile, NetworkFile, NodeCount, Seed
from levelwind.cli.output import answer, note
from levelwind.cli.planners import loadable_planners
from levelwind.errors import InputError, Problem, did_you_mean, input_error

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from levelwind.model import Cluster, Network, Plan

BASE = "rod"
# Tries every placement: not for a list that nobody asked for.
_NOT_BY_DEFAULT = ("optimal",)

PlannerNames = Annotated[
    str | None,
    typer.Option(
        "--planners",
        metavar="A,B,…",
        help="Which planners. Default: all that can work with what the network states, except optimal.",
        show_default=False,
    ),
]
CompareSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[PLANNER.]KEY=VALUE",
        help="An option of one planner, or of all that know it. May be repeated.",
        show_default=False,
    ),
]
_RELATIVE = Figure("relative", f"\N{MULTIPLICATION SIGN} {BASE}", f"feasible ratio relative to {BASE}", "max")
_COLUMNS = (
    FIGURE["feasible_ratio"],
    _RELATIVE,
    FIGURE["min_plane_distance"],
    FIGURE["max_load"],
    FIGURE["load_std"],
    FIGURE["cut_streams"],
)
_ON_THE_WAY = (FIGURE["network_usage"], FIGURE["delay"], FIGURE["moved_load"])


def compare(
    network_file: NetworkFile,
    planners: PlannerNames = None,
    cluster_file: ClusterFile = None,
    nodes: NodeCount = None,
    settings: CompareSettings = None,
    from_file: FromFile = None,
    seed: Seed = 0,
    format: FormatOption = None,
) -> int:
    """Show the plans of several planners side by side.

    In the table the best of each column is bold. Ends with exit code 1 if none of them finds a plan.

    Examples:
      levelwind compare examples/worked.yaml --nodes 2 --planners rod,random
      levelwind compare examples/traffic.yaml --nodes 5 --planners rod,llf,random --format text
    """
    pairs = parse_settings(settings)
    network, cluster = read_both(network_file, cluster_file, nodes)
    before = read_current(from_file, network, cluster)
    names = _asked(planners) if planners is not None else _able(network, cluster)
    options = _options(pairs, names)
    from levelwind import planning
    from levelwind.model import PlanStatus

    plans = planning.compare(network, cluster, names, options=options, seed=seed, current=before)
    remarks = [f"{made.planner}: {text}" for made in plans for text in made.notes]
    remarks += [text for made in plans if made.measures for text in made.measures.notes]
    answer(format, lambda: [made.as_dict() for made in plans], lambda: _text(plans), remarks=remarks)
    return DONE if any(made.status is PlanStatus.PLACED for made in plans) else NO


def _asked(text: str) -> list[str]:
    """The planners that were named, each once, all of them known."""
    from levelwind.placement import planner_names

    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    known = planner_names()
    problems = [
        Problem(rule="must be a planner", key="--planners", value=name, hint=did_you_mean(name, known))
        for name in names
        if name not in known
    ]
    if problems:
        raise InputError(problems)
    if not names:
        rule = "must name at least one planner"
        raise input_error(rule, key="--planners", value=repr(text))
    return names


def _able(network: Network, cluster: Cluster) -> list[str]:
    """All planners that can work with what the network states; the others are told with the reason."""
    from levelwind.loads.problem import make_problem
    from levelwind.placement import check_needs, make_planner

    problem = make_problem(network, cluster)
    able = []
    for name in loadable_planners():
        if name in _NOT_BY_DEFAULT:
            continue
        try:
            check_needs(make_planner(name), problem)
        except InputError as error:
            lacking = "; ".join(p.value or p.rule for p in error.problems)
            note(f"{name} left out: {lacking}")
        else:
            able.append(name)
    return able


def _options(pairs: Mapping[str, str], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Options by planner: ``planner.key`` for one of them, ``key`` for all that know it."""
    from dataclasses import fields

    from levelwind.placement import planner_class

    known = {name: [f.name for f in fields(planner_class(name))] for name in names}
    options: dict[str, dict[str, str]] = {name: {} for name in names}
    problems = []
    for text, value in pairs.items():
        planner, dot, key = text.rpartition(".")
        if dot and planner not in options:
            rule, hint = "must be one of the planners compared", did_you_mean(planner, names)
            problems.append(Problem(rule=rule, key=f"--set {text}", value=planner, hint=hint))
            continue
        takers = [planner] if dot else [name for name in names if key in known[name]]
        if not takers:
            every = list(dict.fromkeys(option for own in known.values() for option in own))
            rule, hint = "must be an option of a planner compared", did_you_mean(key, every)
            problems.append(Problem(rule=rule, key=f"--set {text}", value=key, hint=hint))
        for name in takers:
            if dot or key not in options[name]:  # what is said of one planner outweighs what is said of all
                options[name][key] = value
    if problems:
        raise InputError(problems)
    return options


def _text(plans: Sequence[Plan]) -> RenderableType:
    """A row per planner; what concerns the network between the nodes in a table of its own, if known."""
    from rich.console import Group
    from rich.text import Text

    first = _table(plans, _COLUMNS)
    if not any(getattr(made.measures, f.name, None) is not None for made in plans for f in _ON_THE_WAY):
        return first
    return Group(first, Text(), _table(plans, _ON_THE_WAY))


def _table(plans: Sequence[Plan], figures: Sequence[Figure]) -> Table:
    """A row per planner. A column that nobody has a value for is left out: the notes say why."""
    from rich.text import Text

    values = {figure.name: _values(plans, figure) for figure in figures}
    columns = [figure for figure in figures if any(value is not None for value in values[figure.name])]
    table = plain_table()
    table.add_column("planner", no_wrap=True)
    figure_columns(table, columns)
    table.add_column("status", no_wrap=True)
    for i, made in enumerate(plans):
        cells = []
        for figure in columns:
            row = values[figure.name]
            cells.append(Text(number(row[i]), style="bold" if _is_best(row, i, figure) else ""))
        table.add_row(made.planner, *cells, made.status.value)
    return table


def _values(plans: Sequence[Plan], figure: Figure) -> list[float | None]:
    if figure is _RELATIVE:
        return _relative(plans)
    return [getattr(made.measures, figure.name, None) for made in plans]


def _relative(plans: Sequence[Plan]) -> list[float | None]:
    """Feasible ratios as multiples of the base planner's; without it (or if it is 0) there are none."""
    ratios = [made.measures.feasible_ratio if made.measures else None for made in plans]
    base = next((ratio for made, ratio in zip(plans, ratios, strict=True) if made.planner == BASE), None)
    return [ratio / base if ratio is not None and base else None for ratio in ratios]


def _is_best(values: Sequence[float | None], i: int, figure: Figure) -> bool:
    """Whether the i-th value is the best as far as the printed digits tell."""
    stated = [value for value in values if value is not None]
    value = values[i]
    if value is None or figure.best is None:
        return False
    best = max(stated) if figure.best == "max" else min(stated)
    return number(value) == number(best)
