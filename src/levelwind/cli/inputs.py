"""Reading what a command is given: files checked, warnings to stderr, problems named with their file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from levelwind.cli.output import warning
from levelwind.errors import InputError, Problem, did_you_mean, input_error

if TYPE_CHECKING:
    from levelwind.model import Cluster, Network, Plan

STANDARD_INPUT = "-"
MOST_NODES = 100_000  # a slip of the finger must not fill the memory
Placement = Mapping[str, str]
SECTIONS = ("streams", "operators", "queries", "outputs", "errors")


@contextmanager
def told_with(file: Path) -> Iterator[None]:
    """What is wrong with a network itself is told with its file."""
    try:
        yield
    except InputError as error:
        raise InputError(
            replace(problem, file=str(file)) if problem.key.split(".")[0] in SECTIONS else problem
            for problem in error.problems
        ) from None


def read_cluster(file: Path | None, nodes: int | None) -> Cluster:
    """The cluster of a file or of a number of equal nodes: one of the two must be given."""
    from levelwind.frontend import load_cluster
    from levelwind.model import Cluster

    if file is not None and nodes is not None:
        rule = "a cluster file and a number of nodes exclude each other"
        raise input_error(rule, key="--nodes", value=nodes, hint="leave one of --cluster and --nodes out")
    if nodes is not None:
        if not 1 <= nodes <= MOST_NODES:
            rule = f"must be a whole number from 1 to {MOST_NODES}"
            raise input_error(rule, key="--nodes", value=nodes)
        return Cluster.equal(nodes)
    if file is None:
        rule = "a cluster must be given"
        raise input_error(
            rule, key="--cluster", hint="name a cluster file, or give --nodes N for N equal nodes"
        )
    return load_cluster(file)


def read_network(file: Path, cluster: Cluster | None = None) -> Network:
    """The network of a file; its warnings go to stderr."""
    from levelwind.frontend import load_network

    loaded = load_network(file, cluster=cluster)
    for text in loaded.warnings:
        warning(f"{file}: {text}")
    return loaded.network


def read_both(network: Path, cluster: Path | None, nodes: int | None) -> tuple[Network, Cluster]:
    """The network and the cluster, checked against each other; the problems of both files come together."""
    problems: list[Problem] = []
    found = None
    try:
        found = read_cluster(cluster, nodes)
    except InputError as error:
        problems += error.problems
    try:
        loaded = read_network(network, found)
    except InputError as error:
        raise InputError((*problems, *error.problems)) from None
    if found is None:
        raise InputError(problems)
    return loaded, found


def read_placement(
    file: Path, network: Network, cluster: Cluster
) -> tuple[Placement, Mapping[str, Any] | None]:
    """A placement of every operator of the network, and the whole plan if the file holds one.

    A plan with reuse is for fewer operators than the network has: see `planned_network`.
    """
    from levelwind.frontend import check_placement
    from levelwind.rewrite import split

    placement, plan = _load_placement(file)
    with _named(_shown(file)):
        planned = planned_network(network, plan)
    problems = check_placement(placement, split(planned).names, cluster)
    if problems:
        raise InputError(replace(problem, file=_shown(file)) for problem in problems)
    return placement, plan


def planned_network(network: Network, plan: Mapping[str, Any] | None) -> Network:
    """The network that a plan is for: if it was made with reuse, that in which operators serve others."""
    shared, multicast = (plan or {}).get("shared"), (plan or {}).get("multicast")
    if not shared and not multicast:
        return network
    from levelwind.rewrite.reuse import as_planned

    if not isinstance(shared, dict) or not isinstance(multicast, list | None):
        rule = "a plan with reuse must say who is served by whom, and name the multicast operators"
        raise input_error(rule, key="shared", value=shared)
    return as_planned(network, {str(k): str(v) for k, v in shared.items()}, [str(m) for m in multicast or ()])


def read_plan(file: Path, network: Network, cluster: Cluster) -> tuple[Plan, Network]:
    """A placement as a plan, with its planner and reasons if the file states them, and what it is for."""
    from levelwind.model import Plan, PlanStatus

    placement, stated = read_placement(file, network, cluster)
    found = stated.get("reasons") if stated else None
    reasons = {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}
    planner = stated.get("planner") if stated else None
    plan = Plan(
        planner=planner if isinstance(planner, str) else "",
        status=PlanStatus.PLACED,
        placement=placement,
        reasons=reasons,
    )
    return plan, planned_network(network, stated)


def read_current(file: Path | None, network: Network, cluster: Cluster) -> Placement | None:
    """Where operators stand now. What network or cluster no longer have is left out, with a warning."""
    if file is None:
        return None
    from levelwind.rewrite import split

    placement, _ = _load_placement(file)
    operators, nodes = set(split(network).names), set(cluster.names)
    kept = {name: node for name, node in placement.items() if name in operators and node in nodes}
    if len(kept) < len(placement):
        gone = ", ".join(sorted(set(placement) - set(kept))[:8])
        more = " …" if len(placement) - len(kept) > 8 else ""
        warning(f"{_shown(file)}: operator or node not there any more, left out: {gone}{more}")
    return kept


def parse_settings(pairs: Sequence[str] | None, *, option: str = "--set") -> dict[str, str]:
    """``key=value`` pairs as a mapping; every pair that is none, and every key given twice, is a problem."""
    values: dict[str, str] = {}
    problems = []
    for pair in pairs or ():
        key, sign, value = (part.strip() for part in pair.partition("="))
        if not (key and sign and value):
            problems.append(Problem(rule="must be written key=value", key=option, value=pair))
        elif key in values:
            problems.append(Problem(rule="must be given once", key=f"{option} {key}", value=pair))
        values[key] = value
    if problems:
        raise InputError(problems)
    return values


def parse_rates(texts: Sequence[str] | None, network: Network) -> dict[str, float]:
    """``stream=rows_per_s,…`` as numbers, for streams that the network has."""
    pairs = [pair for text in texts or () for pair in text.split(",") if pair.strip()]
    rates: dict[str, float] = {}
    problems = []
    for stream, text in parse_settings(pairs, option="--rates").items():
        key = f"--rates {stream}"
        if stream not in network.streams:
            hint = did_you_mean(stream, network.streams)
            problems.append(Problem(rule="must be a stream of the network", key=key, value=stream, hint=hint))
            continue
        try:
            rates[stream] = float(text)
        except ValueError:
            rates[stream] = -1.0
        if not 0.0 <= rates[stream] < float("inf"):
            problems.append(Problem(rule="must be rows per second, zero or more", key=key, value=text))
    if problems:
        raise InputError(problems)
    return rates


def writable(file: Path | None, *, option: str) -> None:
    """Refuse a file that cannot be written before any work is done for it."""
    if file is None:
        return
    if file.is_dir():
        rule = "must be a file, not a directory"
        raise input_error(rule, key=option, value=file)
    if not file.absolute().parent.is_dir():
        rule = "must be in a directory that exists"
        raise input_error(rule, key=option, value=file)
    if not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
        rule = "must be writable"
        raise input_error(rule, key=option, value=file)


def _load_placement(file: Path) -> tuple[Placement, Mapping[str, Any] | None]:
    from levelwind.frontend import load_placement

    if str(file) != STANDARD_INPUT:
        return load_placement(file)
    with TemporaryDirectory() as folder, _named(_shown(file)):
        copy = Path(folder, "placement")
        copy.write_bytes(sys.stdin.buffer.read())
        return load_placement(copy)


def _shown(file: Path) -> str:
    return "<standard input>" if str(file) == STANDARD_INPUT else str(file)


@contextmanager
def _named(file: str) -> Iterator[None]:
    """Problems inside are problems of this file, whatever copy of it was read."""
    try:
        yield
    except InputError as error:
        raise InputError(replace(problem, file=file) for problem in error.problems) from None
