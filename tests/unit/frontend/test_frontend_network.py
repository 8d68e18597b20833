"""What a file without mistakes becomes: the model, schemas, rates, warnings, speed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from levelwind.errors import InputError
from levelwind.frontend import load_cluster, load_network, parse_network
from levelwind.model import (
    Aggregate,
    Diffuse,
    Join,
    Model,
    Multijoin,
    Operator,
    Port,
    RowWindow,
    Split,
    TimeWindow,
)

EXAMPLES = Path(__file__).parents[3] / "examples"
HEAD = """
streams:
  p: {schema: {ts: timestamp, src: string, size: int}, time: ts}
  q: {schema: {at: timestamp, src: string}, time: at}
operators:
"""


def operator(line: str, name: str = "o") -> Operator:
    return parse_network(f"{HEAD}  - {{name: {name}, {line}}}\n").network.operators[name]


def columns(line: str) -> dict[str, str]:
    return {column.name: column.type for column in operator(line).schema or ()}


def test_common_keys() -> None:
    found = operator(
        "kind: filter, input: p, where: size > 1, cost: 2us, selectivity: 0.5, varying: true, "
        "movable: false, pinned: n1, table: t, reusable: false, priority: -2, properties: {a: [1]}, "
        "bytes: 1kB, transfer_cost: 1e-6, split: {into: 3, by: src}"
    )
    assert (found.cost_s, found.selectivity, found.bytes, found.transfer_cost_s) == (2e-6, 0.5, 1000, 1e-6)
    assert (found.varying, found.movable, found.reusable) == (True, False, False)
    assert (found.pinned, found.table, found.priority) == ("n1", "t", -2)
    assert found.properties == {"a": [1]}
    assert found.split == Split(into=3, by=("src",))
    assert found.inputs == (Port(source="p"),)


def test_routes_and_their_selectivity() -> None:
    found = operator(
        "kind: filter, input: p, routes: {small: size < 9, rest: true}, selectivity: {small: 0.2, rest: 0.8}"
    )
    assert found.routes == ("small", "rest")
    assert (found.selectivity, found.selectivity_of("rest")) == (None, 0.8)


def test_windows() -> None:
    line = "kind: aggregate, input: p, compute: {n: count(*)}, window: "
    specs = [
        operator(line + window).spec
        for window in ("{size: 10s}", "{size: 1m, slide: 7s}", "{rows: 100, slide: 10}")
    ]
    assert [spec.window for spec in specs if isinstance(spec, Aggregate)] == [
        TimeWindow(size_s=10, slide_s=10),
        TimeWindow(size_s=60, slide_s=7),
        RowWindow(rows=100, slide=10),
    ]


def test_join_and_multijoin() -> None:
    join = operator("kind: join, inputs: [p, q], within: 2m, where: p.src = q.src").spec
    assert join == Join(aliases=("p", "q"), within_s=120, where="p.src = q.src")
    multi = operator(
        "kind: multijoin, inputs: {a: p, b: p}, windows: {b: 3s, a: 0s}, diffuse: {instances: 4, segment: 5s}"
    ).spec
    assert isinstance(multi, Multijoin)
    assert (multi.aliases, dict(multi.windows_s)) == (("a", "b"), {"a": 0, "b": 3})
    assert multi.diffuse == Diffuse(method="auto", instances=4, segment_s=5)


def test_sql_operators_stay_unless_they_say_otherwise() -> None:
    assert not operator("kind: sql_read, input: p, url: u, query: select 1").movable
    assert not operator(
        "kind: sql_write, input: p, table_name: t, write_mode: upsert, options: {x: 1}"
    ).movable
    assert operator("kind: sql_write, input: p, movable: true").movable


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kind: filter, input: p, where: true", {"ts": "timestamp", "src": "string", "size": "int"}),
        ("kind: map, input: p, select: {kb: size / 2}", {"kb": "double", "ts": "timestamp"}),
        ("kind: map, input: p, select: {ts: ts, x: size}", {"ts": "timestamp", "x": "int"}),
        (
            "kind: aggregate, input: p, by: src, window: {size: 1s}, compute: {n: count(*), m: avg(size)}",
            {"src": "string", "n": "bigint", "m": "double"}
            | dict.fromkeys(("window_start", "window_end", "window_time"), "timestamp"),
        ),
        (
            "kind: join, inputs: {a: p, b: q}, within: 1s",
            {"a.ts": "timestamp", "a.src": "string", "a.size": "int", "b.at": "timestamp", "b.src": "string"}
            | {"join_time": "timestamp"},
        ),
        ("kind: custom, input: q, function: 'a.b:c', schema: {x: long}", {"x": "bigint", "at": "timestamp"}),
        ("kind: sql_read, input: q, schema: {x: int}", {"x": "int", "at": "timestamp"}),
        ("kind: sql_read, input: q", {}),
        ("kind: sql_write, input: q", {"at": "timestamp", "src": "string"}),
        ("kind: model, input: q", {}),
    ],
)
def test_output_schemas(line: str, expected: dict[str, str]) -> None:
    assert columns(line) == expected


def test_columns_of_a_join_are_read_by_their_full_names() -> None:
    loaded = parse_network(
        HEAD + "  - {name: j, kind: join, inputs: {a: p, b: q}, within: 1s}\n"
        "  - {name: k, kind: join, inputs: {j: j, c: q}, within: 1s, where: j.a.src = c.src}\n"
        "  - {name: g, kind: aggregate, input: k, by: j.a.src, window: {size: 1s},\n"
        "     compute: {n: max(j.a.size)}}\n"
    )
    names = [column.name for column in loaded.network.operators["g"].schema or ()]
    assert names[:2] == ["j.a.src", "n"]


def test_paths_start_from_the_file_that_names_them(tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / "net.yaml").write_text(
        "streams:\n  s: {schema: {t: timestamp}, time: t, source: {format: json, path: ../in}}\n"
        "  k: {schema: {t: timestamp}, time: t, source: {format: json, path: 's3://b/k'}}\n"
        "operators:\n  - {name: o, kind: filter, input: s, where: true}\n"
        "outputs:\n  o: {input: o, sink: {format: json, path: out}}\n"
    )
    network = load_network(folder / "net.yaml").network
    assert (network.streams["s"].source or {})["path"] == str(tmp_path / "in")
    assert (network.streams["k"].source or {})["path"] == "s3://b/k"
    assert (network.outputs["o"].sink or {})["path"] == str(folder / "out")


@pytest.mark.parametrize(
    ("csv", "rate", "samples"),
    [
        ("1\n2\n3\n", "r.csv", (1, 2, 3)),
        ("rate\n1\n2\n", "r.csv", (1, 2)),
        ("second,rate\n0,10\n1,20\n\n", "r.csv", (10, 20)),
        ("a,b\n1,2\n3,4\n", "{file: r.csv, column: a}", (1, 3)),
        ("a,b\n1,2\n3,4\n", "{file: r.csv}", (2, 4)),
    ],
)
def test_rates_from_csv(tmp_path: Path, csv: str, rate: str, samples: tuple[float, ...]) -> None:
    (tmp_path / "r.csv").write_text(csv)
    text = f"streams: {{s: {{rate: {rate}}}}}\noperators: [{{name: o, kind: model, input: s}}]\n"
    assert parse_network(text, base=tmp_path).network.streams["s"].rate == samples


@pytest.mark.parametrize(
    ("csv", "rate", "line", "rule"),
    [
        ("a\n1\nx\n", "r.csv", 3, "sample must be a number"),
        ("a\n1\n-1\n", "r.csv", 3, "sample must be a number"),
        ("a,b\n1,2\n3\n", "{file: r.csv, column: b}", 3, "sample must be a number"),
        ("a\nnan\n", "r.csv", 2, "sample must be a number"),
        ("a\n", "r.csv", 1, "at least one sample"),
        ("", "r.csv", 1, "at least one sample"),
        ("a\n1\n", "{file: r.csv, column: b}", 1, "must have the column"),
        ("1\n2\n", "{file: r.csv, column: b}", 1, "must have the column"),
    ],
)
def test_broken_rates(tmp_path: Path, csv: str, rate: str, line: int, rule: str) -> None:
    (tmp_path / "r.csv").write_text(csv)
    text = f"streams: {{s: {{rate: {rate}}}}}\noperators: [{{name: o, kind: model, input: s}}]\n"
    with pytest.raises(InputError) as caught:
        parse_network(text, base=tmp_path)
    (problem,) = caught.value.problems
    assert rule in problem.rule
    assert problem.line == line


def test_model_operators() -> None:
    loaded = parse_network(
        "streams: {I1: {}, I2: {}}\n"
        "operators:\n"
        "  - {name: sum, kind: model, inputs: [I1, I2], cost: 1ms, selectivity: 1}\n"
        "  - {name: load, kind: model, load: {I1: 14}, series: [0.1, 0.3]}\n"
    )
    assert loaded.warnings == ()
    assert loaded.network.operators["load"].spec == Model(load={"I1": 14.0}, series=(0.1, 0.3))
    assert len(loaded.network.operators["sum"].inputs) == 2


def test_warnings_come_in_few_lines() -> None:
    lines = "".join(f"  - {{name: f{i}, kind: filter, input: p, where: true}}\n" for i in range(12))
    more = (
        "  - {name: u, kind: union, inputs: [f0, f1], cost: 1us}\n"
        "  - {name: m, kind: model, input: u, cost: 1us}\n"
    )
    loaded = parse_network(HEAD + lines + more + "outputs: {out: {input: f3}}\n")
    assert loaded.warnings == (
        "cost unstated for 12 operators (1 µs assumed): f0, f1, f2, f3, f4, f5, f6, f7 and 4 more",
        "selectivity unstated for 2 operators (1 assumed): f0, f1",
        "nobody reads the stream q",
    )


def test_a_stream_that_a_query_or_a_load_names_is_read() -> None:
    loaded = parse_network(
        "streams: {a: {}, b: {}, c: {}}\n"
        "operators: [{name: o, kind: model, load: {a: 1}}]\n"
        "queries: {q: select x from b}\n"
        "outputs: {c: {input: c}, q: {input: q}}\n"
    )
    assert loaded.warnings == ("cost unstated for 1 operator (1 µs assumed): q",)


def test_top_level_keys() -> None:
    network = parse_network(
        HEAD + "  - {name: o, kind: model, input: p}\nname: n\nhops: next\ntrigger: 500ms\n"
        "errors: {on_error: drop}\noutputs: {x: {input: o, node: n2}}\n"
    ).network
    assert (network.name, network.hops, network.trigger_s) == ("n", "next", 0.5)
    assert network.errors.on_error == "drop"
    assert network.outputs["x"].input == Port(source="o")


def test_examples_load() -> None:
    cluster = load_cluster(EXAMPLES / "cluster.yaml")
    worked = load_network(EXAMPLES / "worked.yaml", cluster=cluster)
    assert worked.warnings == ()
    assert [o.cost_s for o in worked.network.operators.values()] == [14, 6, 9, 14]
    traffic = load_network(EXAMPLES / "traffic.yaml", cluster=cluster)
    assert traffic.warnings == ()
    operators = traffic.network.operators.values()
    assert len(operators) == 160
    load = sum(
        (traffic.network.streams[o.inputs[0].source].mean_rate or 0) * o.stated_cost_s for o in operators
    )
    assert load / len(cluster.nodes) == pytest.approx(0.5, abs=0.01)
    assert {len(stream.rate or ()) for stream in traffic.network.streams.values()} == {600}


def test_ten_thousand_operators_load_in_time(tmp_path: Path) -> None:
    lines = (
        f"  - {{name: o{i}, kind: model, input: I{i % 10}, cost: 1e-4, selectivity: 0.9}}\n"
        for i in range(10_000)
    )
    file = tmp_path / "big.yaml"
    file.write_text(
        "streams: {" + ", ".join(f"I{i}: {{rate: 5}}" for i in range(10)) + "}\noperators:\n" + "".join(lines)
    )
    start = time.perf_counter()
    assert len(load_network(file).network.operators) == 10_000
    assert time.perf_counter() - start < 1.5  # 0.4 s on two cores


def test_ten_thousand_unknown_inputs_are_told_in_time(tmp_path: Path) -> None:
    lines = (f"  - {{name: o{i}, kind: model, input: x{i}}}\n" for i in range(10_000))
    start = time.perf_counter()
    with pytest.raises(InputError) as caught:
        parse_network("operators:\n" + "".join(lines))
    assert len(caught.value.problems) == 10_000
    assert time.perf_counter() - start < 20
