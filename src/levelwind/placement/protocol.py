"""What a planner is: problem in, decision out, nothing else touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from levelwind.errors import input_error
from levelwind.loads.arrays import Ints
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.plugins import option

__all__ = ["Decision", "Planner", "check_needs", "infeasible", "option"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A planner's answer in numbers.

    ``assignment`` holds the node of each operator, None if there is no plan. ``reasons`` says for each
    operator which rule put it there. ``figures`` may carry figures of the planner's own.
    """

    status: PlanStatus
    assignment: Ints | None = None
    notes: tuple[str, ...] = ()
    reasons: Sequence[str] = ()
    figures: Mapping[str, float] = field(default_factory=dict)


class Planner(Protocol):
    """Decides where every operator runs.

    A planner receives a `Problem` and a random generator and returns a `Decision`. It must place every
    operator on exactly one node, keep ``problem.fixed`` and tables (`units.make_units` does both), give the
    same answer for the same problem and generator, and treat nodes by their position, never by their name.
    It must not read a clock, a file or a global random state. What it cannot do it says by its status;
    exceptions are for wrong input. It is a frozen dataclass: its fields are its options, made by `option`.

    ``needs`` is what must be stated, word by word: nothing, rates, series (rates that vary), latency between
    the nodes, topology (their routes).
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    origin: ClassVar[str]
    needs: ClassVar[str]

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Decide. See the class for the contract."""
        ...


def infeasible(*notes: str) -> Decision:
    """No plan can keep the rules that the notes name."""
    return Decision(status=PlanStatus.INFEASIBLE, notes=notes)


def check_needs(planner: Planner, problem: Problem) -> None:
    """Refuse a planner that decides by rates, series or latencies where none are stated (an input error)."""
    needs = planner.needs.split()
    if "latency" in needs and problem.cluster.latency_ms is None:
        rule = "this planner needs the latencies between the nodes"
        raise input_error(
            rule,
            key=f"planner {planner.name}",
            value="a cluster without latency",
            hint="name a matrix in the cluster file's `latency`; levelwind probe measures one",
        )
    if "topology" in needs and problem.cluster.topology is None:
        rule = "this planner needs the routes between the nodes"
        raise input_error(
            rule,
            key=f"planner {planner.name}",
            value="a cluster without topology",
            hint="name a GraphML file in the cluster file's `topology`",
        )
    missing = list(problem.rates.missing)
    if "series" in needs and not missing and problem.load_series is None:
        rule = "this planner needs rates that vary over time"
        raise input_error(
            rule,
            key=f"planner {planner.name}",
            value="constant rates of " + (", ".join(problem.network.streams) or "no stream"),
            hint="give `rate` as a list or a CSV file, one sample a second",
        )
    if ("rates" in needs or "series" in needs) and missing:
        rule = "this planner needs the streams' rates"
        raise input_error(
            rule,
            key=f"planner {planner.name}",
            value="no rate for " + ", ".join(missing),
            hint="state `rate` for these streams, or use rod or resilient, which need none",
        )
