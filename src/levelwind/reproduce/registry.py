"""All experiments by name, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from levelwind.errors import chosen_names
from levelwind.reproduce import (
    figure_1_5,
    figure_4_5,
    figure_4_7,
    figure_5_1,
    figure_6_1,
    figure_6_2,
    figure_6_5,
    figure_6_6,
    figure_6_7,
    figure_6_8,
    figure_6_9,
    figure_6_10,
    figure_6_11,
    figure_6_12,
    figure_6_14,
    figure_6_15,
    figure_6_16,
    figure_6_18,
    figure_6_19,
    figure_6_20,
    figure_6_21,
    figure_6_22,
    sbon_figure_5,
    sbon_figure_8,
    sbon_figure_9,
    sbon_figure_10,
    sbon_figure_12,
    sbon_figure_13,
    sbon_figure_14,
    sbon_load_space,
    sbon_table_1,
    table_5_1,
    table_6_1,
    table_6_3,
)
from levelwind.reproduce.dcape import FIGURES as DCAPE
from levelwind.reproduce.dcape_pass import EFFORTS, run_together
from levelwind.reproduce.execution import Mapper, mapper
from levelwind.reproduce.outcome import Experiment, Item, Outcome, Result
from levelwind.reproduce.record import write_record
from levelwind.reproduce.spread_figures import FIGURES as SPREAD

Progress = Callable[[int, int, str], None]
EXPERIMENTS: dict[str, Experiment] = {
    "figure_1_5": figure_1_5,
    "figure_4_5": figure_4_5,
    "figure_4_7": figure_4_7,
    "figure_5_1": figure_5_1,
    "table_5_1": table_5_1,
    "figure_6_1": figure_6_1,
    "figure_6_2": figure_6_2,
    "figure_6_5": figure_6_5,
    "figure_6_6": figure_6_6,
    "figure_6_7": figure_6_7,
    "table_6_1": table_6_1,
    "figure_6_8": figure_6_8,
    "figure_6_9": figure_6_9,
    "figure_6_10": figure_6_10,
    "figure_6_11": figure_6_11,
    "figure_6_12": figure_6_12,
    "figure_6_14": figure_6_14,
    "figure_6_15": figure_6_15,
    "table_6_3": table_6_3,
    "figure_6_16": figure_6_16,
    "figure_6_18": figure_6_18,
    "figure_6_19": figure_6_19,
    "figure_6_20": figure_6_20,
    "figure_6_21": figure_6_21,
    "figure_6_22": figure_6_22,
    **SPREAD,
    **DCAPE,
    "sbon_figure_5": sbon_figure_5,
    "sbon_table_1": sbon_table_1,
    "sbon_figure_8": sbon_figure_8,
    "sbon_figure_9": sbon_figure_9,
    "sbon_figure_10": sbon_figure_10,
    "sbon_figure_12": sbon_figure_12,
    "sbon_figure_13": sbon_figure_13,
    "sbon_figure_14": sbon_figure_14,
    "sbon_load_space": sbon_load_space,
}
# Real runs take minutes to hours, and two of them never give the same figures: they run when they are named.
ON_A_CLUSTER = frozenset({"figure_6_12", *DCAPE})
DIRECTORY = Path("reproduced")


def names() -> tuple[str, ...]:
    """Names of all experiments, in the order of the paper."""
    return tuple(EXPERIMENTS)


def describe() -> list[dict[str, str]]:
    """What each experiment shows."""
    return [{"name": name, "title": experiment.TITLE} for name, experiment in EXPERIMENTS.items()]


def select(chosen: Sequence[str] | None) -> list[str]:
    """The experiments asked for, ``dcape`` for all of seed 003; none means all but those on a cluster."""
    asked = [one for name in chosen or () for one in (DCAPE if name == "dcape" else (name,))]
    alone = [name for name in EXPERIMENTS if name not in ON_A_CLUSTER]
    return list(chosen_names(asked or alone, EXPERIMENTS, "must be something to reproduce"))


def run(
    chosen: Sequence[str] = (),
    *,
    quick: bool = False,
    seed: int = 0,
    out: Path | str | None = None,
    master: str | None = None,
    workers: int | None = None,
    minutes: float | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Run experiments and write a JSON record and a PNG for each.

    Parameters
    ----------
    chosen
        Names, as `select` takes them.
    quick
        Fewer graphs and runs: a first look, less certain.
    out
        Directory for the files, ``./reproduced`` by default; made if missing.
    master
        A Spark master to measure on; None for processes here (``workers`` of them, all cores by default).
    minutes
        After that the figures of seed 003 begin no further run on their cluster, and are drawn from the
        rounds that there are. Runs are kept in ``out``: the same call goes on from there.
    progress
        Called as ``progress(done, total, name)`` with the pieces of work of an experiment.

    Returns
    -------
    One dictionary per experiment: name, paper, ours, claim, holds, seconds, why, set_up, files.
    """
    selected = select(chosen)
    directory = Path(DIRECTORY if out is None else out)
    directory.mkdir(parents=True, exist_ok=True)
    report = progress or _silent
    answers: list[dict[str, Any]] = []
    done: list[tuple[str, list[Item], list[Result]]] = []
    together = _together([n for n in selected if n in DCAPE], quick, seed, directory, minutes, report)
    with mapper(master, workers) as mapped:
        for name in selected:
            started = perf_counter()
            experiment = EXPERIMENTS[name]
            items = experiment.cells(quick, seed)
            twin = None if name in together else _already_measured(experiment, items, done)
            results = together.get(name) or (
                twin[2] if twin else _measure(mapped, name, experiment, items, report)
            )
            done.append((name, items, results))
            outcome = experiment.summarise(results)
            picture = directory / f"{name}.png"
            experiment.draw(results, picture)
            seconds = perf_counter() - started
            if name in together:
                seconds += sum(result["seconds"] for result in results)
            record = write_record(
                directory,
                name,
                experiment.TITLE,
                outcome,
                results,
                quick=quick,
                seed=seed,
                seconds=seconds,
                measured_with=twin[0] if twin else None,
            )
            answers.append(_answer(name, outcome, seconds, [record, picture]))
    return answers


