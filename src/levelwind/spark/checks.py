"""What is refused before anything is started, and what is taken if nothing is said."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from levelwind.errors import InputError, Problem
from levelwind.model import Cluster, Network
from levelwind.runtime.groups import groups_of
from levelwind.runtime.program import Layout, Program
from levelwind.runtime.sources import check_source, source_end
from levelwind.spark.run import check_runnable


def default_cluster(cluster: Cluster | int | None, master: str) -> Cluster:
    """The nodes: as given, or one per core of this machine."""
    if isinstance(cluster, Cluster):
        return cluster
    if cluster is None:
        inside = master.partition("[")[2].rstrip("]")
        cluster = int(inside) if inside.isdigit() else len(os.sched_getaffinity(0))
    return Cluster.equal(cluster)


def check_network(network: Network, sources: Collection[str], *, until_idle: bool) -> None:
    """Refuse what cannot be run before anything is started: sources, kernels, ends."""
    check_runnable(network, tuple(sources))
    problems: list[Problem] = []
    for name, stream in network.streams.items():
        if stream.source is None or name in sources:
            continue
        at = f"streams.{name}.source"
        problems += check_source(stream.source, stream.schema or (), stream.time, at=at)
        problems += _check_path(stream.source, at)
        if not problems and until_idle and _is_endless(stream.source, stream.schema or (), stream.time):
            rule, hint = "a source that is read until it ends must have an end", "leave --until-idle out"
            problems.append(Problem(rule=rule, key=at, value=str(stream.source["format"]), hint=hint))
    if problems:
        raise InputError(problems)
    # Every kernel is made once here: what cannot be carried out is refused by name, before Spark starts.
    layout = Layout(network)
    program = Program.of(layout, ("n1",), {box.name: "n1" for box in layout.boxes})
    groups_of(program, 0, 0)


ENDLESS = ("rate", "rate-micro-batch", "socket")
FILES = ("parquet", "csv", "json", "orc", "text", "avro", "xml")


def _check_path(source: Mapping[str, Any], at: str) -> list[Problem]:
    """What is wrong with the directory of a stream of files, if it is on this machine."""
    if source["format"] not in FILES:
        return []
    path = source.get("path")
    if path is None:
        return [Problem(rule="a source of files must say where they come", key=f"{at}.path")]
    local = str(path).removeprefix("file://")
    if "://" in local or any(sign in local for sign in "*?[{") or Path(local).exists():
        return []
    hint = "make the directory before the run; files may come later"
    return [Problem(rule="must be there", key=f"{at}.path", value=local, hint=hint)]


def _is_endless(source: Mapping[str, Any], schema: Any, time: str | None) -> bool:
    kind = str(source["format"])
    if kind in ENDLESS:
        return True
    return kind in ("trace", "generator") and source_end(source, schema, time) is None
