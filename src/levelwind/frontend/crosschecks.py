"""Checks across parts: nodes that a cluster must have, and what streams with a source must state."""

from __future__ import annotations

from levelwind.frontend.document import KeyPath
from levelwind.frontend.draft import Sketch
from levelwind.model import Cluster


def check_nodes(sketch: Sketch, cluster: Cluster) -> None:
    """Every node that the file names is in the cluster."""
    known = frozenset(cluster.names)
    named: list[tuple[str | None, KeyPath]] = [
        *((stream.node, ("streams", name, "node")) for name, stream in sketch.streams.items()),
        *((draft.get("pinned"), (*draft.path, "pinned")) for draft in sketch.all_drafts),
        *((output.node, ("outputs", name, "node")) for name, output in sketch.outputs.items()),
    ]
    for node, path in named:
        if node is not None and node not in known:
            hint = sketch.report.suggest(node, cluster.names)
            sketch.report.add(path, "must be a node of the cluster", node, hint)


def check_sources(sketch: Sketch) -> None:
    """A stream that will really flow states its columns and its time, if anybody looks at them."""
    looked_at = {
        port.source for draft in sketch.all_drafts if draft.kind != "model" for port in draft.inputs
    } | {output.input.source for output in sketch.outputs.values()}
    stated = sketch.report.document.value.get("streams") or {}
    for name, stream in sketch.streams.items():
        if stream.source is None or name not in looked_at:
            continue
        keys = stated.get(name) or {}
        for key in ("schema", "time"):
            if key not in keys:
                rule = f"a stream with a source must state {key!r} if operators look at its rows"
                sketch.report.add(("streams", name, key), rule)
