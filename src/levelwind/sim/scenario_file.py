"""Scenario files: read, checked whole together with the files that they name, turned into a `Scenario`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from levelwind.errors import InputError
from levelwind.frontend import check_placement, load_cluster, load_network, load_placement
from levelwind.frontend.document import (
    Document,
    KeyPath,
    mapping_document,
    parse_document,
    read_document,
)
from levelwind.frontend.draft import value_of
from levelwind.frontend.report import BAD, Report, Said
from levelwind.frontend.series import read_series, resolve_path
from levelwind.model import Cluster, Network
from levelwind.model.frozen import frozen_mapping
from levelwind.placement import make_planner
from levelwind.rewrite import split
from levelwind.sim.managing import make_policy, policy_remarks
from levelwind.sim.queries import query_problems
from levelwind.sim.scenario import Chains, Change, Named, Scenario
from levelwind.sim.scenario_keys import MOST_NODES, SCENARIO
from levelwind.sim.scheduling import make_scheduler
from levelwind.sim.workloads import OnOff, Periodic, Poisson, Recorded, Workload

_WHAT = "a scenario file"
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A scenario that has been checked whole, and what its author may want to know."""

    scenario: Scenario
    warnings: tuple[str, ...] = ()


def load_scenario(path: str | os.PathLike[str]) -> LoadedScenario:
    """Reads a scenario file, YAML or JSON, and the files that it names.

    Raises
    ------
    InputError
        With every problem of all these files, each with file, line and key.
    """
    return _Reader(read_document(path, what=_WHAT)).read()


def parse_scenario(
    source: str | Mapping[str, Any], *, base: str | os.PathLike[str] | None = None
) -> LoadedScenario:
    """A scenario from text or from a plain mapping; relative paths start from ``base``.

    Examples
    --------
    >>> parse_scenario('''
    ... generate: {chains: 2, length: 3}
    ... nodes: 2
    ... load: 0.5
    ... ''').scenario.duration_s
    120.0
    """
    document = parse_document(source, what=_WHAT) if isinstance(source, str) else mapping_document(source)
    document.base = None if base is None else Path(base).resolve()
    return _Reader(document).read()


