"""The cluster file, written down once: every key, what it holds, what it means."""

from __future__ import annotations

from levelwind.frontend.containers import Key, ListOf, MapOf, Record
from levelwind.frontend.declared import BANDWIDTH, POSITIVE_BYTES, Anything, Name, Number, Text

NODE = Record(
    "a node",
    {
        "name": Key(Name(), "the node's name", required=True),
        "cpu": Key(Number(least=None, above=0.0), "CPU seconds per second, default 1"),
        "memory": Key(POSITIVE_BYTES, "memory, such as 2GB"),
        "bandwidth": Key(BANDWIDTH, "bandwidth, such as 100Mbps"),
        "host": Key(Text("a host"), "the host it runs on"),
        "properties": Key(MapOf(Anything(), names=False), "open pairs"),
    },
)

CLUSTER = Record(
    "a cluster file",
    {
        "nodes": Key(ListOf(NODE, least=1), "the nodes", required=True),
        "latency": Key(
            Text("a CSV file"), "one-way ms between nodes: a square matrix, node names in the header"
        ),
        "topology": Key(Text("a GraphML file"), "the physical network, which gives routes"),
        "network_bandwidth": Key(BANDWIDTH, "bandwidth of the shared network, such as 1Gbps"),
    },
)
