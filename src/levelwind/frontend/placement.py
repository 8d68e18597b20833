"""Placement files: a plan's JSON, or the bare mapping of operators to nodes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from levelwind.errors import Problem
from levelwind.frontend.document import Document, read_document
from levelwind.frontend.report import BAD, Report
from levelwind.model import Cluster
from levelwind.model.frozen import FrozenMapping, frozen_mapping


def load_placement(path: str | os.PathLike[str]) -> tuple[FrozenMapping, dict[str, Any] | None]:
    """Reads where operators are to run.

    Returns
    -------
    placement
        Operator → node.
    plan
        The whole object if the file is `plan`'s answer, None if it is the bare mapping.
    """
    report = Report(read_document(path, what="a placement file"))
    value = report.document.value
    if not isinstance(value, dict):
        hint = "give plan's JSON, or {operator: node, …}"
        report.add((), "a placement file must be a mapping", value, hint)
        report.raise_problems()
    plan = value if isinstance(value.get("placement"), dict) else None
    before: tuple[str, ...] = () if plan is None else ("placement",)
    mapping = value if plan is None else plan["placement"]
    placement = {}
    for operator, node in mapping.items():
        if isinstance(node, str) and node:
            placement[operator] = node
        else:
            report.refuse((*before, operator), "must be the name of a node", node)
    report.raise_problems()
    assert BAD not in placement.values()
    return frozen_mapping(placement), plan


def check_placement(
    placement: Mapping[str, str], operator_names: Iterable[str], cluster: Cluster
) -> tuple[Problem, ...]:
    """What keeps a placement from being used: operators unknown or left out, nodes unknown.

    Parameters
    ----------
    placement
        Operator → node.
    operator_names
        The physical operators, instances of split ones included.
    cluster
        The nodes to choose from.
    """
    known = list(operator_names)
    operators, nodes = frozenset(known), frozenset(cluster.names)
    report = Report(Document(value=placement))
    for operator, node in placement.items():
        if operator not in operators:
            hint = report.suggest(operator, known)
            report.add((operator,), "a placed operator must be in the network", operator, hint)
        if node not in nodes:
            hint = report.suggest(node, cluster.names)
            report.add((operator,), "must be a node of the cluster", node, hint)
    for operator in known:
        if operator not in placement:
            report.add((operator,), "every operator must be placed")
    return report.problems
