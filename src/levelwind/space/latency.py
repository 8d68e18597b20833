"""Latencies of a cluster that states only its topology."""

from __future__ import annotations

from dataclasses import replace

from levelwind.model import Cluster
from levelwind.space.routes import find_routes


def with_latency(cluster: Cluster) -> Cluster:
    """The cluster with the latencies of its routes, if it has a topology and states none."""
    if cluster.latency_ms is not None or cluster.topology is None:
        return cluster
    routes = find_routes(cluster.topology)
    index = {name: i for i, name in enumerate(routes.names)}
    at = [index[name] for name in cluster.names]
    matrix = routes.latency_ms[at][:, at]
    return replace(cluster, latency_ms=tuple(tuple(row) for row in matrix.tolist()))
