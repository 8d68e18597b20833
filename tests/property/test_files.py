"""Whatever a file holds, loading it answers with a network or with an `InputError`."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from levelwind.errors import InputError
from levelwind.frontend import load_cluster, load_placement, parse_duration, parse_network
from levelwind.frontend.units import format_duration
from levelwind.frontend.yamltext import scalar
from levelwind.model import Cluster

VALID: dict[str, Any] = yaml.safe_load("""
name: all
hops: within
trigger: 1s
streams:
  packets:
    schema: {ts: timestamp, src: string, dst: string, port: int, size: long}
    time: ts
    lateness: 2s
    idle_after: 30s
    source: {format: parquet, path: ./packets}
    rate: [1000, 900]
    min_rate: 200
    bytes: 80
    node: n1
  flows: {schema: {ts: timestamp, src: string, n: long}, time: ts}
  I1: {}
operators:
  - {name: web, kind: filter, input: packets, where: "port in (80, 443)", pinned: n1, priority: 2}
  - {name: by_size, kind: filter, input: packets, routes: {small: "size < 100", rest: true},
     selectivity: {small: 0.5, rest: 0.5}}
  - {name: slim, kind: map, input: by_size.small, select: {src: src, kb: "size / 1024.0"}}
  - {name: both, kind: union, inputs: [web, by_size.rest]}
  - {name: busy, kind: aggregate, input: web, by: [src], window: {size: 10s, slide: 1s},
     compute: {n: "count(*)", mean_size: "avg(size)"}, split: {into: 4, by: src}, timeout: 3s}
  - {name: rows, kind: aggregate, input: web, window: {rows: 10, slide: 1}, compute: {n: "count(*)"}}
  - {name: pair, kind: join, inputs: [busy, flows], within: 2m, where: "busy.src = flows.src"}
  - {name: trio, kind: multijoin, inputs: {a: packets, b: packets, c: flows}, windows: {a: 3s, b: 3s, c: 6s},
     where: "abs(a.size - b.size) < 10", diffuse: {method: auto, instances: 4, segment: 5s}}
  - {name: score, kind: custom, input: busy, function: "m:f", schema: {src: string, score: double}}
  - {name: read, kind: sql_read, input: busy, url: jdbc, query: select 1, schema: {x: int}}
  - {name: write, kind: sql_write, input: busy, table_name: t, key: [src], select: {a: n + 1}}
  - {name: o1, kind: model, input: I1, cost: 0.014, selectivity: 0.5, properties: {a: 1}, bytes: 3}
  - {name: o2, kind: model, load: {I1: 14}, series: [0.1, 0.3]}
queries:
  q: "SELECT src, count(*) AS n FROM packets GROUP BY src, window(ts, '10 seconds')"
outputs:
  alerts: {input: busy, sink: {format: parquet, path: ./alerts}, node: n2}
errors: {on_error: dead_letter, sink: {format: parquet, path: ./dead}}
""")

WORDS = [
    "packets",
    "web",
    "by_size",
    "by_size.small",
    "o1",
    "n1",
    "ts",
    "src",
    "filter",
    "model",
    "10s",
    "0s",
    "count(*)",
    "size +",
    "busy.src",
    "select * from flows f",
    "a.b",
    "",
    " ",
    "µ",
    "1e-6",
    "x" * 200,
    "sum(sum(size)) over (",
    "window(ts)",
    "'",
    "`",
    "--",
    "nowhere.csv",
    "\ud800",
]
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-2, 20),
    st.sampled_from([10**400, -(10**400)]),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=8),
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*WORDS, "name", "kind", "input", "size", "file"]), inner, max_size=3
        )
    ),
    max_leaves=5,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a document."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        found += places(item)
    return found


def mutate(document: dict[str, Any], rng: random.Random, value: Any) -> None:
    """Drops, replaces, adds or swaps something somewhere."""
    container, key = rng.choice(places(document))
    action = rng.choice(("drop", "replace", "insert", "copy", "rename"))
    if action == "drop":
        del container[key]
    elif action == "insert" and isinstance(container, list):
        container.insert(key, value)
    elif action == "rename" and isinstance(container, dict):
        container[rng.choice([*WORDS, "where", "kind", "cost"])] = container.pop(key)
    elif action == "copy":
        other, other_key = rng.choice(places(document))
        container[key] = copy.deepcopy(other[other_key])
    else:
        container[key] = value


def check(load: Callable[[], object]) -> None:
    """The file is read, or refused with problems that can be printed; anything else is a crash."""
    refused = None
    try:
        load()
    except InputError as error:
        refused = error
    assert refused is None or (refused.problems and all(problem.rule for problem in refused.problems))
    assert refused is None or str(refused)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False), st.lists(values, min_size=1, max_size=4), st.booleans())
def test_a_mutated_file_is_read_or_refused(rng: random.Random, changes: list[Any], as_text: bool) -> None:
    document = copy.deepcopy(VALID)
    for value in changes:
        if places(document):
            mutate(document, rng, value)
    source = json.dumps(document) if as_text else document
    check(lambda: parse_network(source, cluster=Cluster.equal(2)))


@settings(max_examples=200, deadline=None)
@given(
    st.randoms(use_true_random=False), st.text(alphabet=" \t\n:-[]{}&*!|>'\"%@`#,?ab0\x00\x07é", max_size=6)
)
def test_a_garbled_text_is_read_or_refused(rng: random.Random, junk: str) -> None:
    text = yaml.safe_dump(VALID, sort_keys=False)
    place, length = rng.randrange(len(text)), rng.choice((0, 1, 5, 40))
    check(lambda: parse_network(text[:place] + junk + text[place + length :]))


@settings(max_examples=150, deadline=None)
@given(values)
@example({"nodes": [{"name": "a"}, {"name": "a"}]})
@example({"placement": {"a": 1}})
def test_any_value_as_cluster_or_placement(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    file = Path(tmp_path_factory.mktemp("any")) / "file.json"
    file.write_text(json.dumps(value), encoding="utf-8")
    check(lambda: load_cluster(file))
    check(lambda: load_placement(file))


@given(st.floats(min_value=1e-6, max_value=1e9, allow_nan=False))
def test_durations_round_trip(seconds: float) -> None:
    rounded = round(seconds, 6)
    assert parse_duration(format_duration(rounded)) == rounded


@given(st.text(max_size=12))
def test_a_duration_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse_duration(text) >= 0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back(number: float) -> None:
    assert scalar(repr(number)) == number


@given(st.integers())
def test_integers_read_back(number: int) -> None:
    assert scalar(str(number)) == number
