"""What the two redistribution policies share: the parameters of table 6.1, and who may take part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from levelwind.balance.choice import chosen, idle_choices
from levelwind.balance.costs.protocol import (
    LOAD,
    STATE_BYTES,
    CostModel,
    CostTable,
    cost_table,
    percent_difference,
)
from levelwind.balance.costs.registry import chosen_cost_model
from levelwind.balance.ledger import Ledger, Trial
from levelwind.balance.protocol import Proposal, Situation
from levelwind.loads.arrays import Floats, Ints
from levelwind.model import Network, Node
from levelwind.plugins import option
from levelwind.rewrite import split

# Most trials a period. One costs as much as there are nodes: at 1,000 nodes and 20,000 operators the whole
# must stay below 50 ms, and on a few nodes nothing may be left for a next time that need not come.
TRIALS, MOST_TRIALS, TRIALS_OF_ONE_NODE = 150, 1000, 30_000
COST_TEXT = "cost model that says how full a node is, as name or name:option=value; see levelwind cost-models"
DIFFERENCE_TEXT = (
    "percent that the costs of the fullest and the emptiest node must differ by: 0 any, 100 never"
)
OPERATORS_TEXT = (
    "operators that may move: names, patterns like join_* or property=value, by comma; empty: all"
)
NODES_TEXT = "nodes that may take operators: names, patterns or property=value, by comma; empty: all"
LEAST_STATE_TEXT = "operators with less state than this, in bytes, stay"
ROOM_TEXT = (
    "percent above the mean CPU load that any node may come to; above that, none fuller than who gives"
)
MOST_STATE_TEXT = "operators with more state than this, in bytes, stay; 0: any size moves"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redistribution:
    """The parameters of table 6.1; policies add their own."""

    cost: str = option("cpu", COST_TEXT)
    percent_difference: float = option(10.0, DIFFERENCE_TEXT, least=0.0)
    operators: str = option("", OPERATORS_TEXT)
    nodes: str = option("", NODES_TEXT)
    least_state: float = option(0.0, LEAST_STATE_TEXT, least=0.0)
    most_state: float = option(0.0, MOST_STATE_TEXT, least=0.0)

    room: float = option(20.0, ROOM_TEXT, least=0.0)

    def __post_init__(self) -> None:
        chosen_cost_model(self.cost)  # an unknown one is an input error now, not in the middle of a run

    @property
    def model(self) -> CostModel:
        """The cost model."""
        return chosen_cost_model(self.cost)

    @property
    def statistics(self) -> frozenset[str]:
        """What a run must count: what the cost model reads, and state if only some sizes of it may move."""
        limited = {STATE_BYTES} if self.least_state or self.most_state else set()
        return self.model.statistics | limited

    def table(self, situation: Situation) -> CostTable:
        """The cost table that the policy goes by."""
        return cost_table(self.model, situation)

    def costs(self, situation: Situation) -> Floats:
        """Cost of each node."""
        return self.table(situation).node if self.sees(situation) else np.zeros(len(situation.cpu))

    def sees(self, situation: Situation) -> bool:
        """Whether the situation has what the cost model reads."""
        counted = {LOAD, STATE_BYTES, *situation.seen}
        return self.model.statistics <= counted and (not self.model.wired or situation.facts is not None)

    def opened(self, situation: Situation) -> Ledger:
        """Books in which only eligible operators are free."""
        ledger = Ledger(self.model, situation, room=self.room / 100.0)
        state = np.bincount(ledger.unit, weights=situation.state_bytes, minlength=len(ledger.free))
        ledger.free &= (state >= self.least_state) & (state <= (self.most_state or np.inf))
        facts = situation.facts
        if self.operators and facts is not None:
            may = chosen(self.operators, facts.operators, facts.properties)
            ledger.free &= np.bincount(ledger.unit, weights=~may, minlength=len(ledger.free)) == 0
        return ledger

    def takers(self, situation: Situation) -> Ints:
        """Nodes that may take operators, and can."""
        if not self.nodes or not situation.nodes:
            return np.flatnonzero(situation.open)
        names = [node.name for node in situation.nodes]
        properties = [node.properties for node in situation.nodes]
        return np.flatnonzero(chosen(self.nodes, names, properties) & situation.open)

    def remarks(self, network: Network, nodes: Sequence[Node]) -> tuple[str, ...]:
        """What the user should know: choices of operators or nodes that mean none of those that there are."""
        operators = split(network).operators
        asked = {
            "operators": ([o.name for o in operators], [o.logical.properties for o in operators]),
            "nodes": ([node.name for node in nodes], [node.properties for node in nodes]),
        }
        return tuple(
            f"{option}={choice} means no {option.removesuffix('s')} that there is"
            for option, (names, properties) in asked.items()
            for choice in idle_choices(getattr(self, option), names, properties)
        )


def remarks_of(policy: object, network: Network, nodes: Sequence[Node]) -> tuple[str, ...]:
    """What the user should know of a policy before it is at work on these operators and nodes."""
    if not isinstance(policy, Redistribution):
        return ()
    name = getattr(policy, "name", type(policy).__name__)
    return tuple(f"policy {name}: {text}" for text in policy.remarks(network, nodes))


def difference(situation: Situation, ledger: Ledger) -> float:
    """Percent difference of the nodes' costs; one that can take nothing counts only if it is the fullest."""
    if situation.ready is None:
        return ledger.difference
    return percent_difference(np.append(ledger.cost[situation.ready], ledger.cost.max()))


def trials(nodes: int) -> int:
    """Trials that a policy may make in a period."""
    return max(TRIALS, min(MOST_TRIALS, TRIALS_OF_ONE_NODE // max(nodes, 1)))


def proposals(ledger: Ledger, made: Sequence[Trial], before: Floats, why: str) -> tuple[Proposal, ...]:
    """The moves, each an exchange of its own, in the order in which their units were first moved."""
    removed: dict[int, int] = {}
    for trial in made:
        removed[trial.unit] = removed.get(trial.unit, 0) + trial.removed
    found = []
    for group, (unit, fewer) in enumerate(removed.items()):
        for operator in ledger.operators(unit).tolist():
            source, target = int(ledger.situation.node[operator]), int(ledger.node[operator])
            if source != target:
                levels = f"from a node of cost {before[source]:.2f} to one of {before[target]:.2f}"
                reason = f"{why}: {levels}{_connections(fewer)}"
                found.append(Proposal(operator=operator, to=target, group=group, reason=reason))
    return tuple(found)


def _connections(removed: int) -> str:
    if not removed:
        return ""
    count = "a connection" if abs(removed) == 1 else f"{abs(removed)} connections"
    return f", {'removes' if removed > 0 else 'adds'} {count}"
