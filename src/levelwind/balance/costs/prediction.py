"""What operators will cost, from rates, selectivity, window and state: equations 3.1 to 3.3 of seed 003.

The paper's letters: ω is the time to read a row from a queue or write it to one, ρ to evaluate a row (of a
join: a pair), ψ to look at a row of state when old ones are purged, σ(n) the rows that come out of n. Rows
come in batches here, and purging is done once in each; what a batch costs whatever is in it is a fourth unit
cost, which the paper has no use for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from levelwind.errors import InputError, Problem
from levelwind.loads.problem import make_problem
from levelwind.loads.rates import pairs_per_s
from levelwind.model import Aggregate, Cluster, Join, Multijoin, Network, TimeWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCosts:
    """ω, ρ and ψ in CPU seconds, and what a batch costs by itself."""

    queue_s: float
    evaluate_s: float
    purge_s: float = 0.0
    batch_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an operator did, or will do: rows in and out, rows or pairs evaluated, rows of state looked at.

    ``batches`` is how often it was called.
    """

    rows_in: float
    rows_out: float
    evaluated: float
    state: float = 0.0
    batches: float = 0.0

    def cost(self, unit: UnitCosts) -> float:
        """CPU seconds by equations 3.2 and 3.3.

        Examples
        --------
        A filter that lets half of 100 rows through: 100·(ω + ρ) + 50·ω.

        >>> Work(rows_in=100, rows_out=50, evaluated=100).cost(UnitCosts(queue_s=2.0, evaluate_s=3.0))
        600.0
        """
        queues = (self.rows_in + self.rows_out) * unit.queue_s
        kept = self.state * unit.purge_s + self.batches * unit.batch_s
        return queues + self.evaluated * unit.evaluate_s + kept

    def over(self, seconds: float, batches: int) -> Work:
        """Work of one second as that of so many, in so many batches: state is looked at once in each."""
        return Work(
            rows_in=self.rows_in * seconds,
            rows_out=self.rows_out * seconds,
            evaluated=self.evaluated * seconds,
            state=self.state * batches,
            batches=batches,
        )


def join_work(left: float, right: float, left_state: float, right_state: float, rows_out: float) -> Work:
    """Rows on both sides against what the other side keeps: equation 3.3."""
    return Work(
        rows_in=left + right,
        rows_out=rows_out,
        evaluated=left * right_state + right * left_state,
        state=left_state + right_state,
    )


def expected_work(network: Network, *, hashed: bool = True) -> dict[str, Work]:
    """What every operator as written will do per second, by stated rates, selectivities and windows.

    A join keeps of each side what came within its window, an aggregate the groups of its open windows: those
    that it puts out in the length of one; one over rows those that its next windows need. How many rows an
    aggregate over rows keeps of many groups depends on how many there are, which nobody states: that is an
    input error. With ``hashed`` a pair (of a multijoin: a group) counts as evaluated if it is put out, as
    where rows are found by key; otherwise all count that are near enough in time, as printed.
    """
    problem = make_problem(network, Cluster.equal(1))

    def rate(source: str, route: str | None) -> float:
        return float(problem.rates.of(problem.linear.rates[source, route]).mean())

    found: dict[str, Work] = {}
    problems: list[Problem] = []
    for name, operator in network.operators.items():
        taken = [rate(port.source, port.route) for port in operator.inputs]
        out = sum(rate(name, route) for route in operator.routes)
        work = Work(rows_in=sum(taken), rows_out=out, evaluated=sum(taken))
        if isinstance(operator.spec, Join):
            left, right = taken
            kept = operator.spec.within_s
            work = join_work(left, right, left * kept, right * kept, out)
        elif isinstance(operator.spec, Multijoin):
            near = float(pairs_per_s(operator, [np.array([each]) for each in taken])[0])
            windows = [operator.spec.windows_s[alias] for alias in operator.spec.aliases]
            work = replace(work, evaluated=near, state=float(np.dot(taken, windows)))
        elif isinstance(operator.spec, Aggregate):
            problems += _unknown_groups(name, operator.spec)
            work = replace(work, state=_open(operator.spec, out))
        found[name] = replace(work, evaluated=out) if operator.is_join and hashed else work
    if problems:
        raise InputError(problems)
    return found


def _open(spec: Aggregate, rows_out: float) -> float:
    """What an aggregate keeps: groups of its open windows, or the rows that windows of rows still need."""
    if isinstance(spec.window, TimeWindow):
        return rows_out * spec.window.size_s
    # From rows - slide of them, when a window has just been put out, to rows - 1, one row before the next.
    return spec.window.rows - (spec.window.slide + 1) / 2


def _unknown_groups(name: str, spec: Aggregate) -> list[Problem]:
    if isinstance(spec.window, TimeWindow) or not spec.by:
        return []
    rule = (
        "the state of windows of rows can be predicted only without groups: nobody states how many there are"
    )
    return [Problem(rule=rule, key=f"{name}.by", value=", ".join(spec.by))]


def fitted(seen: Iterable[tuple[Work, float]]) -> UnitCosts:
    """Unit costs that explain measured CPU seconds best, by relative error, none of them below 0.

    Nothing tells ω from ρ if every operator puts out as many rows as it evaluates: then only their sum
    counts. O(observations).
    """
    rows = list(seen)
    columns = np.array(
        [[w.rows_in + w.rows_out, w.evaluated, w.state, w.batches] for w, _ in rows], dtype=float
    )
    spent = np.array([cpu_s for _, cpu_s in rows], dtype=float)
    weight = 1.0 / np.maximum(spent, 1e-12)
    best, found = np.inf, np.zeros(4)
    for size in (1, 2, 3, 4):
        for chosen in combinations(np.flatnonzero(columns.any(axis=0)).tolist(), size):
            own = columns[:, chosen] * weight[:, None]
            solved, *_ = np.linalg.lstsq(own, spent * weight, rcond=None)
            error = float(((own @ solved - 1.0) ** 2).sum())
            if (solved >= 0).all() and error < best * (1 - 1e-9):
                best, found = error, np.zeros(4)
                found[list(chosen)] = solved
    queue_s, evaluate_s, purge_s, batch_s = found.tolist()
    return UnitCosts(queue_s=queue_s, evaluate_s=evaluate_s, purge_s=purge_s, batch_s=batch_s)


def relative_errors(seen: Mapping[str, tuple[Work, float]], unit: UnitCosts) -> dict[str, float]:
    """How far off each prediction is, relative to what was measured."""
    return {name: abs(work.cost(unit) - cpu_s) / cpu_s for name, (work, cpu_s) in seen.items() if cpu_s > 0}
