"""JSON Schema: made from the checker's own declarations, and agreeing with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from levelwind.errors import InputError
from levelwind.frontend import cluster_schema, network_schema, parse_network
from levelwind.frontend.cluster_keys import CLUSTER, NODE
from levelwind.frontend.containers import Record
from levelwind.frontend.network_keys import NETWORK, OPERATORS, OUTPUT, STREAM
from levelwind.frontend.operators import _SPECS
from levelwind.frontend.output_rows import _KINDS
from levelwind.model.operator import KINDS

EXAMPLES = Path(__file__).parents[3] / "examples"

# The example of the contract.
CONTRACT = """
name: traffic
hops: within
trigger: 1s
streams:
  packets:
    schema: {ts: timestamp, src: string, dst: string, port: int, size: long}
    time: ts
    lateness: 2s
    idle_after: 30s
    source: {format: parquet, path: ./packets, maxFilesPerTrigger: 1}
    rate: 1000
    min_rate: 200
    bytes: 80
    node: n1
  flows: {schema: {ts: timestamp, src: string, n: long}, time: ts, source: {format: rate, rowsPerSecond: 10}}
  I1: {}
operators:
  - {name: web, kind: filter, input: packets, where: "port in (80, 443)"}
  - {name: by_size, kind: filter, input: packets, routes: {small: "size < 100", rest: true}}
  - {name: slim, kind: map, input: by_size.small, select: {src: src, kb: "size / 1024.0"}}
  - {name: both, kind: union, inputs: [web, by_size.rest]}
  - name: busy
    kind: aggregate
    input: web
    by: [src]
    window: {size: 10s, slide: 1s}
    compute: {n: "count(*)", mean_size: "avg(size)"}
    split: {into: 4, by: src}
  - {name: pair, kind: join, inputs: [busy, flows], within: 2m, where: "busy.src = flows.src"}
  - {name: trio, kind: multijoin, inputs: {a: packets, b: packets, c: flows}, windows: {a: 3s, b: 3s, c: 6s},
     where: "abs(a.size - b.size) < 10 and b.src = c.src", diffuse: {method: auto, instances: 4, segment: 5s}}
  - {name: score, kind: custom, input: busy, function: "mypkg.scores:score",
     schema: {src: string, score: double}}
  - {name: o1, kind: model, input: I1, cost: 0.014, selectivity: 0.5}
  - {name: o2, kind: model, load: {I1: 14}, series: [0.1, 0.3]}
queries:
  small_talk: "SELECT src, count(*) AS n FROM packets GROUP BY src, window(ts, '10 seconds')"
outputs:
  alerts: {input: busy, sink: {format: parquet, path: ./alerts}, node: n2}
errors: {on_error: dead_letter, sink: {format: parquet, path: ./dead}}
"""


def errors(value: Any, schema: dict[str, Any]) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(value)]


def test_schemas_are_schemas() -> None:
    jsonschema.Draft202012Validator.check_schema(network_schema())
    jsonschema.Draft202012Validator.check_schema(cluster_schema())


def test_the_contract_example_is_valid_and_loads() -> None:
    assert errors(yaml.safe_load(CONTRACT), network_schema()) == []
    operators = parse_network(CONTRACT).network.operators
    assert [name for name in operators if "small_talk" in name] == ["small_talk.window", "small_talk"]
    assert len(operators) == 10 + 2


@pytest.mark.parametrize("name", ["traffic.yaml", "worked.yaml"])
def test_example_networks_are_valid(name: str) -> None:
    assert errors(yaml.safe_load((EXAMPLES / name).read_text()), network_schema()) == []


def test_example_cluster_is_valid() -> None:
    assert errors(yaml.safe_load((EXAMPLES / "cluster.yaml").read_text()), cluster_schema()) == []


@pytest.mark.parametrize(
    ("record", "schema"),
    [
        (NETWORK, network_schema()),
        (STREAM, network_schema()["properties"]["streams"]["additionalProperties"]),
        (OUTPUT, network_schema()["properties"]["outputs"]["additionalProperties"]),
        (CLUSTER, cluster_schema()),
        (NODE, cluster_schema()["properties"]["nodes"]["items"]),
        *((record, network_schema()["$defs"][kind]) for kind, record in OPERATORS.kinds.items()),
    ],
)
def test_checker_and_schema_know_the_same_keys(record: Record, schema: dict[str, Any]) -> None:
    assert set(schema["properties"]) == set(record.keys)
    assert schema["additionalProperties"] is False
    assert set(schema.get("required", ())) == {name for name, key in record.keys.items() if key.required}
    assert all(part["description"] for part in schema["properties"].values())


def test_every_kind_of_the_model_is_declared_built_and_checked() -> None:
    assert set(OPERATORS.kinds) == set(KINDS) == set(_SPECS)
    assert set(_KINDS) == set(KINDS) - {"model"}
    assert set(network_schema()["$defs"]) == set(KINDS)


BAD_VALUES = [
    ("operators", [{"name": "o", "kind": "model", "cost": -1}]),
    ("operators", [{"name": "o", "kind": "modle"}]),
    ("operators", [{"name": "o", "kind": "filter", "input": "s"}]),
    ("operators", [{"name": "a.b", "kind": "model", "input": "s"}]),
    ("operators", [{"name": "o", "kind": "model", "input": "s", "wehre": 1}]),
    (
        "operators",
        [
            {
                "name": "o",
                "kind": "aggregate",
                "input": "s",
                "window": {"size": 10},
                "compute": {"n": "count(*)"},
            }
        ],
    ),
    ("streams", {"s": {"rate": [1, -1]}}),
    ("streams", {"s": {"lateness": "2 parsecs"}}),
    ("outputs", {"o": {"input": "s", "sink": {"path": "x"}}}),
    ("hops", "never"),
    ("unknown", 1),
]


@pytest.mark.parametrize(("key", "value"), BAD_VALUES)
def test_checker_and_schema_refuse_the_same(key: str, value: Any) -> None:
    document = {"streams": {"s": {}}, "operators": [{"name": "x", "kind": "model", "input": "s"}], key: value}
    assert errors(document, network_schema())
    with pytest.raises(InputError):
        parse_network(document)


def test_patterns_suit_javascript_too() -> None:
    # Editors read the patterns as ECMAScript; inline flags and named groups of Python would break there.
    assert not re.search(r"\(\?[PiLmsux]", str(network_schema()))
