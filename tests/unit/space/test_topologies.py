"""Generated and published topologies, and the routes through them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from levelwind.errors import InputError
from levelwind.model import Cluster, Link, Topology
from levelwind.space import TransitStub, find_routes, transit_stub
from levelwind.space.latency import with_latency
from levelwind.space.readers import (
    read_gtitm,
    read_rocketfuel,
    read_rtt_matrix,
    read_rtt_slices,
    read_topology_zoo,
)

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
SMALL = TransitStub(transit_domains=3, transit_nodes=3, stub_domains=9, stub_nodes=4)
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the data sets are not beside the project")


def literal_routes(topology):
    """Least weight, then least latency, by relaxing all links until nothing changes."""
    best = {
        a: {b: ((0.0, 0.0) if a == b else (np.inf, np.inf)) for b in topology.nodes} for a in topology.nodes
    }
    changed = True
    while changed:
        changed = False
        for link in topology.links:
            for a, b in ((link.source, link.target), (link.target, link.source)):
                for start in topology.nodes:
                    weight, latency = best[start][a]
                    fresh = (weight + link.weight, latency + link.latency_ms)
                    if fresh < best[start][b]:
                        best[start][b] = fresh
                        changed = True
    return best


@pytest.mark.parametrize("seed", range(4))
def test_routes_are_those_of_a_literal_search(seed):
    topology = transit_stub(np.random.default_rng(seed), SMALL)
    routes, expected = find_routes(topology), literal_routes(topology)
    for i, a in enumerate(topology.nodes):
        for j, b in enumerate(topology.nodes):
            assert routes.latency_ms[i, j] == expected[a][b][1]


@pytest.mark.parametrize("seed", range(4))
def test_a_part_of_a_route_is_a_route(seed):
    """So a node on a route adds nothing to it, to the last digit."""
    routes = find_routes(transit_stub(np.random.default_rng(seed), SMALL))
    count = len(routes.names)
    for i in range(count):
        for j in range(count):
            for node in routes.path(i, j):
                assert routes.latency_ms[i, node] + routes.latency_ms[node, j] == routes.latency_ms[i, j]


def test_no_route_leads_through_a_foreign_site():
    topology = transit_stub(np.random.default_rng(0), SMALL)
    routes = find_routes(topology)
    site = [name.split("_")[0] for name in topology.nodes]
    for i in range(len(site)):
        for j in range(len(site)):
            passed = {site[node] for node in routes.path(i, j)} - {site[i], site[j]}
            assert all(name.startswith("t") for name in passed)


def test_the_papers_network():
    topology = transit_stub(np.random.default_rng(0))
    assert len(topology.nodes) == 1550
    assert sum(name.startswith("t") for name in topology.nodes) == 50
    assert find_routes(topology).latency_ms.max() == pytest.approx(878.0, abs=0.1)


def test_nodes_that_cannot_be_reached_are_refused():
    links = (Link(source="a", target="b", latency_ms=1.0),)
    with pytest.raises(InputError, match="c from a"):
        find_routes(Topology(nodes=("a", "b", "c"), links=links))


def test_a_cluster_gets_the_latencies_of_its_routes():
    links = (Link(source="n1", target="r", latency_ms=2.0), Link(source="r", target="n2", latency_ms=3.0))
    cluster = Cluster(nodes=Cluster.equal(2).nodes, topology=Topology(nodes=("n1", "r", "n2"), links=links))
    assert with_latency(cluster).latency_ms == ((0.0, 5.0), (5.0, 0.0))


GTITM = """\
GRAPH (#nodes #edges id uu vv ww xx yy zz):
3 4 transtub

VERTICES (index name u v w x y z):
0 T:0.0 12 114
1 S:0.0/0.0 60 187
2 S:0.0/0.1 71 82

EDGES (from-node to-node length a b):
0 1 10 7
1 2 5 1
"""


def test_gtitm(tmp_path):
    (tmp_path / "small.alt").write_text(GTITM)
    topology = read_gtitm(tmp_path / "small.alt", scale=0.5)
    assert find_routes(topology).latency_ms.tolist() == [[0, 5, 7.5], [5, 0, 2.5], [7.5, 2.5, 0]]
    (tmp_path / "bad.alt").write_text(GTITM + "0 9 1 1\n")
    with pytest.raises(InputError, match="two vertices"):
        read_gtitm(tmp_path / "bad.alt")


def test_rocketfuel_takes_the_largest_part(tmp_path):
    rows = [
        "asn,source,target,latency_ms,weight",
        "1,a,b,2,1",
        "1,b,a,4,1",
        "1,b,c,1,5",
        "1,x,y,1,1",
        "2,p,q,1,1",
    ]
    (tmp_path / "links.csv").write_text("\n".join(rows))
    topology = read_rocketfuel(tmp_path / "links.csv", 1)
    assert topology.nodes == ("a", "b", "c")
    assert find_routes(topology).latency_ms[0].tolist() == [0.0, 3.0, 4.0]
    with pytest.raises(InputError, match="known: 1, 2"):
        read_rocketfuel(tmp_path / "links.csv", 70000)


def test_rtt_matrix(tmp_path):
    (tmp_path / "m.csv").write_text("n0,n1\n0,8\n8,0\n")
    assert read_rtt_matrix(tmp_path / "m.csv").tolist() == [[0, 4], [4, 0]]
    (tmp_path / "m.csv").write_text("n0,n1\n0,8\n")
    with pytest.raises(InputError, match="square"):
        read_rtt_matrix(tmp_path / "m.csv")


@needs_data
def test_published_networks_read_as_their_figures_say():
    planetlab = read_rtt_matrix(DATA / "planetlab490" / "rtt_ms_slice01.csv.gz")
    assert planetlab.shape == (490, 490)
    assert np.median(planetlab) * 2 == pytest.approx(135, abs=1)
    slices = list(read_rtt_slices(DATA / "seattle99" / "rtt_s_every16.parquet"))
    assert len(slices) == 43
    assert slices[0].shape == (99, 99)
    graph = read_gtitm(DATA / "gtitm-transit-stub" / "ts1000.alt")
    assert (len(graph.nodes), len(graph.links)) == (1000, 1812)
    telstra = find_routes(read_rocketfuel(DATA / "rocketfuel-latency" / "links.csv.gz", 1221))
    assert len(telstra.names) == 104
    zoo = DATA / "topology-zoo"
    aarnet = read_topology_zoo(zoo / "nodes.csv.gz", zoo / "links.csv.gz", "Aarnet")
    assert len(find_routes(aarnet).names) == len(aarnet.nodes)
