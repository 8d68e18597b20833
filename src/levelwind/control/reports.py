"""Statistics as they are reported, checked and put into the roster's order."""

from __future__ import annotations

import numpy as np

from levelwind.control.events import StatisticsReported
from levelwind.errors import InputError, Problem, input_error
from levelwind.loads.arrays import Floats, Ints


def checked_series(event: StatisticsReported) -> Floats:
    """The load series as reported; malformed ones are input errors."""
    names, series = event.operators, np.asarray(event.series, dtype=np.float64)
    if series.ndim != 2 or series.shape[0] != len(names) or series.shape[1] == 0:
        rule = "a row of samples per operator, at least one sample"
        raise input_error(rule, key="series", value=f"{series.shape} for {len(names)} names")
    if not np.isfinite(series).all() or (series < 0.0).any():
        raise InputError([Problem(rule="loads are numbers of at least 0", key="series")])
    if event.window_s is not None and not event.window_s > 0.0:
        rule = "a window is longer than 0 s"
        raise input_error(rule, key="window_s", value=event.window_s)
    return series


class Reports:
    """Reads reports. The last one's order of operators is remembered, as it rarely changes.

    A report costs O(operators × samples), in NumPy.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._reported: tuple[tuple[str, ...], Ints | None] = ((), None)

    def series(self, event: StatisticsReported) -> Floats:
        """The load series; malformed ones are input errors."""
        series = checked_series(event)
        order = self._order(event.operators)
        return series if order is None else series[order]

    def seen(self, event: StatisticsReported) -> dict[str, Floats]:
        """Further statistics, by name."""
        order = self._order(event.operators)
        found = {}
        for name, figures in event.seen.items():
            own = np.asarray(figures, dtype=np.float64)
            if own.shape != (len(event.operators),) or not np.isfinite(own).all():
                rule = "a number per operator"
                raise input_error(rule, key=f"seen.{name}", value=f"{own.shape}")
            found[name] = own if order is None else own[order]
        return found

    def state_bytes(self, event: StatisticsReported) -> Floats:
        """Bytes of state, 0 where nothing is said."""
        if not event.state_bytes:
            return np.zeros(len(self._names))
        known = event.state_bytes.get
        return np.fromiter((known(name, 0) for name in self._names), dtype=np.float64, count=len(self._names))

    def _order(self, names: tuple[str, ...]) -> Ints | None:
        """Where each operator of the roster stands in the report; None if the order is the same."""
        seen, order = self._reported
        if seen is names or seen == names:
            return order
        order = None
        if names != self._names:
            place = {name: row for row, name in enumerate(names)}
            missing = [name for name in self._names if name not in place]
            if missing or len(place) < len(names):
                rule = "statistics must have every operator once"
                value = "missing: " + ", ".join(missing[:5]) if missing else "an operator twice"
                raise input_error(rule, key="operators", value=value)
            order = np.array([place[name] for name in self._names], dtype=np.int64)
        self._reported = (names, order)
        return order
