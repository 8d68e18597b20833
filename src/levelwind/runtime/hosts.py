"""Which host each node of a run is bound to: as the cluster file states, and where executors are.

No Spark: who has an executor is asked by whoever drives this.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence

from levelwind.errors import InputError, input_error
from levelwind.model import Cluster

# Spark's own setting of how long to wait for executors; its default is 30 s.
PATIENCE = "spark.scheduler.maxRegisteredResourcesWaitingTime"
# Where no node states a host, nobody knows how many will come: this long without another, all are there.
SETTLED_S = 5.0
LOOK_S = 0.1

Addresses = Callable[[str], frozenset[str]]


def addresses_of(host: str) -> frozenset[str]:
    """The addresses that a name or an address stands for, as this machine knows them; none if unknown."""
    try:
        return frozenset(str(found[4][0]) for found in socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return frozenset()


def spelled(host: str, there: Collection[str], addresses: Addresses = addresses_of) -> str:
    """A host as executors spell it: one may say the name, the other the address. As stated if none is there.

    Spark compares letter by letter, so a node that is spelled in another way would never be found.
    """
    if host in there:
        return host
    own = addresses(host)
    return next((other for other in sorted(there) if own & addresses(other)), host)


def bound(
    stated: Sequence[str | None], there: Collection[str], addresses: Addresses = addresses_of
) -> tuple[str | None, ...]:
    """The host of each node: as stated, else hosts with an executor in turn; None where any will do."""
    if any(stated):
        return tuple(host and spelled(host, there, addresses) for host in stated)
    turn = sorted(there)
    return tuple(turn[number % len(turn)] if turn else None for number in range(len(stated)))


def bound_again(
    stated: Sequence[str | None],
    hosts: Sequence[str | None],
    there: Collection[str],
    addresses: Addresses = addresses_of,
) -> tuple[str | None, ...]:
    """The host of each node now that executors have come or gone.

    A node that states no host and has lost its own takes one that no node has, if there is such: executors
    that replace others may come elsewhere. All other nodes stay where they are, unless several share a host
    and more hosts have come since: then all take them in turn, anew.
    """
    more = set(hosts) < set(there) and len(set(hosts)) < len(hosts)
    if any(stated) or not any(hosts) or more:
        return bound(stated, there, addresses)
    free = deque(sorted(set(there) - set(hosts)))
    return tuple(free.popleft() if free and host not in there else host for host in hosts)


def wait_for_hosts(
    stated: Sequence[str | None],
    look: Callable[[], tuple[str, ...]],
    *,
    patience_s: float,
    addresses: Addresses = addresses_of,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[str, ...]:
    """Hosts with an executor, once all that are stated have one, or the patience is at its end.

    Where none is stated: once there are as many as nodes, or no more seem to come. Executors come one by one
    after a session has started.
    """
    began = changed = clock()
    there = look()
    while True:
        if any(stated):
            enough = set(bound(stated, there, addresses)) <= {None, *there}
        else:
            settled = bool(there) and clock() - changed >= SETTLED_S
            enough = len(there) >= len(stated) or settled
        if enough or clock() - began >= patience_s:
            return there
        sleep(LOOK_S)
        found = look()
        if found != there:
            there, changed = found, clock()


def without_executor(cluster: Cluster, hosts: Sequence[str | None], there: Collection[str]) -> str:
    """A line that names the nodes whose hosts have no executor, and who has one; empty if all have."""
    if not any(hosts) and not there:
        return "there is no executor yet: nodes are bound to hosts when there are some"
    missing = [
        f"{node.name} ({host})"
        for node, host in zip(cluster.nodes, hosts, strict=True)
        if host is not None and host not in there
    ]
    if not missing:
        return ""
    return (
        f"no executor on the hosts of {', '.join(missing)}: their operators are placed elsewhere until there"
        f" is one; {_who_has_one(there)}"
    )


def no_executor(
    stated: Sequence[str | None], there: Collection[str], master: str, patience_s: float
) -> InputError:
    """What to say where no node has an executor: hosts that nobody knows, or a cluster with nothing free."""
    hint = _who_has_one(there)
    hint += f"; for a longer wait than {patience_s:g} s set {PATIENCE}"
    if any(stated):
        rule = "the host of at least one node must have an executor"
        named = ", ".join(sorted({host for host in stated if host is not None}))
        return input_error(rule, key="nodes.host", value=named, hint=hint)
    return input_error("must have an executor", key="--master", value=master, hint=hint)


def _who_has_one(there: Collection[str]) -> str:
    if not there:
        return "there is no executor at all; has the cluster free cores and memory?"
    return f"there are executors on {', '.join(sorted(there))}"
