"""A network that is written down and read again is the same network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from levelwind.frontend import load_network, parse_network
from levelwind.frontend.writing import network_document, network_text

ROOT = Path(__file__).parents[3]
EVERYTHING = """
name: traffic
hops: next
trigger: 1s
streams:
  packets:
    schema: {ts: timestamp, src: string, port: int, size: long, price: "decimal(10,2)"}
    time: ts
    lateness: 2s
    idle_after: 30s
    source: {format: parquet, path: /data/packets, maxFilesPerTrigger: 1, more: {a: [1, 2.5]}}
    rate: [1000, 2000]
    min_rate: 200
    bytes: 80
    node: n1
  flows:
    schema: {ts: timestamp, src: string, n: long}
    time: ts
    source: {format: rate, rowsPerSecond: 10}
    rate: 1e-5
  I1: {}
operators:
  - {name: web, kind: filter, input: packets, where: "port in (80, 443)", cost: 3us}
  - {name: by_size, kind: filter, input: packets, routes: {small: "size < 100", rest: true},
     selectivity: {small: 0.1, rest: 0.9}}
  - {name: slim, kind: map, input: by_size.small, select: {src: src, kb: "size / 1024.0", yes: "'true'"},
     properties: {a: [1, {b: x}]}}
  - {name: both, kind: union, inputs: [web, by_size.rest], pinned: n1, movable: false}
  - {name: busy, kind: aggregate, input: web, by: [src], window: {size: 10s, slide: 1s}, timeout: 1m,
     compute: {n: "count(*)", mean_size: "avg(size)"}, split: {into: 4, by: src}}
  - {name: rows, kind: aggregate, input: web, window: {rows: 100, slide: 10}, compute: {n: "count(*)"}}
  - {name: pair, kind: join, inputs: [busy, flows], within: 2m, where: "busy.src = flows.src"}
  - {name: trio, kind: multijoin, inputs: {a: packets, b: packets, c: flows},
     windows: {a: 3s, b: 3s, c: 6s}, where: "abs(a.size - b.size) < 10 and b.src = c.src",
     pairs: [{inputs: [c, a], function: "near:near"}], shed: {rows: 1000},
     diffuse: {method: auto, instances: 4, segment: 5s}}
  - {name: score, kind: custom, input: busy, function: "scores:score", priority: -2, reusable: false,
     schema: {src: string, score: double}, table: t1}
  - {name: o1, kind: model, input: I1, cost: 0.014, selectivity: 0.5, varying: true, transfer_cost: 1us,
     bytes: 10}
  - {name: o2, kind: model, load: {I1: 14}, series: [0.1, 0.3]}
  - {name: put, kind: sql_write, input: web, url: "jdbc:x", table_name: t, key: src, write_mode: upsert,
     select: {src: src}, options: {a: 1}}
  - {name: get, kind: sql_read, input: web, url: "jdbc:x", query: "select 1", key: [src],
     schema: {src: string, q: int}, movable: true}
queries:
  small_talk: "SELECT src, count(*) AS n FROM packets GROUP BY src, window(ts, '10 seconds')"
outputs:
  alerts: {input: busy, sink: {format: parquet, path: /data/alerts}, node: n2}
  talk: {input: small_talk}
errors: {on_error: fail, sink: {format: parquet, path: /data/dead}}
"""


@pytest.mark.parametrize(
    "name", [None, "examples/worked.yaml", "examples/traffic.yaml", "examples/prices.yaml"]
)
def test_what_is_written_loads_as_the_same_network(name, tmp_path):
    network = parse_network(EVERYTHING).network if name is None else load_network(ROOT / name).network
    text = tmp_path / "copy.yaml"
    text.write_text(network_text(network))
    assert load_network(text).network == network
    data = tmp_path / "copy.json"
    data.write_text(json.dumps(network_document(network)))
    assert load_network(data).network == network


def test_paths_are_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    text = EVERYTHING.replace("/data/", "./").replace("path: ./dead", "path: s3://bucket/dead")
    document = network_document(parse_network(text).network)
    assert document["streams"]["packets"]["source"]["path"] == str(tmp_path / "packets")
    assert document["outputs"]["alerts"]["sink"]["path"] == str(tmp_path / "alerts")
    assert document["errors"]["sink"]["path"] == "s3://bucket/dead"
