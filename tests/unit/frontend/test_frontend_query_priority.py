"""A query's priority is that of its operators, unless one states its own."""

from __future__ import annotations

from levelwind.frontend import parse_network
from levelwind.frontend.writing import network_document

PACKETS = {"p": {"schema": {"ts": "timestamp", "src": "string"}, "time": "ts"}}
COUNTED = "SELECT src, count(*) AS n FROM p GROUP BY src, window(ts, '10 seconds')"


def test_priority_of_a_query():
    queries = {
        "q": {"sql": COUNTED, "priority": 3, "operators": {"q.window": {"priority": 1}}},
        "r": "SELECT src FROM p",
    }
    network = parse_network({"streams": PACKETS, "queries": queries}).network
    found = {name: operator.priority for name, operator in network.operators.items()}
    assert found == {"q.window": 1.0, "q": 3.0, "r": 0.0}
    again = parse_network(network_document(network)).network
    assert {name: operator.priority for name, operator in again.operators.items()} == found
