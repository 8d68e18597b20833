"""Runs a scenario: the simulator in steps, statistics out of it, the manager's instructions back in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import floor
from time import perf_counter
from typing import Protocol

import numpy as np

from levelwind import planning
from levelwind.control.allotment import placed_by_group, tiered_plan
from levelwind.control.events import (
    Event,
    Heartbeat,
    MoveDone,
    MoveFailed,
    NodeJoined,
    NodeLost,
    QueryAdded,
    QueryRemoved,
    StatisticsReported,
)
from levelwind.control.instructions import Alarm, Instruction, Move, Place
from levelwind.errors import RunError
from levelwind.loads.problem import make_problem
from levelwind.model import Cluster, Model, Network, PlanStatus, Stream
from levelwind.rewrite import Shared, share
from levelwind.sim.counts import Counts
from levelwind.sim.levels import at_level, base_rates
from levelwind.sim.outcome import Moved, Outcome
from levelwind.sim.queries import Queries
from levelwind.sim.recording import Recording
from levelwind.sim.scenario import Chains, Change, Scenario
from levelwind.sim.simulator import Simulator
from levelwind.sim.starts import connected_start, random_start
from levelwind.sim.statistics import IdealLoads, Window
from levelwind.sim.tables import NOWHERE, Floats, Ints, Table
from levelwind.sim.turns import Turns
from levelwind.sim.workloads import make_arrivals

# Two times nearer than this are the same: they come from different sums.
_SAME_S = 1e-9


class Manages(Protocol):
    """What drives a run: told what happened, it answers with what is to be done."""

    def handle(self, event: Event) -> tuple[Instruction, ...]:
        """Take an event in; see `levelwind.control`."""
        ...


ManagerFactory = Callable[[Network, Scenario, dict[str, str], np.random.Generator], Manages]


def simulate(
    scenario: Scenario,
    *,
    seed: int = 0,
    manager: ManagerFactory | None = None,
    trace: Callable[[Table], None] | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> Outcome:
    """Run a scenario to its end.

    Parameters
    ----------
    seed
        Of all chance. Network, rates, workload, start, planner, kernel and manager each have generators of
        their own: the same seed gives two planners the same network under the same rows.
    manager
        Makes the manager; without it `levelwind.control.manager.Manager` with the scenario's policy, if that
        names one.
    trace
        Called with pieces of the trace.
    progress
        Called with seconds simulated and seconds in all.

    Notes
    -----
    O(events × log(nodes + streams) + samples × operators × streams).
    """
    return Run(scenario, seed=seed, manager=manager, trace=trace, progress=progress).outcome()


class Run:
    """One simulation, from the warm-up to the end."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int = 0,
        manager: ManagerFactory | None = None,
        trace: Callable[[Table], None] | None = None,
        progress: Callable[[float, float], None] | None = None,
    ) -> None:
        seeds = np.random.SeedSequence(seed).spawn(7)
        network_rng, rate_rng, workload_rng, start_rng, plan_rng, kernel_rng, self._manager_rng = map(
            np.random.default_rng, seeds
        )
        self.scenario = scenario
        made = scenario.network
        written = made.network(network_rng) if isinstance(made, Chains) else made
        shared = share(written, models=True) if scenario.reuse else Shared.alone(written)
        self.network = shared.network
        self.problem = make_problem(self.network, scenario.cluster)
        means = base_rates(self.network, rate_rng)
        arrivals = make_arrivals(
            scenario.workload, self.network, means, horizon_s=scenario.horizon_s, rng=workload_rng
        )
        if scenario.load is not None:
            arrivals = at_level(
                self.problem, arrivals, scenario.load, from_s=scenario.warmup_s, until_s=scenario.horizon_s
            )
        self.ideal = IdealLoads(self.problem)
        edges = np.array([scenario.warmup_s, scenario.horizon_s])
        expected = np.array([arrivals[name].rows(edges)[0] for name in self.network.streams])
        start = self._start(expected / scenario.duration_s, start_rng)
        self.simulator = Simulator(
            self.problem,
            arrivals,
            self.problem.placement(start),
            horizon_s=scenario.horizon_s,
            seed=int(kernel_rng.integers(2**63)),
            choices=replace(scenario.choices, queues="operator") if scenario.scheduling else scenario.choices,
            trace=trace,
        )
        if self.simulator.plumbing.spread:
            self.ideal.follow_parts(self.simulator.plumbing.spread)
        self._names = self.problem.physical.names
        self._queries = Queries(shared, self._names, scenario.changes)
        self._present = self._queries.present
        self._fresh: set[int] = set()
        if not self._present.operators.all():
            self.simulator.attend(self._present.operators, self._present.network.outputs)
        self._number = {name: j for j, name in enumerate(self._names)}
        self._counts = Counts(self.simulator, self.problem.physical)
        self._turns = (
            None if scenario.scheduling is None else Turns(scenario.scheduling, self.simulator, seed)
        )
        self._factory = manager
        self._plan_seed = int(plan_rng.integers(2**63))
        self._progress = progress
        self._window = Window(scenario.samples)
        self._arrived = self.simulator.arrived
        self._sampled = 0
        # Samples are counted so that one begins when recording does; what comes before the first is left out.
        self._first_s = scenario.warmup_s - scenario.sample_s * floor(
            scenario.warmup_s / scenario.sample_s + _SAME_S
        )
        self._kernel_s = 0.0
        self._moves: list[Moved] = []
        self._alarms: list[str] = []
        self._under_way: deque[tuple[float, int]] = deque()  # (end, operator), by end
        self._lost: set[int] = set()
        self._manager: Manages | None = None
        self._recording: Recording | None = None

    def outcome(self) -> Outcome:
        """Warm up, plan, record."""
        scenario, simulator = self.scenario, self.simulator
        simulator.record(np.inf)
        simulator.advance(max(0.0, self._first_s))  # also so that compiling is not counted as running
        self._arrived = simulator.arrived
        self._go_on(scenario.warmup_s)
        decided_on = self._apply_plan()
        simulator.record(scenario.warmup_s)
        self._recording = Recording(simulator, self.ideal, self._cpu(), self._lost)
        self._manager = self._make_manager()
        self._record()
        simulator.flush_trace()
        if self._manager is not None:
            decided_on = (self._window.loads, self._window.rates)
        return self._recording.outcome(
            loads=decided_on[0],
            rates=decided_on[1],
            moves=tuple(self._moves),
            kernel_seconds=self._kernel_s,
            alarms=tuple(self._alarms),
        )

    # ---- time

    def _record(self) -> None:
        """From one time at which something is due to the next."""
        scenario = self.scenario
        changes = deque(sorted(scenario.changes, key=lambda change: change.at_s))
        begin, end, periods = scenario.warmup_s, scenario.horizon_s, 0
        self._report(begin)
        while True:
            due = [end, begin + (periods + 1) * scenario.period_s]
            if changes:
                due.append(begin + changes[0].at_s)
            if self._under_way:
                due.append(self._under_way[0][0])
            now = min(due)
            self._go_on(now)
            while self._under_way and self._under_way[0][0] <= now + _SAME_S:
                _, operator = self._under_way.popleft()
                self._tell(MoveDone(at_s=now, operator=self._names[operator]))
            while changes and begin + changes[0].at_s <= now + _SAME_S:
                self._change(changes.popleft(), now)
            if now >= end - _SAME_S:
                return
            if begin + (periods + 1) * scenario.period_s <= now + _SAME_S:
                periods += 1
                self._report(now)

    def _go_on(self, until_s: float) -> None:
        """Advance, and take every sample that ends on the way."""
        scenario, simulator = self.scenario, self.simulator
        while True:
            sample_end = self._first_s + (self._sampled + 1) * scenario.sample_s
            target = min(until_s, sample_end)
            if target > simulator.now_s:
                began = perf_counter()
                simulator.advance(target)
                self._kernel_s += perf_counter() - began
            if sample_end > until_s + _SAME_S:
                return
            self._sample()

    def _sample(self) -> None:
        arrived = self.simulator.arrived
        rates = (arrived - self._arrived) / self.scenario.sample_s
        self._arrived = arrived
        self._sampled += 1
        load = np.where(self._present.operators, self.ideal.of(rates), 0.0)
        self.simulator.sweep()
        self._follow_parts()
        self._window.add(rates, load)
        if self._turns is not None:
            self._turns.sampled(self.scenario.sample_s)
        if self._recording is not None:
            self._recording.add(load, rates, self.scenario.sample_s)
        if self._progress is not None:
            self._progress(self.simulator.now_s, self.scenario.horizon_s)

    def _follow_parts(self) -> None:
        """Spread joins send by the nodes on which their parts stand now."""
        if self.simulator.follow_parts():
            self.ideal.follow_parts(self.simulator.plumbing.spread)

    # ---- the start and the plan

    def _start(self, rates: Floats, rng: np.random.Generator) -> Ints:
        start = self.scenario.start
        if not isinstance(start, str):
            return self.problem.assignment(start)
        if self.scenario.groups is not None:
            return self.problem.assignment(self._start_by_group(start, rates, rng))
        if start == "random":
            return random_start(self.problem, rng)
        return connected_start(self.problem, self.problem.operator_load @ self._variables(rates))

    def _start_by_group(self, start: str, rates: Floats, rng: np.random.Generator) -> dict[str, str]:
        """Queries are allotted to groups by their load; in each group the start is as asked for."""
        assert self.scenario.groups is not None
        named = dict(zip(self.network.streams, rates.tolist(), strict=True))
        streams = {n: replace(s, rate=(named[n],)) for n, s in self.network.streams.items()}

        def place(part: Network, nodes: Cluster) -> Mapping[str, str]:
            problem = make_problem(part, nodes)
            if start == "random":
                return problem.placement(random_start(problem, rng))
            return problem.placement(connected_start(problem, problem.mean_load))

        network = replace(self.network, streams=streams)
        return placed_by_group(network, self.scenario.cluster, self.scenario.groups, place)

    def _variables(self, rates: Floats) -> Floats:
        named = dict(zip(self.network.streams, rates.tolist(), strict=True))
        return make_problem(self.network, self.scenario.cluster, rates=named).variable_rates.mean(axis=1)

    def _apply_plan(self) -> tuple[Floats, Floats]:
        """Put the planner's plan into force; the loads and rates of the window that it was made from."""
        scenario, simulator = self.scenario, self.simulator
        decided_on = (self._window.loads, self._window.rates)
        assignment = simulator.assignment
        if scenario.planner is not None:
            assignment = self._plan(assignment)
        if scenario.clean:
            simulator.restart_clean(assignment)
        else:
            reason = "" if scenario.planner is None else f"plan of {scenario.planner.name}"
            for operator in np.flatnonzero(assignment != simulator.assignment).tolist():
                self._move(operator, int(assignment[operator]), reason)
        self._follow_parts()
        return decided_on

    def _plan(self, current: Ints) -> Ints:
        """A plan by what the window has seen of the streams."""
        assert self.scenario.planner is not None
        rates = self._window.rates
        streams = {
            name: replace(stream, rate=tuple(rates[k].tolist()))
            for k, (name, stream) in enumerate(self.network.streams.items())
        }
        name, options = self.scenario.planner.name, self.scenario.planner.options
        network = _sampled(self._present.network, streams, rates.shape[1])
        if self.scenario.groups is not None:
            placement = tiered_plan(
                network,
                self.scenario.cluster,
                self.scenario.groups,
                name,
                options=options,
                seed=self._plan_seed,
                current=self._placement(current),
            )
            return self._assignment(placement)
        plan = planning.plan(
            network,
            self.scenario.cluster,
            name,
            options=options,
            seed=self._plan_seed,
            current=self._placement(current),
        )
        if plan.status is not PlanStatus.PLACED:
            message = f"planner {plan.planner} has no plan: {plan.status.value}. " + "; ".join(plan.notes)
            raise RunError(message)
        return self._assignment(plan.placement)

    def _placement(self, assignment: Ints) -> dict[str, str]:
        """Where the operators stand that are there."""
        nodes = self.problem.cluster.names
        return {name: nodes[i] for name, i in zip(self._names, assignment.tolist(), strict=True) if i >= 0}

    def _assignment(self, placement: Mapping[str, str]) -> Ints:
        """The node of each operator; that of one that is not there is nowhere."""
        nodes = {name: i for i, name in enumerate(self.problem.cluster.names)}
        there = zip(self._names, self._present.operators.tolist(), strict=True)
        return np.array([nodes[placement[name]] if here else NOWHERE for name, here in there], dtype=np.int64)

    # ---- the manager

    def _make_manager(self) -> Manages | None:
        placement, network = self._placement(self.simulator.assignment), self._present.network
        if self._factory is not None:
            return self._factory(network, self.scenario, placement, self._manager_rng)
        if self.scenario.policy is None and not self.scenario.changes and self.scenario.groups is None:
            return None
        from levelwind.sim.managing import make_manager

        return make_manager(network, self.scenario, placement, self._manager_rng)

    def _report(self, now: float) -> None:
        if self._manager is not None:
            if self.scenario.silent_after_s is not None:
                for number, name in enumerate(self.simulator.node_names):
                    if number not in self._lost:
                        self._tell(Heartbeat(at_s=now, node=name))
            wanted: frozenset[str] = getattr(self._manager, "statistics", frozenset())
            self._tell(self._statistics(now, wanted))

    def _statistics(self, now: float, wanted: frozenset[str]) -> StatisticsReported:
        """What the window holds of the operators that are there."""
        names, loads, there = self._names, self._window.loads, self._present.operators
        counted = self._counts.report(now, wanted)
        began = self._first_s + (self._sampled - loads.shape[1]) * self.scenario.sample_s
        if not there.all():
            names, loads = tuple(name for name, here in zip(names, there, strict=True) if here), loads[there]
            counted["seen"] = {key: figures[there] for key, figures in counted.get("seen", {}).items()}
        return StatisticsReported(
            at_s=now, operators=names, series=loads, window_s=max(now - began, _SAME_S), **counted
        )

    def _tell(self, event: Event) -> None:
        """Tell the manager, do what it asks for, and tell it at once what could not be done."""
        if self._manager is None:
            return
        events = deque([event])
        while events:
            for instruction in self._manager.handle(events.popleft()):
                failed = self._obey(instruction)
                if failed is not None:
                    events.append(failed)

    def _obey(self, instruction: Instruction) -> MoveFailed | None:
        if isinstance(instruction, Alarm):
            self._alarms.append(instruction.text)
            return None
        if not isinstance(instruction, Move | Place):
            return None  # what goes with its queries is gone already
        target = instruction.target if isinstance(instruction, Move) else instruction.node
        simulator, now = self.simulator, self.simulator.now_s
        operator, node = self._number.get(instruction.operator), self._node(target)
        if operator is None:
            reason = "there is no such operator"
        elif node is None:
            reason = f"{target} is not there"
        else:
            at = int(simulator.assignment[operator])
            if operator in self._fresh:
                self._fresh.remove(operator)
                simulator.place(operator, node)  # it has nothing to bring along
                return None
            if at >= 0 and simulator.away[operator]:
                reason = "it is on its way already"
            elif at == node:
                reason = "it stands there already"
            else:
                self._move(operator, node, instruction.reason)
                return None
        return MoveFailed(at_s=now, operator=instruction.operator, reason=reason)

    def _move(self, operator: int, node: int, reason: str) -> None:
        simulator, names = self.simulator, self.simulator.node_names
        source = int(simulator.assignment[operator])
        self._moves.append(
            Moved(
                at_s=simulator.now_s - self.scenario.warmup_s,
                operator=self._names[operator],
                source=names[source] if source >= 0 else "",
                target=names[node],
                load=float(self._window.mean_load[operator]),
                reason=reason,
            )
        )
        simulator.move(operator, node, takes_s=self.scenario.migration_s)
        self._under_way.append((simulator.now_s + self.scenario.migration_s, operator))

    # ---- nodes and queries that come and go

    def _node(self, name: str) -> int | None:
        """Number of the node of this name that is there: one that comes back gets a number of its own."""
        named = (i for i, own in enumerate(self.simulator.node_names) if own == name and i not in self._lost)
        return next(named, None)

    def _change(self, change: Change, now: float) -> None:
        simulator = self.simulator
        if change.added or change.removed:
            self._change_queries(change, now)
        if change.joined is not None:
            node = change.joined
            bandwidth = np.inf if node.bandwidth_bytes_per_s is None else node.bandwidth_bytes_per_s
            simulator.add_node(node.name, cpu=node.cpu, bandwidth=bandwidth)
            self._tell(NodeJoined(at_s=now, node=node))
        if change.lost is not None:
            node_number = self._node(change.lost)
            assert node_number is not None
            self._lost.add(node_number)
            simulator.lose_node(node_number)
            # What was on its way there never arrives; the manager places it anew.
            nowhere = set(np.flatnonzero(simulator.assignment < 0).tolist())
            self._under_way = deque(item for item in self._under_way if item[1] not in nowhere)
            if self.scenario.silent_after_s is None:  # otherwise silence tells
                self._tell(NodeLost(at_s=now, node=change.lost))

    def _change_queries(self, change: Change, now: float) -> None:
        """Operators that no query uses any more go; new ones begin where the manager says."""
        before = self._present.operators
        self._present = after = self._queries.change(change)
        self.simulator.attend(after.operators, after.network.outputs)
        self._fresh = {j for j in self._fresh if after.operators[j]}
        self._fresh |= set(np.flatnonzero(after.operators & ~before).tolist())
        self._under_way = deque(item for item in self._under_way if after.operators[item[1]])
        if not change.added:
            self._tell(QueryRemoved(at_s=now, network=after.network))
            return
        # What they would have asked for at the rates that the window has seen.
        expected = self.ideal.of(self._window.rates.mean(axis=1))
        loads = {self._names[j]: float(expected[j]) for j in self._fresh}
        self._tell(QueryAdded(at_s=now, network=after.network, loads=loads))

    def _cpu(self) -> Floats:
        joined = [change.joined.cpu for change in self.scenario.changes if change.joined is not None]
        return np.concatenate([self.problem.cpu, joined])


def _sampled(network: Network, streams: Mapping[str, Stream], samples: int) -> Network:
    """The network with measured rates in place of stated ones; stated load series cut to as many samples."""
    operators = dict(network.operators)
    for name, operator in network.operators.items():
        if isinstance(operator.spec, Model) and operator.spec.series is not None:
            series = tuple(np.resize(np.array(operator.spec.series), samples).tolist())
            operators[name] = replace(operator, spec=replace(operator.spec, series=series))
    return replace(network, streams=streams, operators=operators)
