"""The baseline of `balance`: COR-GLB as seed 000 prints it, word by word, with its errata.

Slow and plain on purpose; the tests hold the compiled one against it. Shared with it are only the stated
rules: what is constant, what is equal, and which of equals is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levelwind.loads.arrays import Floats, Ints

Plan = dict[int, int]
EQUAL = 1e-9


class Literal:
    """Figures 5.2 to 5.7 of seed 000 on units (rows of ``series``); plans map a unit to its node."""

    def __init__(self, series: Floats, cpu: Floats, fixed: Sequence[int] | Ints) -> None:
        self.series, self.cpu, self.fixed = np.asarray(series, float), np.asarray(cpu, float), list(fixed)
        samples = self.series.shape[1]
        self.constant = 1e-9 * np.sqrt(samples) * np.abs(self.series).max(initial=0.0)
        self.mean = self.series.mean(axis=1)

    def cor(self, a: Floats, b: Floats) -> float:
        """Correlation, 0 if either is constant."""
        a, b = a - a.mean(), b - b.mean()
        la, lb = np.sqrt(a @ a), np.sqrt(b @ b)
        return 0.0 if la <= self.constant or lb <= self.constant else float(a @ b / (la * lb))

    def of(self, plan: Plan, node: int) -> Floats:
        """Load series of a node."""
        members = [u for u, n in plan.items() if n == node]
        total: Floats = self.series[members].sum(axis=0)
        return total if members else np.zeros(self.series.shape[1])

    def level(self, plan: Plan, node: int) -> float:
        """Relative load of a node."""
        return float(sum(self.mean[u] for u, n in plan.items() if n == node) / self.cpu[node])

    def best(self, scores: dict[int, float]) -> int:
        """Of the best scores the heaviest, of these the first."""
        top = max(scores.values())
        good = [u for u in scores if scores[u] >= top - EQUAL]
        heavy = max(self.mean[u] for u in good)
        return min(u for u in good if self.mean[u] >= heavy - EQUAL * abs(heavy))

    def one_way(self, plan: Plan, one: int, other: int) -> None:
        """Figure 5.2."""
        if not self.level(plan, one) > self.level(plan, other):
            one, other = other, one
        while True:
            c1, c2 = self.cpu[one], self.cpu[other]
            l1, l2 = self.level(plan, one) * c1, self.level(plan, other) * c2
            gap = (l1 * c2 - l2 * c1) / (c1 + c2)
            fits = [
                u for u, n in plan.items()
                if n == one and self.fixed[u] < 0 and 0 < self.mean[u] <= gap * (1 + EQUAL)
            ]  # fmt: skip
            if not fits:
                return
            here, there = self.of(plan, one), self.of(plan, other)
            scores = {
                u: (self.cor(self.series[u], here - self.series[u]) - self.cor(self.series[u], there)) / 2
                for u in fits
            }
            plan[self.best(scores)] = other

    def redistribute(self, plan: Plan, one: int, other: int) -> None:
        """Figure 5.3."""
        loose = [u for u, n in plan.items() if n in (one, other) and self.fixed[u] < 0 and self.mean[u] > 0]
        for u in loose:
            del plan[u]
        while loose:
            taker = one if self.level(plan, one) < self.level(plan, other) else other
            rho = {n: {u: self.cor(self.series[u], self.of(plan, n)) for u in loose} for n in (one, other)}
            scores = {u: (rho[one][u] + rho[other][u]) / 2 - rho[taker][u] for u in loose}
            unit = self.best(scores)
            plan[unit] = taker
            loose.remove(unit)
        self.one_way(plan, one, other)

    def exchange(self, plan: Plan, one: int, other: int, delta: float) -> None:
        """Figure 5.4."""
        self.one_way(plan, one, other)
        count = sum(n in (one, other) for n in plan.values())
        for _ in range(count):
            giver, taker = (one, other) if self.level(plan, one) > self.level(plan, other) else (other, one)
            here, there = self.of(plan, giver), self.of(plan, taker)
            scores = {
                u: (self.cor(self.series[u], here - self.series[u]) - self.cor(self.series[u], there)) / 2
                for u, n in plan.items()
                if n == giver and self.fixed[u] < 0 and self.mean[u] > 0
            }
            scores = {u: s for u, s in scores.items() if s > delta}
            if not scores:
                break
            plan[self.best(scores)] = taker
        self.one_way(plan, one, other)

    def distribute(self, theta: float) -> list[int]:
        """Figure 5.6: node of each unit."""
        n = len(self.cpu)
        plan = {u: node for u, node in enumerate(self.fixed) if node >= 0}
        loose = [u for u, node in enumerate(self.fixed) if node < 0]
        while loose:
            levels = [self.level(plan, i) for i in range(n)]
            least = [i for i in range(n) if levels[i] <= min(levels) + EQUAL * abs(min(levels))]
            held = [sum(node == i for node in plan.values()) for i in range(n)]
            taker = min(least, key=lambda i: (held[i], i))
            loads = [self.of(plan, i) for i in range(n)]
            scores = {}
            for u in loose:
                rho = [self.cor(self.series[u], loads[i]) for i in range(n)]
                scores[u] = sum(rho) / n - rho[taker]
            unit = self.best(scores)
            plan[unit] = taker
            loose.remove(unit)
        order = sorted(range(n), key=lambda i: -self.level(plan, i))
        for i in range(n // 2):
            self.one_way(plan, order[i], order[n - 1 - i])
        self.improve(plan, theta)
        return [plan[u] for u in range(len(self.fixed))]

    def improve(self, plan: Plan, theta: float) -> None:
        """Figure 5.7."""
        n = len(self.cpu)

        def rho(i: int, j: int) -> float:
            return self.cor(self.of(plan, i), self.of(plan, j))

        candidates = {(i, j): rho(i, j) for i in range(n) for j in range(i + 1, n)}
        candidates = {pair: r for pair, r in candidates.items() if r < theta}
        for _ in range(n * (n - 1) // 2):
            if not candidates:
                return
            one, other = pair = self.least(candidates)
            old = candidates.pop(pair)
            trial = dict(plan)
            self.redistribute(trial, one, other)
            if not self.cor(self.of(trial, one), self.of(trial, other)) > old + EQUAL:
                continue
            plan.clear()
            plan.update(trial)
            for changed in pair:
                for k in set(range(n)) - set(pair):
                    key = (min(changed, k), max(changed, k))
                    candidates.pop(key, None)
                    if rho(*key) < theta:
                        candidates[key] = rho(*key)

    @staticmethod
    def least(candidates: dict[tuple[int, int], float]) -> tuple[int, int]:
        """The first pair that no later one is below by more than rounding."""
        found = min(candidates)
        for pair in sorted(candidates):
            if candidates[pair] < candidates[found] - EQUAL:
                found = pair
        return found
