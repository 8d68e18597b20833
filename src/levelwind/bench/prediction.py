"""Equations 3.1 to 3.3 of seed 003 against measured costs: fitted at one rate and window, tried at others.

A small network of filters, windowed aggregates and windowed joins runs on Spark in this machine's process,
as fast as it can. The unit costs of each kind of operator are fitted to what the operators cost in the first
setting; with them, the cost of every operator in the other settings is predicted from stated rates,
selectivities and windows alone. The baseline takes the cost per row of the first setting for that of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from levelwind.balance.costs.prediction import Work, expected_work, fitted, relative_errors
from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.runtime_worlds import MASTER, watch
from levelwind.spark.session import start_session
from levelwind.testing.sides import answer, network_of, ours

NAME = "prediction"
MODULE = "levelwind.bench.prediction"
# Seconds of stream in a batch, batches until windows are full and all is compiled, and batches counted.
BATCH_S, SETTLE, COUNTED, FULL_COUNTED = 4.0, 8, 8, 20
KEYS, GROUPS, NUMBERS = 20_000, 100, 1_000_000
# What predictions may be off by: the median operator, and all operators of a setting together.
MEDIAN_ERROR, TOTAL_ERROR = 0.3, 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Rows per second of the faster stream, and the length of all windows."""

    rate: float
    window_s: float

    @property
    def name(self) -> str:
        """As it stands in the table."""
        return f"{self.rate:g} rows/s, windows of {self.window_s:g} s"


FITTED = Setting(rate=20_000.0, window_s=4.0)
PREDICTED = (
    Setting(rate=40_000.0, window_s=4.0),
    Setting(rate=20_000.0, window_s=12.0),
    Setting(rate=10_000.0, window_s=8.0),
)


def document(setting: Setting) -> dict[str, Any]:
    """The network: two streams, one four times as fast as the other."""
    rates = {"s": setting.rate, "t": setting.rate / 4}
    filters = {"half": ("s", 0.5), "quarter": ("s", 0.25), "most": ("t", 0.9), "few": ("t", 0.1)}
    passed = rates | {name: rates[source] * share for name, (source, share) in filters.items()}
    joins = {
        "big": ("half", "t", 1.0),
        "long": ("quarter", "t", 2.0),
        "medium": ("quarter", "most", 1.0),
        "small": ("few", "half", 1.0),
    }
    operators = [_filter(name, source, share) for name, (source, share) in filters.items()]
    for source, rate in rates.items():
        operators += [_aggregate(source, by, rate, setting.window_s) for by in ("k", "g")]
    for name, (left, right, windows) in joins.items():
        operators.append(_join(name, left, right, windows * setting.window_s))
    return {
        "name": NAME,
        "streams": {name: _stream(rate, number) for number, (name, rate) in enumerate(rates.items())},
        "operators": operators,
        "outputs": {
            each["name"]: {"input": each["name"]} for each in operators if each["name"] not in passed
        },
    }


def _stream(rate: float, seed: int) -> dict[str, Any]:
    columns = {"x": NUMBERS, "k": KEYS, "g": GROUPS}
    return {
        "schema": {"ts": "timestamp"} | dict.fromkeys(columns, "long"),
        "time": "ts",
        "rate": rate,
        "source": {
            "format": "generator",
            "shape": "steady",
            "rate": rate,
            "speed": "max",
            "batch": f"{BATCH_S:g}s",
            "seed": seed,
            "columns": {
                name: {"kind": "uniform", "low": 0, "high": count - 1} for name, count in columns.items()
            },
        },
    }


def _filter(name: str, source: str, share: float) -> dict[str, Any]:
    where = f"x < {round(share * NUMBERS)}"
    return {
        "name": name,
        "kind": "filter",
        "input": source,
        "where": where,
        "cost": 1e-7,
        "selectivity": share,
    }


def _aggregate(source: str, by: str, rate: float, window_s: float) -> dict[str, Any]:
    values = KEYS if by == "k" else GROUPS
    # Groups that some row of a window falls into, rows falling into any of them alike.
    groups = values * (1.0 - exp(-rate * window_s / values))
    return {
        "name": f"{source}_by_{by}",
        "kind": "aggregate",
        "input": source,
        "by": [by],
        "window": {"size": f"{window_s:g}s"},
        "compute": {"n": "count(*)", "mean": "avg(x)"},
        "cost": 1e-7,
        "selectivity": groups / (rate * window_s),
    }


def _join(name: str, left: str, right: str, within_s: float) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "join",
        "inputs": [left, right],
        "within": f"{within_s:g}s",
        "where": f"{left}.k = {right}.k",
        "cost": 1e-9,
        "selectivity": 1.0 / KEYS,
    }