class _Reader:
    """One document on its way to a scenario; problems gather in the report until the end."""

    def __init__(self, document: Document) -> None:
        self.report = Report(document)
        self.warnings: list[str] = []

    def read(self) -> LoadedScenario:
        report = self.report
        values = SCENARIO.read(report.document.value, (), report)
        if values is BAD:
            report.raise_problems()
        cluster = self._cluster(values)
        network = self._network(values, cluster)
        workload = self._workload(value_of(values, "workload"))
        start = self._start(value_of(values, "start", "random"), network, cluster)
        planner = self._named(values, "planner", lambda n: make_planner(n.name, n.options))
        policy = self._named(values, "policy", make_policy)
        scheduling = self._named(values, "scheduling", lambda n: make_scheduler(n.name, n.options))
        changes = self._changes(value_of(values, "events", ()), cluster)
        self._check_queries(value_of(values, "events", ()), network)
        self._check_rates(values, network)
        statistics = value_of(values, "statistics", {})
        window_s, samples = value_of(statistics, "window", 10.0), value_of(statistics, "samples", 10)
        warmup_s, duration_s = value_of(values, "warmup", 20.0), value_of(values, "duration", 120.0)
        self._check_times(window_s, samples, warmup_s, duration_s)
        period_s, silent_after_s = value_of(values, "period", 1.0), value_of(values, "silent_after")
        self._check_silence(silent_after_s, period_s)
        groups = self._groups(value_of(values, "groups"), cluster)
        self._check_joining(groups, value_of(values, "events", ()), cluster)
        report.raise_problems()
        assert network is not None
        assert cluster is not None
        scenario = Scenario(
            network=network,
            cluster=cluster,
            workload=workload,
            load=value_of(values, "load"),
            start=start,
            planner=planner,
            policy=policy,
            window_s=window_s,
            samples=samples,
            period_s=period_s,
            migration_s=value_of(values, "migration", 0.2),
            moved_load_budget=value_of(values, "moved_load_budget"),
            warmup_s=warmup_s,
            duration_s=duration_s,
            clean=value_of(values, "clean", False),
            changes=changes,
            scheduling=scheduling,
            silent_after_s=silent_after_s,
            groups=groups,
            reuse=value_of(values, "reuse", False),
        )
        if policy is not None and isinstance(network, Network):
            joined = [change.joined for change in changes if change.joined is not None]
            self.warnings += policy_remarks(policy, network, [*cluster.nodes, *joined])
        return LoadedScenario(scenario, tuple(self.warnings))

    def _file(self, key: str, name: Any, load: Callable[[str], _Found]) -> _Found | None:
        """What a file holds. One that cannot be read at all is a problem of the line that names it."""
        if name is None or name is BAD:
            return None
        try:
            return load(resolve_path(name, self.report.document.base))
        except InputError as error:
            for problem in error.problems:
                if problem.line is None and not problem.key:
                    self.report.add((key,), problem.rule, problem.value or name, problem.hint)
                else:
                    self.report.add_all([problem])
            return None

    def _cluster(self, values: dict[str, Any]) -> Cluster | None:
        nodes = value_of(values, "nodes")
        if nodes is not None and nodes > MOST_NODES:
            self.report.add(("nodes",), f"must be a whole number from 1 to {MOST_NODES}", nodes)
            return None
        if nodes is not None:
            return Cluster.equal(nodes)
        return self._file("cluster", value_of(values, "cluster"), load_cluster)

    def _network(self, values: dict[str, Any], cluster: Cluster | None) -> Network | Chains | None:
        made = value_of(values, "generate")
        if made is not None:
            return Chains(
                chains=value_of(made, "chains", 1),
                length=value_of(made, "length", 1),
                cost_s=value_of(made, "cost", (1e-3, 1e-3)),
                selectivity=value_of(made, "selectivity", (0.8, 1.2)),
            )
        name = value_of(values, "network")
        loaded = self._file("network", name, lambda file: load_network(file, cluster=cluster))
        if loaded is None:
            return None
        self.warnings += [f"{name}: {text}" for text in loaded.warnings]
        return loaded.network

    def _workload(self, values: Any) -> Workload:
        kind = value_of(values, "kind") if values else None
        if kind == "periodic":
            return Periodic(
                ratio=value_of(values, "ratio", 4.0),
                period_s=value_of(values, "period", 10.0),
                phases=value_of(values, "phases", "even"),
            )
        if kind == "onoff":
            share = value_of(values, "independent", 1 / 3)
            if not 0 < share <= 1:
                self.report.add(("workload", "independent"), "must be above 0 and at most 1", share)
            return OnOff(
                on_s=value_of(values, "on", 5.0), off_s=value_of(values, "off", 5.0), independent=share
            )
        return self._recorded(values) if kind == "trace" else Poisson()

    def _recorded(self, values: dict[str, Any]) -> Workload:
        path: KeyPath = ("workload", "path")
        file, names = value_of(values, "path"), value_of(values, "columns", (None,))
        times = value_of(values, "values", "rates") == "times"
        columns = []
        for name in names if file is not None else ():
            wanted = {"file": file} if name is None else {"file": file, "column": name}
            samples = read_series(wanted, path, self.report)
            if samples is None:
                continue
            if times and len(samples) < 2:
                self.report.add(path, "a recording of times must hold at least two", Said("1 time"))
            elif not times and not any(samples):
                self.report.add(path, "a recording of rates must not be 0 throughout", name or file)
            else:
                columns.append(samples)
        return Recorded(
            columns=tuple(columns),
            times=times,
            step_s=value_of(values, "step", 1.0),
            phases=value_of(values, "phases", "even"),
        )

    def _start(
        self, value: Any, network: Network | Chains | None, cluster: Cluster | None
    ) -> str | Mapping[str, str]:
        if value in ("random", "connected") or value is BAD:
            return str(value)
        if not os.path.exists(resolve_path(value, self.report.document.base)):
            rule = "must be random, connected or a placement file that exists"
            self.report.add(("start",), rule, value, self.report.suggest(value, ("random", "connected")))
            return "random"
        found = self._file("start", value, load_placement)
        if found is None or network is None or cluster is None:
            return "random"
        if isinstance(network, Chains):
            names: tuple[str, ...] = tuple(
                f"c{c}o{k}" for c in range(1, network.chains + 1) for k in range(1, network.length + 1)
            )
        else:
            names = split(network).names
        file = resolve_path(value, self.report.document.base)
        self.report.add_all(
            replace(problem, file=file) for problem in check_placement(found[0], names, cluster)
        )
        return found[0]

    def _named(self, values: dict[str, Any], key: str, make: Callable[[Named], Any]) -> Named | None:
        value = value_of(values, key)
        if value is None:
            return None
        named = Named(name=value[0], options=frozen_mapping(value[1]))
        try:
            make(named)
        except InputError as error:
            for problem in error.problems:
                _, _, option = problem.key.partition(".")
                path: KeyPath = (key, option) if option else (key,)
                self.report.add(path, problem.rule, Said(problem.value or named.name), problem.hint)
        return named

    def _changes(self, values: Any, cluster: Cluster | None) -> tuple[Change, ...]:
        made = []
        there = set(cluster.names) if cluster is not None else set()
        order = sorted(range(len(values)), key=lambda i: value_of(values[i], "at", 0.0))
        for i in order:
            value = values[i]
            lost, joined = value_of(value, "lost"), value_of(value, "joined")
            if lost is not None and cluster is not None and lost not in there:
                hint = self.report.suggest(lost, sorted(there))
                self.report.add(("events", i, "lost"), "must be a node that is there then", lost, hint)
            if joined is not None and value_of(joined, "name") in there:
                self.report.add(("events", i, "joined"), "node names must be unique", joined["name"])
            there -= {lost}
            node = None
            if joined is not None:
                there.add(value_of(joined, "name", ""))
                node = _node(joined)
            made.append(
                Change(
                    at_s=value_of(value, "at", 0.0),
                    lost=lost,
                    joined=node,
                    added=value_of(value, "added", ()),
                    removed=value_of(value, "removed", ()),
                )
            )
        return tuple(made)

    def _check_queries(self, values: Any, network: Network | Chains | None) -> None:
        """What comes must not be there yet, what goes must, and something must be left."""
        if network is None:
            return
        whole = Network(name="chains") if isinstance(network, Chains) else network
        told = [
            Change(
                at_s=value_of(value, "at", 0.0),
                added=value_of(value, "added", ()),
                removed=value_of(value, "removed", ()),
            )
            for value in values
        ]
        for number, problem in query_problems(whole, told):
            key = "added" if told[number].added else "removed"
            hint = problem.hint or self.report.suggest(str(problem.value), (*whole.outputs, *whole.queries))
            self.report.add(("events", number, key), problem.rule, problem.value, hint)

    def _check_rates(self, values: dict[str, Any], network: Network | Chains | None) -> None:
        """Without a load level rates are taken as stated, so they must be."""
        if "load" in values or network is None:
            return
        silent = (
            [] if isinstance(network, Chains) else [n for n, s in network.streams.items() if s.rate is None]
        )
        if isinstance(network, Chains) or silent:
            rule = "a scenario must state the load level unless the network states all rates"
            value = Said("no rate for " + ", ".join(silent[:8])) if silent else Said("generated chains")
            self.report.add(("load",), rule, value, "such as load: 0.8")

    def _groups(self, key: Any, cluster: Cluster | None) -> str | None:
        """The property that every node must state, where groups are asked for."""
        if key is None or key is BAD or cluster is None:
            return None
        without = [node.name for node in cluster.nodes if key not in node.properties]
        if without:
            rule = "must be a property that every node of the cluster states"
            self.report.add(("groups",), rule, key, f"{without[0]} does not")
        return str(key)

    def _check_joining(self, key: str | None, values: Any, cluster: Cluster | None) -> None:
        """A node that joins must belong to a group that there is; one that comes back belongs to its own."""
        if key is None or cluster is None:
            return
        group_of = {node.name: str(node.properties[key]) for node in cluster.nodes if key in node.properties}
        groups = sorted(set(group_of.values()))
        for i in sorted(range(len(values)), key=lambda i: value_of(values[i], "at", 0.0)):
            joined = value_of(values[i], "joined")
            if joined is None or not groups:
                continue
            name, stated = value_of(joined, "name", ""), (value_of(joined, "properties") or {}).get(key)
            allowed = [group_of[name]] if name in group_of else groups
            path: KeyPath = ("events", i, "joined", "properties")
            if stated is None and name not in group_of:
                rule = f"a node that joins must state {key!r}, which groups are made by"
                self.report.add(path, rule, hint="one of " + ", ".join(groups))
            elif stated is not None and str(stated) not in allowed:
                rule = "a node that joins must be in a group that there is, one that comes back in its own"
                self.report.add((*path, key), rule, stated, "one of " + ", ".join(allowed))
            group_of.setdefault(name, str(stated))

    def _check_silence(self, silent_after_s: Any, period_s: Any) -> None:
        """Nodes say once a period that they live: a shorter silence would drop all that are well."""
        if silent_after_s is not None and silent_after_s < 2 * period_s - 1e-9:
            rule = "must be at least twice the period, in which every node is heard of once"
            hint = f"make it {2 * period_s:g}s or longer, or the period shorter"
            self.report.add(("silent_after",), rule, Said(f"{silent_after_s:g} s"), hint)

    def _check_times(self, window_s: Any, samples: Any, warmup_s: Any, duration_s: Any) -> None:
        sample_s = window_s / samples
        if warmup_s < window_s - 1e-9:
            rule = "the warm-up must be at least as long as the statistics window"
            hint = f"make it {window_s:g}s or longer, or the window shorter"
            self.report.add(("warmup",), rule, Said(f"{warmup_s:g} s"), hint)
        if duration_s < sample_s - 1e-9:
            rule = f"the duration must hold at least one sample of the statistics, here {sample_s:g} s"
            self.report.add(("duration",), rule, Said(f"{duration_s:g} s"))


def _node(values: dict[str, Any]) -> Any:
    from levelwind.model import Node

    return Node(
        name=value_of(values, "name", ""),
        cpu=value_of(values, "cpu", 1.0),
        bandwidth_bytes_per_s=value_of(values, "bandwidth"),
        memory_bytes=value_of(values, "memory"),
        host=value_of(values, "host"),
        properties=frozen_mapping(value_of(values, "properties")),
    )
