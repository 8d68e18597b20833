"""Networks that change while they run: which of them a checkpoint goes on with, and what a change did.

A network that was changed is kept in the checkpoint, named by a digest, and every commit says which one its
step ran. So a change is real with the first commit that names it, and a restart goes on with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from levelwind.errors import Problem
from levelwind.frontend import parse_network
from levelwind.frontend.writing import network_document
from levelwind.model import Network
from levelwind.rewrite import split
from levelwind.runtime.commits import Commit, Version
from levelwind.runtime.durable import write_whole
from levelwind.runtime.sources import is_own

NETWORKS = "networks"
ADD, REMOVE, WINDOWS = "add", "remove", "windows"


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was done to the network of a live run, or, if ``refused`` says why, was not."""

    command: str
    id: str = ""
    step: int = 0
    time: float = 0.0
    outputs: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    refused: str = ""


def difference(before: Network, after: Network) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Outputs and operators as placed that only one of the networks has."""
    return tuple(_only_in_one(before.outputs, after.outputs)), tuple(
        _only_in_one(
            {operator.name: operator for operator in split(before).operators},
            {operator.name: operator for operator in split(after).operators},
        )
    )


def _only_in_one(before: Any, after: Any) -> list[str]:
    return [name for name in {**before, **after} if (name in before) != (name in after)]


def digest(network: Network) -> str:
    """A short text that tells networks apart."""
    return hashlib.sha256(msgspec.json.encode(network_document(network))).hexdigest()[:16]


def as_kept(network: Network) -> Network:
    """The network as a checkpoint keeps it: equal, and its operators in the order in which they come back.

    Rows on their way name operators by number, so what runs and what is gone on with must agree on that.
    """
    return parse_network(network_document(network)).network


def store(directory: Path, network: Network) -> str:
    """Keep a network in a checkpoint; returns its name there."""
    name = digest(network)
    path = directory / NETWORKS / f"{name}.json"
    if not path.exists():
        write_whole(path, msgspec.json.format(msgspec.json.encode(network_document(network)), indent=1))
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """The network that a run goes on with, which version of it that is, and what the user should know."""

    network: Network
    version: Version | None = None
    notes: tuple[str, ...] = ()


def continued(network: Network, commit: Commit | None, directory: Path) -> Continued:
    """The network to go on with from a commit, if the run was started with ``network``.

    What was added and removed while it ran counts, as long as the file is still what it began with. A file
    that was changed since goes before: somebody wants something else now.
    """
    version = None if commit is None else commit.version
    if version is None:
        return Continued(network=network)
    stored = directory / NETWORKS / f"{version.network}.json"
    found = parse_network(msgspec.json.decode(stored.read_bytes())).network
    if digest(network) not in (version.origin, version.network):
        lost = [name for name in found.outputs if name not in network.outputs]
        note = f"given up, since the network was changed and does not have them: {', '.join(lost)}"
        return Continued(network=network, notes=(note,) if lost else ())
    return Continued(network=found, version=version)


def new_streams(before: Network, after: Network) -> list[str]:
    """The streams that only the second network has."""
    return [name for name in after.streams if name not in before.streams]


def refused_streams(before: Network, after: Network, given: Container[str] = ()) -> list[Problem]:
    """Streams that a run cannot take up: a Spark query must keep its sources.

    Traces and generators are read through one source, whatever their number: there can be more of them if
    there is one. Streams ``given`` as DataFrames are not read through it.
    """
    rule = "a stream that is added must be a trace or a generator, and the run must read one already"
    hint = "other sources are fixed when a run begins: give it to a run of its own"
    bundled = any(is_own(stream) and name not in given for name, stream in before.streams.items())
    return [
        Problem(rule=rule, key=f"streams.{name}", hint=hint)
        for name in new_streams(before, after)
        if not (bundled and is_own(after.streams[name]))
    ]