def levelwind_side(settings: Sequence[Mapping[str, float]], counted: int) -> dict[str, Any]:
    """CPU seconds of every operator in every setting, over the batches counted."""
    found: dict[str, dict[str, float]] = {}
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        session = start_session(MASTER, {}, log=Path(folder, "spark.log"))
        for number, each in enumerate(settings):
            setting = Setting(**each)
            network = network_of(document(setting))
            seen = watch(
                network,
                folder=Path(folder, str(number)),
                nodes=1,
                batches=SETTLE + counted,
                session=session,
            )
            spent: dict[str, float] = {}
            for one in seen[SETTLE:]:
                boxes = one.step.program.layout.boxes
                for _, box in one.step.boxes:
                    name = boxes[box.box].name
                    spent[name] = spent.get(name, 0.0) + box.cpu_s
            found[setting.name] = spent
    return {"cpu_s": found}


def run(settings: Settings) -> Result:
    """All settings, a line for each kind of operator in the notes."""
    counted = FULL_COUNTED if settings.full else COUNTED
    every = (FITTED, *PREDICTED)
    settings.step(f"{len(every)} settings")
    found = ours(MODULE, "ours", settings=[asdict(each) for each in every], counted=counted)
    return summary(found["cpu_s"], counted)


def summary(cpu_s: Mapping[str, Mapping[str, float]], counted: int) -> Result:
    """Errors of the predictions, and of a cost per row that nothing changes."""
    known = _observed(FITTED, cpu_s[FITTED.name], counted)
    figures, notes = [], []
    errors: list[float] = []
    naive: list[float] = []
    for setting in PREDICTED:
        seen = _observed(setting, cpu_s[setting.name], counted)
        predicted = measured = 0.0
        of_setting: list[float] = []
        for kind, own in seen.items():
            unit = fitted(known[kind].values())
            off = relative_errors(own, unit)
            of_setting += off.values()
            naive += _naive_errors(own, known[kind]).values()
            predicted += sum(work.cost(unit) for work, _ in own.values())
            measured += sum(cpu for _, cpu in own.values())
            worst = max(off, key=lambda name: off[name])
            notes.append(
                f"{setting.name}: {kind}: median error {median(off.values()):.0%}, "
                f"largest {off[worst]:.0%} ({worst})"
            )
        errors += of_setting
        figures.append(
            Figure(
                label=f"{setting.name}: median error",
                value=median(of_setting),
                unit="share",
                limit=MEDIAN_ERROR,
            )
        )
        figures.append(
            Figure(
                label=f"{setting.name}: error of all operators together",
                value=abs(predicted - measured) / measured,
                unit="share",
                limit=TOTAL_ERROR,
            )
        )
    for kind, own in known.items():
        unit = fitted(own.values())
        notes.append(
            f"{kind}: a row in or out {unit.queue_s * 1e6:.3g} µs, evaluated {unit.evaluate_s * 1e6:.3g} µs, "
            f"a row of state {unit.purge_s * 1e6:.3g} µs, a batch {unit.batch_s * 1e3:.3g} ms; "
            f"where it was fitted, off by {max(relative_errors(own, unit).values()):.0%} at most"
        )
    return Result(
        name=NAME,
        ours=Figure(label="median error of predicted costs", value=median(errors), unit="share"),
        baseline=Figure(label="of the first setting's cost per row", value=median(naive), unit="share"),
        ratio=median(naive) / max(median(errors), 1e-9),
        spread=spread_of(errors),
        figures=figures,
        notes=[f"fitted at {FITTED.name}; {counted} batches of {BATCH_S:g} s each", *notes],
        details={"cpu_s": cpu_s},
    )


def _observed(
    setting: Setting, cpu_s: Mapping[str, float], counted: int
) -> dict[str, dict[str, tuple[Work, float]]]:
    """What each operator is expected to do in the batches counted, and what it cost, by kind."""
    network = network_of(document(setting))
    found: dict[str, dict[str, tuple[Work, float]]] = {}
    for name, work in expected_work(network).items():
        own = found.setdefault(network.operators[name].kind, {})
        own[name] = work.over(counted * BATCH_S, counted), cpu_s[name]
    return found


def _naive_errors(
    seen: Mapping[str, tuple[Work, float]], known: Mapping[str, tuple[Work, float]]
) -> dict[str, float]:
    """How far off every operator is if each of its rows costs what it did in the first setting."""
    found = {}
    for name, (work, cpu) in seen.items():
        before, spent = known[name]
        found[name] = abs(spent / before.rows_in * work.rows_in - cpu) / cpu
    return found


if __name__ == "__main__":
    answer({"ours": levelwind_side})