def _together(
    names: Sequence[str], quick: bool, seed: int, directory: Path, minutes: float | None, report: Progress
) -> dict[str, list[Result]]:
    """Results of figures that show the same runs: a pass over all of them makes each run once."""
    if not names:
        return {}
    found = run_together(
        {name: list(DCAPE[name].chosen(quick).values()) for name in names},
        EFFORTS[quick],
        directory,
        most_s=None if minutes is None else 60.0 * minutes,
        tick=report,
    )
    return {name: [{**DCAPE[name].cells(quick, seed)[0], **found[name]}] for name in names}


def _measure(
    mapped: Mapper, name: str, experiment: Experiment, items: list[Item], report: Progress
) -> list[Result]:
    return mapped(experiment.measure, items, lambda count, total: report(count, total, name))


def _already_measured(
    experiment: Experiment, items: list[Item], done: Sequence[tuple[str, list[Item], list[Result]]]
) -> tuple[str, list[Item], list[Result]] | None:
    """The earlier experiment that two figures share their measurements with, if there is one."""
    for earlier in done:
        if EXPERIMENTS[earlier[0]].measure is experiment.measure and earlier[1] == items:
            return earlier
    return None


def _answer(name: str, outcome: Outcome, seconds: float, files: Sequence[Path]) -> dict[str, Any]:
    return {
        "name": name,
        "paper": outcome.paper,
        "ours": outcome.ours,
        "claim": outcome.claim,
        "holds": outcome.holds,
        "seconds": round(seconds, 3),
        "why": outcome.why,
        "set_up": list(outcome.set_up),
        "files": [str(path) for path in files],
    }


def _silent(done: int, total: int, name: str) -> None:
    """Progress nobody asked for."""
