"""The policy, asked with all that a manager knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from levelwind.balance.costs.protocol import LOAD, ROWS_IN, ROWS_OUT
from levelwind.balance.parts import measured_parts
from levelwind.balance.protocol import CostPolicy, Policy, Proposal, Situation
from levelwind.control.distances import Distances
from levelwind.control.events import LatencyMeasured, StatisticsReported
from levelwind.control.references import References, Stillness
from levelwind.control.standing import Standing
from levelwind.errors import LevelwindError, RunError
from levelwind.loads.arrays import Floats
from levelwind.model import Cluster


@contextmanager
def blamed(policy: Policy) -> Iterator[None]:
    """Say whose fault it is if a policy, or the cost model that it goes by, fails: it may be anybody's."""
    try:
        yield
    except LevelwindError:
        raise
    except Exception as error:
        name, cost = getattr(policy, "name", type(policy).__name__), getattr(policy, "cost", None)
        who = f"policy {name}" if cost is None else f"policy {name}, with cost={cost},"
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        message = f"{who} failed: {said}"
        raise RunError(message) from error


class Adviser:
    """Makes the situation that a policy judges by, and remembers what it needs over time.

    ``policy`` None: nobody is asked. ``rng`` is chance for the policy.
    """

    def __init__(self, policy: Policy | None, cluster: Cluster, *, rng: np.random.Generator) -> None:
        self._policy, self._rng = policy, rng
        self._distances, self._references = Distances(cluster), References()
        self._stillness = Stillness()

    @property
    def asked(self) -> bool:
        """Whether there is a policy to ask."""
        return self._policy is not None

    @property
    def statistics(self) -> frozenset[str]:
        """Names of the statistics that the policy needs beside the load."""
        return self._policy.statistics - {LOAD} if isinstance(self._policy, CostPolicy) else frozenset()

    def measured(self, event: LatencyMeasured) -> None:
        """Take latencies in."""
        self._distances.measured(event)

    def proposals(
        self,
        event: StatisticsReported,
        standing: Standing,
        series: Floats,
        state_bytes: Floats,
        seen: Mapping[str, Floats],
        unready: Set[str],
    ) -> Sequence[Proposal]:
        """What the policy proposes on a report; every operator must stand on a live node.

        Rows of ``series``, ``state_bytes`` and ``seen`` follow the roster. ``unready`` are nodes that take
        nothing now. O(operators), and the policy's.
        """
        if self._policy is None:
            return ()
        roster, nodes = standing.roster, standing.live_nodes
        movable = roster.movable.copy()
        for operator in standing.under_way:
            movable[list(roster.together(roster.position[operator]))] = False
        situation = Situation(
            series=series,
            node=standing.index.copy(),
            cpu=standing.cpu,
            movable=movable,
            unit=roster.unit,
            state_bytes=state_bytes,
            around=self._distances.around(roster.network, nodes),
            nodes=nodes,
            facts=roster.facts,
            seen=seen,
            parts=measured_parts(roster.facts.wiring, seen[ROWS_IN], seen[ROWS_OUT])
            if {ROWS_IN, ROWS_OUT} <= set(seen)
            else None,
            ready=np.array([node.name not in unready for node in nodes]) if unready else None,
        )
        with blamed(self._policy):
            if isinstance(self._policy, CostPolicy):
                cost = self._policy.costs(situation)
                reference = self._references.seen(roster.names, standing.index, standing.live, cost)
                moved = self._references.changed or bool(standing.under_way)
                still = self._stillness.seen(event.at_s, event.window_s, series.shape[1], moved=moved)
                situation = replace(situation, reference=reference, still=still)
            return self._policy.propose(situation, rng=self._rng)
