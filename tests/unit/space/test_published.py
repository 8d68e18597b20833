"""Published networks become clusters, and what is wrong with their files is told with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from levelwind.errors import InputError
from levelwind.frontend import load_cluster
from levelwind.model import Cluster, Link, Node, Topology
from levelwind.space import find_routes
from levelwind.space.published import cluster_files, kind_of, plain_names, read_published, usual_latency
from levelwind.space.readers import (
    read_gtitm,
    read_rocketfuel,
    read_rtt_matrix,
    read_rtt_slices,
    read_topology_zoo,
)

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the data sets are not beside the project")
VERTICES = (
    "GRAPH (#nodes):\n3 2\n\nVERTICES (index name):\n0 T:0\n1 S:0\n2 S:1\n\nEDGES (from to length a):\n"
)
ROCKETFUEL = "asn,source,target,latency_ms,weight\n"
PLACES = "topology,node,name\nA,0,Rome\nA,1,Bonn\n"
LINKS = "topology,source,target,dist_km\n"


def problems(read, *arguments):
    with pytest.raises(InputError) as caught:
        read(*arguments)
    return caught.value.problems


def written(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    ("edges", "lines", "rule"),
    [
        ("0 9 1 1\n1 2 1 1\n", [10], "two vertices"),
        ("0 1\n", [10], "two vertices"),
        ("0 1 far 1\n1 2 1 many\n", [10, 11], "numbers"),
        ("0 1 -3 1\n", [10], "at least 0"),
        ("0 1 nan\n", [10], "at least 0"),
    ],
)
def test_broken_gtitm(tmp_path, edges, lines, rule):
    found = problems(read_gtitm, written(tmp_path, "g.alt", VERTICES + edges))
    assert [problem.line for problem in found] == lines
    assert all(rule in problem.rule and problem.file.endswith("g.alt") for problem in found)


def test_a_file_that_is_no_graph(tmp_path):
    (problem,) = problems(read_gtitm, written(tmp_path, "g.alt", "hello\n"))
    assert "VERTICES" in problem.rule


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("asn,source,target,latency\n1,a,b,2\n", "latency_ms", 1),
        (ROCKETFUEL + "1,a,b,2,1\n1,b,c,slow,1\n", "latency_ms", 3),
        (ROCKETFUEL + "1,a,b,2,-1\n", "weight", 2),
        (ROCKETFUEL + "1,a,,2,1\n", "target", 2),
        (ROCKETFUEL + "1,a,b\n", "latency_ms", 2),
        (ROCKETFUEL + "2,a,b,1,1\n", "asn", None),
    ],
)
def test_broken_rocketfuel(tmp_path, text, key, line):
    first, *_ = problems(read_rocketfuel, written(tmp_path, "l.csv", text), 1)
    assert (first.key, first.line) == (key, line)


def test_broken_zoo(tmp_path):
    places = written(tmp_path, "nodes.csv", PLACES)
    links = written(tmp_path, "links.csv", LINKS + "A,0,1,200\nA,1,7,10\n")
    (problem,) = problems(read_topology_zoo, places, links, "A")
    assert (problem.line, problem.value) == (3, "7")
    (problem,) = problems(read_topology_zoo, places, links, "B")
    assert problem.key == "topology"
    assert problem.hint


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        ("a,b\n0,1\n1,x\n", 3, "milliseconds"),
        ("a,b\n0,\n1,0\n", 2, "milliseconds"),
        ("a,b\n0,-1\n1,0\n", 2, "milliseconds"),
        ("a,b\n0,nan\n1,0\n", 2, "milliseconds"),
        ("a,b\n0,1\n1\n", 3, "as many cells"),
        ("a,b\n0,1\n", None, "square"),
        ("a,b\n", None, "rows"),
        ("", None, "rows"),
    ],
)
def test_broken_matrix(tmp_path, text, line, rule):
    first, *_ = problems(read_rtt_matrix, written(tmp_path, "m.csv", text))
    assert first.line == line
    assert rule in first.rule


def test_files_that_are_not_there_or_not_whole(tmp_path):
    (problem,) = problems(read_gtitm, tmp_path / "none.alt")
    assert "must exist" in problem.rule
    (tmp_path / "cut.csv").write_bytes(gzip.compress(b"a,b\n0,1\n1,0\n" * 50)[:-9])
    (problem,) = problems(read_rtt_matrix, tmp_path / "cut.csv")
    assert "gzip" in problem.rule
    (problem,) = problems(read_rtt_slices, written(tmp_path, "s.parquet", "no"))
    assert "Parquet" in problem.rule
    pl.DataFrame({"slice": [1], "src": ["a"], "dst": [0]}).write_parquet(tmp_path / "t.parquet")
    found = problems(read_rtt_slices, tmp_path / "t.parquet")
    assert [problem.key for problem in found] == ["src", "rtt_s"]


def test_what_is_wrong_everywhere_is_told_by_its_first_lines(tmp_path):
    found = problems(read_gtitm, written(tmp_path, "g.alt", VERTICES + "0 1 x\n" * 500))
    assert len(found) == 20


def test_usual_latency_fills_what_was_not_measured():
    slices = np.array([[[0, 4.0], [np.nan, 0]], [[0, 6.0], [np.nan, 0]]])
    assert usual_latency(slices).tolist() == [[0, 5], [0, 0]]


def test_names_that_a_cluster_file_may_have():
    assert plain_names(["0", "Perth, Aus.", "Perth;Aus", "???", "a-b"]) == [
        "n0", "Perth_Aus", "Perth_Aus_2", "node", "a-b",
    ]  # fmt: skip


def test_files_of_a_cluster_are_read_as_they_were_written(tmp_path):
    links = (
        Link(source="a", target="r", latency_ms=1.25, weight=3.0),
        Link(source="r", target="b", latency_ms=2.0),
    )
    topology = Topology(nodes=("a", "r", "b"), links=links)
    latency = tuple(map(tuple, find_routes(topology).latency_ms.tolist()))
    made = Cluster(nodes=tuple(Node(name=n) for n in "arb"), latency_ms=latency, topology=topology)
    for name, text in cluster_files(made).items():
        (tmp_path / name).write_text(text)
    found = load_cluster(tmp_path / "cluster.yaml")
    assert (found.nodes, found.latency_ms) == (made.nodes, made.latency_ms)
    assert (found.topology.nodes, found.topology.links) == (topology.nodes, links)


@needs_data
@pytest.mark.parametrize(
    ("file", "name", "kind", "nodes", "linked"),
    [
        ("gtitm-transit-stub/ts100.alt", None, "gtitm", 100, True),
        ("planetlab490/rtt_ms_slice09.csv.gz", None, "rtt_matrix", 490, False),
        ("seattle99/rtt_s_every16.parquet", None, "rtt_slices", 99, False),
        ("rocketfuel-latency/links.csv.gz", "1755", "rocketfuel", 87, True),
        ("topology-zoo/links.csv.gz", "Abilene", "topology_zoo", 11, True),
    ],
)
def test_published_networks(file, name, kind, nodes, linked):
    assert kind_of(DATA / file) == kind
    cluster = read_published(DATA / file, name=name)
    assert len(cluster.nodes) == nodes
    assert (cluster.topology is not None) == linked
    latency = np.array(cluster.latency_ms)
    assert np.isfinite(latency).all()
    assert (latency.diagonal() == 0).all()


@needs_data
def test_every_network_of_the_zoo_and_of_rocketfuel_can_be_read():
    zoo, backbones = DATA / "topology-zoo" / "links.csv.gz", DATA / "rocketfuel-latency" / "links.csv.gz"
    names = pl.read_csv(zoo.with_name("nodes.csv.gz"))["topology"].unique()
    assert len(names) == 203
    for name in names.sort().to_list()[::20]:
        assert len(read_published(zoo, name=name).nodes) >= 3
    sizes = {asn: len(read_rocketfuel(backbones, asn).nodes) for asn in (1221, 1239, 1755, 3257, 3967, 6461)}
    assert sizes == {1221: 104, 1239: 315, 1755: 87, 3257: 161, 3967: 79, 6461: 138}


def test_a_file_of_several_networks_needs_a_name(tmp_path):
    text = ROCKETFUEL + "1,a,b,2,1\n"
    (problem,) = problems(read_published, written(tmp_path, "l.csv", text))
    assert "--name" in problem.hint
