"""Further streams, operators, queries and outputs for a network that runs already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from levelwind.errors import InputError
from levelwind.frontend.document import Document, KeyPath, mapping_document, read_document
from levelwind.frontend.network import check_document
from levelwind.frontend.report import Report
from levelwind.frontend.writing import network_document
from levelwind.model import Cluster, Network

_SECTIONS = ("streams", "queries", "outputs")
_OF_THE_RUN = ("hops", "trigger", "errors")


def read_addition(path: Path) -> dict[str, Any]:
    """What a file adds, as plain values; `extended` says whether it fits."""
    return _mapping(read_document(path, what="a network file"))


def extended(
    network: Network,
    added: Path | Mapping[str, Any],
    *,
    base: Path | None = None,
    cluster: Cluster | None = None,
) -> Network:
    """The network with what a file, or a mapping of its shape, adds to it; what was there is as it was.

    Parameters
    ----------
    added
        Sections of a network file. They may read what the network has, and must not use its names.
    base
        The directory that relative paths in a mapping start from.
    cluster
        If given, the nodes that the addition names must be in it.

    Raises
    ------
    InputError
        With every problem, in the lines and keys of what is added.
    """
    document = _document(added, base)
    whole = network_document(network)
    report = Report(document)
    told = _mapping(document)
    for key in _OF_THE_RUN:
        if key in told:
            report.add((key,), "is the run's own and cannot be added to it", hint="leave it out")
    merged = {key: value for key, value in told.items() if key not in _OF_THE_RUN}
    taken = {*network.streams, *network.operators, *network.queries}
    for path, name in _names(told):
        known = network.outputs if path[0] == "outputs" else taken
        if name in known:
            report.add(path, "must be a name that the run does not have yet", name)
    for section in _SECTIONS:
        own = merged.get(section)
        if own is None or isinstance(own, dict):
            merged[section] = {**whole.get(section, {}), **(own or {})}
    own = merged.get("operators")
    if own is None or isinstance(own, list):
        # What is new comes first, so that it has the numbers that it has in its file.
        names = {entry.get("name") for entry in own or () if isinstance(entry, dict)}
        merged["operators"] = [*(own or ()), *(o for o in whole["operators"] if o["name"] not in names)]
    document.value = {**merged, "name": network.name}
    try:
        found = check_document(document, cluster).network
    except InputError as error:
        report.add_all(problem for problem in error.problems if problem not in report.problems)
    report.raise_problems()
    return replace(
        network,
        streams={**found.streams, **network.streams},
        operators={**network.operators, **{n: o for n, o in found.operators.items() if n not in taken}},
        queries={**network.queries, **{n: q for n, q in found.queries.items() if n not in taken}},
        outputs={**network.outputs, **{n: o for n, o in found.outputs.items() if n not in network.outputs}},
    )


def _document(added: Path | Mapping[str, Any], base: Path | None) -> Document:
    if isinstance(added, Path):
        return read_document(added, what="a network file")
    document = mapping_document(added)
    document.base = base
    return document


def _mapping(document: Document) -> dict[str, Any]:
    if isinstance(document.value, dict):
        return document.value
    report = Report(document)
    report.add((), "a network file must be a mapping", document.value)
    raise InputError(report.problems)


def _names(told: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Every name that is given, with its place; what has no proper form is the parser's business."""
    for section in _SECTIONS:
        entries = told.get(section)
        for name in entries if isinstance(entries, dict) else ():
            yield (section, name), name
    operators = told.get("operators")
    for number, entry in enumerate(operators if isinstance(operators, list) else ()):
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            yield ("operators", number, "name"), entry["name"]
