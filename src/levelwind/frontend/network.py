"""Network files: read, checked whole, turned into the model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from levelwind.frontend.advice import warn
from levelwind.frontend.crosschecks import check_nodes, check_sources
from levelwind.frontend.document import (
    Document,
    KeyPath,
    collector_paused,
    mapping_document,
    parse_document,
    read_document,
)
from levelwind.frontend.draft import QUERY, Sketch, value_of
from levelwind.frontend.graph import claim_names, connect
from levelwind.frontend.network_keys import NETWORK
from levelwind.frontend.operators import build_drafts, build_operator
from levelwind.frontend.output_rows import compute_rows
from levelwind.frontend.outputs import build_errors, build_outputs, check_sinks
from levelwind.frontend.queries import build_query, claim_queries
from levelwind.frontend.report import BAD, Report
from levelwind.frontend.series import check_lengths
from levelwind.frontend.streams import build_streams
from levelwind.model import Cluster, Network

_WHAT = "a network file"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A network that has been checked whole, and what its author may want to know."""

    network: Network
    warnings: tuple[str, ...] = ()


def load_network(path: str | os.PathLike[str], *, cluster: Cluster | None = None) -> Loaded:
    """Reads a network file, YAML or JSON.

    Parameters
    ----------
    path
        The file. Relative paths inside it start from its directory.
    cluster
        If given, the nodes that the file names must be in it.

    Raises
    ------
    InputError
        With every problem of the file, each with its line and key.
    """
    return check_document(read_document(path, what=_WHAT), cluster)


def parse_network(
    source: str | Mapping[str, Any],
    *,
    cluster: Cluster | None = None,
    base: str | os.PathLike[str] | None = None,
) -> Loaded:
    """A network from text or from a plain mapping, as in a notebook.

    Parameters
    ----------
    source
        YAML or JSON text, or a mapping of the same shape.
    cluster
        If given, the nodes that it names must be in it.
    base
        The directory that relative paths start from; without it they are left alone.

    Examples
    --------
    >>> loaded = parse_network('''
    ... streams: {I1: {rate: 10}}
    ... operators:
    ...   - {name: o1, kind: model, input: I1, cost: 2ms, selectivity: 0.5}
    ... ''')
    >>> loaded.network.operators["o1"].cost_s
    0.002
    """
    document = parse_document(source, what=_WHAT) if isinstance(source, str) else mapping_document(source)
    document.base = None if base is None else Path(base).resolve()
    return check_document(document, cluster)


def check_document(document: Document, cluster: Cluster | None) -> Loaded:
    """Check what was read, and build the network."""
    with collector_paused():
        report = Report(document)
        values = NETWORK.read(document.value, (), report)
        if values is BAD:
            report.raise_problems()
        return _build(values, report, cluster)


def _build(values: dict[str, Any], report: Report, cluster: Cluster | None) -> Loaded:
    """The checks, in the order in which they build on each other; problems are raised at the end."""
    sketch = Sketch(report)
    lengths: dict[KeyPath, int] = {}
    sketch.streams = build_streams(value_of(values, "streams"), report, lengths)
    sketch.all_drafts = build_drafts(value_of(values, "operators"), report, lengths)
    claim_names(sketch)
    claim_queries(value_of(values, "queries"), sketch)
    for draft in connect(sketch):
        if draft.kind == QUERY:
            build_query(draft, sketch)
        else:
            compute_rows(draft, sketch)
    sketch.outputs = build_outputs(value_of(values, "outputs"), sketch)
    errors = build_errors(value_of(values, "errors"), report)
    check_sinks(sketch.outputs, errors, report)
    check_lengths(lengths, report)
    check_sources(sketch)
    if cluster is not None:
        check_nodes(sketch, cluster)
    if not (values.get("operators") or values.get("queries")) and report.count == 0:
        report.add((), "a network must have operators or queries")
    report.raise_problems()
    warn(sketch)
    network = Network(
        name=values.get("name", "network"),
        streams=sketch.streams,
        operators={name: build_operator(draft) for name, draft in sketch.all_operators().items()},
        outputs=sketch.outputs,
        queries=sketch.queries,
        errors=errors,
        hops=values.get("hops", "within"),
        trigger_s=values.get("trigger"),
    )
    return Loaded(network, tuple(report.warnings))
