"""Topologies in GraphML: the physical network, which gives routes."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree

from levelwind.errors import InputError, did_you_mean
from levelwind.frontend.document import KeyPath, read_text
from levelwind.frontend.report import Report
from levelwind.model import Link, Topology

# What programs that write GraphML call the same thing, the first that a link has counts.
LATENCY_KEYS = ("latency_ms", "latency", "delay_ms", "delay", "prop_delay_ms")
WEIGHT_KEYS = ("weight", "routing_weight", "a")
NAME_KEYS = ("label", "name")


def read_topology(file: str, nodes: list[str], path: KeyPath, report: Report) -> Topology | None:
    """The topology in a GraphML file; every node of the cluster must be in it, by its id or its label.

    A link's latency is one-way ms under the key ``latency_ms`` (or ``latency``, ``delay``), its policy weight
    under ``weight``; one that states neither has latency 1 and no weight.
    """
    try:
        root = ElementTree.fromstring(read_text(file, what="the topology file"))
    except InputError as error:
        for problem in error.problems:
            report.add(path, problem.rule, file, problem.hint)
        return None
    except ElementTree.ParseError as error:
        report.add(path, f"must be GraphML: {error}", file)
        return None
    keys = {
        str(key.get("id")): str(key.get("attr.name"))
        for key in root.iter()
        if _tag(key) == "key" and key.get("attr.name")
    }
    names = _names(root, keys, nodes)
    if not names:
        report.add(path, "a topology must have nodes", file)
        return None
    for name in nodes:
        if name and name not in set(names.values()):
            hint = did_you_mean(name, list(names.values())[:50])
            report.add(path, "every node of the cluster must be in the topology", name, hint)
    links = []
    for edge in (element for element in root.iter() if _tag(element) == "edge"):
        ends = [str(edge.get(end)) for end in ("source", "target")]
        if unknown := [end for end in ends if end not in names]:
            report.add(path, "a link must join nodes of the topology", unknown[0])
            continue
        values = _values(edge, keys)
        try:
            latency, weight = _number(values, LATENCY_KEYS), _number(values, WEIGHT_KEYS)
        except ValueError as error:
            report.add(path, "a link's latency and weight must be numbers of at least 0", str(error))
            continue
        links.append(
            Link(
                source=names[ends[0]],
                target=names[ends[1]],
                latency_ms=1.0 if latency is None else latency,
                weight=weight,
            )
        )
    return Topology(nodes=tuple(dict.fromkeys(names.values())), links=tuple(links), path=file)


def _names(root: ElementTree.Element, keys: Mapping[str, str], nodes: list[str]) -> dict[str, str]:
    """Name by id: the id itself, unless only the labels are what the cluster's nodes are called."""
    found = [element for element in root.iter() if _tag(element) == "node"]
    ids = [str(element.get("id")) for element in found]
    if not set(nodes) <= set(ids):
        labels = []
        for element in found:
            values = _values(element, keys)
            labels.append(next((values[key] for key in NAME_KEYS if key in values), str(element.get("id"))))
        if set(nodes) <= set(labels) and len(set(labels)) == len(labels):
            return dict(zip(ids, labels, strict=True))
    return {name: name for name in ids}


def _values(element: ElementTree.Element, keys: Mapping[str, str]) -> dict[str, str]:
    """What an element states, by the names of its keys."""
    return {
        keys.get(str(data.get("key")), ""): (data.text or "").strip()
        for data in element
        if _tag(data) == "data"
    }


def _number(values: Mapping[str, str], names: tuple[str, ...]) -> float | None:
    for name in names:
        if name in values:
            number = float(values[name])
            if not 0 <= number < float("inf"):
                raise ValueError(values[name])
            return number
    return None


def _tag(element: ElementTree.Element) -> str:
    """The element's name without its namespace."""
    return element.tag.rpartition("}")[2]
