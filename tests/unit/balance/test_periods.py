"""A period of a policy is that of a plain version of it, which adds everything up anew at every step."""

from __future__ import annotations

import numpy as np
import pytest

from levelwind.balance import Situation, make_policy
from levelwind.bench.literal_correlation import Literal
from levelwind.testing.policy_checks import after

EPSILON, DELTA, THETA, WORTH = 0.1, 0.2, 0.8, 0.36
EQUAL = 1 + 1e-9


class Plain:
    """Units, where they stand, and the figures that the policies look at, from scratch each time."""

    def __init__(self, case):
        self.case = case
        self.literal = Literal(case.series, case.cpu, np.where(case.movable, -1, case.node))
        self.plan = dict(enumerate(case.node.tolist()))

    def load(self, node, plan=None):
        return self.literal.of(self.plan if plan is None else plan, node) / self.case.cpu[node]

    def level(self, node, plan=None):
        return self.load(node, plan).mean()

    def danger(self, node):
        return self.level(node) + self.load(node).std()

    def treat(self, one, other, how, least=-np.inf):
        """Treat a pair; kept if it is correlated better then, and no fuller while far apart."""
        trial = dict(self.plan)
        how(trial, one, other)
        if least > -np.inf and self.literal.cor(self.load(one, trial), self.load(other, trial)) <= least:
            return False
        old = max(self.level(one), self.level(other))
        new = self.level(one, trial), self.level(other, trial)
        if max(new) > old * EQUAL and max(new) - min(new) > EPSILON:
            return False
        changed, self.plan = trial != self.plan, trial
        return changed

    def by_danger(self):
        return sorted(range(len(self.case.cpu)), key=lambda i: -self.danger(i))

    def period_of_print(self, how):
        """Figure 5.5: the fullest with the emptiest and so on; then who is in danger, the worst first."""
        count = len(self.case.cpu)
        order = sorted(range(count), key=lambda i: -self.level(i))
        for i in range(count // 2):
            one, other = order[i], order[-1 - i]
            if abs(self.level(one) - self.level(other)) > EPSILON:
                self.treat(one, other, how)
        for one in self.by_danger():
            rho = {k: self.literal.cor(self.load(one), self.load(k)) for k in range(count) if k != one}
            other = min(rho, key=rho.__getitem__)
            if self.danger(one) > 1 and rho[other] < THETA:
                self.treat(one, other, how, least=rho[other])

    def by_worth(self, plan, one, other):
        """The step with the largest gain for the load it moves, as long as it is worth it."""
        case, both = self.case, (one, other)
        mean, moved = case.series.mean(axis=1), set()
        total, cpu = sum(mean[u] for u in plan if plan[u] in both), case.cpu[[one, other]].sum()
        least = WORTH * max(0.1, 1 - total / cpu)

        def figure(trial):
            return sum((self.load(i, trial) ** 2).mean() * case.cpu[i] for i in both)

        while True:
            free = [u for u in plan if plan[u] in both and case.movable[u] and u not in moved and mean[u] > 0]
            swaps = [(a, b) for a in free for b in free if (plan[a], plan[b]) == both]
            worth = {}
            for step in [*((a,) for a in free), *swaps]:
                trial = plan | {u: one + other - plan[u] for u in step}
                worth[step] = (figure(plan) - figure(trial)) / mean[list(step)].sum()
            best = max(worth, key=worth.__getitem__, default=())
            if not best or worth[best] <= least * EQUAL:
                return
            plan.update({u: one + other - plan[u] for u in best})
            moved.update(best)

    def period_by_worth(self):
        """Who is in danger chooses the partner with which evening out would gain most; three times."""
        cpu = self.case.cpu
        for _ in range(3):
            taken = set()
            emptiest = min(self.level(i) for i in range(len(cpu)))
            for one in self.by_danger():
                in_danger = self.danger(one) > 1 or self.level(one) - emptiest > EPSILON
                left = set(range(len(cpu))) - taken - {one}
                if one in taken or not in_danger or not left:
                    continue
                gain = {
                    k: cpu[one] * cpu[k] / (cpu[one] + cpu[k]) * ((self.load(one) - self.load(k)) ** 2).mean()
                    for k in left
                }
                other = max(gain, key=gain.__getitem__)
                if self.treat(one, other, self.by_worth):
                    taken |= {one, other}


def unlike_nodes(seed):
    """Few nodes of unequal CPU and load, most of them in danger; some units may not move."""
    rng = np.random.default_rng(seed)
    nodes, units = int(rng.integers(3, 6)), int(rng.integers(8, 22))
    series = rng.uniform(0, 1, (units, 6)) * rng.uniform(0.2, 1, (units, 1))
    cpu = rng.choice([0.5, 1.0, 1.5], nodes)
    return Situation(
        series=series * (0.85 * cpu.sum() / series.mean(axis=1).sum()),
        node=rng.integers(0, nodes, units),
        cpu=cpu,
        movable=rng.random(units) < 0.9,
        unit=np.arange(units),
        state_bytes=np.zeros(units),
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("policy", ["cor_re_imp", "cor_se_imp", "steady_pairs"])
def test_a_period_is_that_of_the_plain_version(policy, seed):
    case = unlike_nodes(seed)
    plain = Plain(case)
    if policy == "steady_pairs":
        plain.period_by_worth()
    elif policy == "cor_re_imp":
        plain.period_of_print(plain.literal.redistribute)
    else:
        plain.period_of_print(lambda plan, a, b: plain.literal.exchange(plan, a, b, DELTA))
    found = after(case, make_policy(policy).propose(case, rng=np.random.default_rng(0)))
    assert found.tolist() == [plain.plan[u] for u in range(len(found))]
