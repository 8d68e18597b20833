"""Cluster and placement files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from levelwind.errors import InputError, Problem
from levelwind.frontend import check_placement, load_cluster, load_placement
from levelwind.model import Cluster, Plan, PlanStatus

TWO = """\
nodes:
  - {name: n1, cpu: 1.0, memory: 2GB, bandwidth: 100Mbps, host: h, properties: {rack: a}}
  - {name: n2}
"""


def cluster(tmp_path: Path, text: str, **files: str) -> Cluster:
    for name, content in files.items():
        (tmp_path / f"{name}.csv").write_text(content)
    (tmp_path / "cluster.yaml").write_text(text)
    return load_cluster(tmp_path / "cluster.yaml")


def problems(tmp_path: Path, text: str, **files: str) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        cluster(tmp_path, text, **files)
    return caught.value.problems


def test_nodes_in_base_units(tmp_path: Path) -> None:
    found = cluster(tmp_path, TWO + "network_bandwidth: 1Gbps\n")
    first, second = found.nodes
    assert (first.memory_bytes, first.bandwidth_bytes_per_s, first.host) == (2e9, 12.5e6, "h")
    assert first.properties == {"rack": "a"}
    assert (second.cpu, second.memory_bytes) == (1.0, None)
    assert found.network_bandwidth_bytes_per_s == 125e6


@pytest.mark.parametrize(
    ("text", "key", "rule"),
    [
        ("{}", "nodes", "must have 'nodes'"),
        ("nodes: []", "nodes", "at least 1"),
        ("nodes: [{cpu: 1}]", "nodes[0].name", "must have 'name'"),
        ("nodes: [{name: a, cpu: 0}]", "nodes[0].cpu", "above 0"),
        ("nodes: [{name: a, cpu: .nan}]", "nodes[0].cpu", "finite"),
        ("nodes: [{name: a, memory: 2Gb}]", "nodes[0].memory", "size"),
        ("nodes: [{name: a, bandwidth: 100}]", "nodes[0].bandwidth", "needs a unit"),
        ("nodes: [{name: a, cores: 2}]", "nodes[0].cores", "no such key"),
        ("nodes: [{name: a}, {name: a}]", "nodes[1].name", "unique"),
        ("nodes: [{name: a.b}]", "nodes[0].name", "without"),
        ("nodes: [{name: a}]\nlatency: none.csv", "latency", "must exist"),
        ("nodes: [{name: a}]\ntopology: none.graphml", "topology", "must exist"),
    ],
)
def test_cluster_rules(tmp_path: Path, text: str, key: str, rule: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert problem.key == key
    assert rule in problem.rule
    assert problem.line == (2 if "\n" in text else 1)


@pytest.mark.parametrize(
    "matrix",
    [
        "n1,n2\n0,5\n7,0\n",
        ",n1,n2\nn1,0,5\nn2,7,0\n",
        "node,n2,n1\nn2,0,7\nn1,5,0\n",
        "n3,n1,n2\n0,1,1\n1,0,5\n1,7,0\n",
    ],
    ids=["plain", "labelled", "in another order", "with a node too many"],
)
def test_latency(tmp_path: Path, matrix: str) -> None:
    assert cluster(tmp_path, TWO + "latency: m.csv\n", m=matrix).latency_ms == ((0, 5), (7, 0))


@pytest.mark.parametrize(
    ("matrix", "line", "rule", "value"),
    [
        ("n1,n2\n0,5\n7,\n", 3, "missing", "n2 to n2"),
        ("n1,n2\n0,5\n7\n", 3, "missing", "n2 to n2"),
        ("n1,n2\n,5\n7,0\n", 2, "missing", "n1 to n1"),
        ("n1,n2\n0,5\n", 1, "its row", "n2"),
        ("n1,n2\n0,-5\n7,0\n", 2, "milliseconds", "-5"),
        ("n1,n2\n0,inf\n7,0\n", 2, "milliseconds", "inf"),
        ("n1,n2\n0,x\n7,0\n", 2, "milliseconds", "x"),
        ("n1,n3\n0,5\n7,0\n", 1, "in the header", "n2"),
        ("n1,n2,n2\n0,5,5\n7,0,0\n7,0,0\n", 1, "only once", "n2"),
    ],
)
def test_broken_latency(tmp_path: Path, matrix: str, line: int, rule: str, value: str) -> None:
    (problem,) = problems(tmp_path, TWO + "latency: m.csv\n", m=matrix)
    assert problem.file == str(tmp_path / "m.csv")
    assert problem.line == line
    assert rule in problem.rule
    assert value in (problem.value or "")


def test_empty_latency_file(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, TWO + "latency: m.csv\n", m="")
    assert problem.key == "latency"


def test_placement_as_plan_or_bare(tmp_path: Path) -> None:
    plan = Plan(planner="rod", status=PlanStatus.PLACED, placement={"o1": "n1", "busy[0]": "n2"}).as_dict()
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "bare.json").write_text(json.dumps(plan["placement"]))
    (tmp_path / "bare.yaml").write_text("o1: n1\nbusy[0]: n2\n")
    assert load_placement(tmp_path / "plan.json") == (plan["placement"], plan)
    assert load_placement(tmp_path / "bare.json") == (plan["placement"], None)
    assert load_placement(tmp_path / "bare.yaml") == (plan["placement"], None)


@pytest.mark.parametrize(
    ("text", "key"),
    [('{"o1": 3}', "o1"), ('{"placement": {"o1": null}}', "placement.o1"), ("[]", "")],
)
def test_broken_placement(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InputError) as caught:
        load_placement(tmp_path / "p.json")
    (problem,) = caught.value.problems
    assert problem.key == key


def test_check_placement() -> None:
    found = check_placement({"o1": "n1", "o22": "n2", "o3": "n33"}, ["o1", "o2", "o3"], Cluster.equal(3))
    assert [(problem.key, problem.value) for problem in found] == [
        ("o22", "'o22'"),
        ("o3", "'n33'"),
        ("o2", None),
    ]
    assert "'o2'" in (found[0].hint or "")
    assert "'n3'" in (found[1].hint or "")
    assert check_placement({"o1": "n1"}, ["o1"], Cluster.equal(1)) == ()
