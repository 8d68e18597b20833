"""One case for every rule of the network file: where it strikes, and which rule it is."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from levelwind.errors import InputError, Problem
from levelwind.frontend import parse_network
from levelwind.model import Cluster

STREAMS = """\
streams:
  packets: {schema: {ts: timestamp, src: string, size: long, flag: boolean}, time: ts}
  flows: {schema: {ts: timestamp, src: string, n: int}, time: ts}
  I1: {}
"""
OPERATORS_LINE = 6  # the first operator stands here if the text starts with STREAMS and "operators:"


def problems_of(text: str, cluster: Cluster | None = None) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        parse_network(text, cluster=cluster)
    return caught.value.problems


class Case(NamedTuple):
    """An operator line, and what must be said about it."""

    operator: str
    key: str
    rule: str
    value: str = ""
    hint: str = ""


F = "name: f, kind: filter, input: packets"
A = "name: a, kind: aggregate, input: packets"
M = "name: m, kind: map, input: packets"

OPERATOR_CASES = {
    "no kind": Case("{name: x}", "kind", "must have 'kind'"),
    "unknown kind": Case("{name: x, kind: fliter}", "kind", "must be one of", "fliter", "filter"),
    "no name": Case("{kind: model, input: I1}", "name", "must have 'name'"),
    "name with a dot": Case("{name: a.b, kind: model, input: I1}", "name", "without '.'", "a.b"),
    "name with a bracket": Case("{name: 'a[0]', kind: model, input: I1}", "name", "without '.'"),
    "empty name": Case("{name: '', kind: model, input: I1}", "name", "without '.'"),
    "name that is a number": Case("{name: 12, kind: model, input: I1}", "name", "text", "12", "quotes"),
    "name of a stream": Case("{name: flows, kind: model, input: I1}", "name", "name of a stream", "flows"),
    "not a mapping": Case("just text", "", "must be a mapping", "just text"),
    "unknown key": Case(
        f"{{{F}, where: flag, seletivity: 1}}", "seletivity", "no such key", hint="selectivity"
    ),
    "key of another kind": Case(f"{{{F}, where: flag, within: 2s}}", "within", "no such key", hint="join"),
    "unknown input": Case(
        "{name: x, kind: model, input: packtes}", "input", "name of a stream", hint="packets"
    ),
    "no input": Case("{name: x, kind: filter, where: true}", "input", "must have 'input'"),
    "model fed by nothing": Case("{name: x, kind: model, cost: 1}", "", "must read something", "x"),
    "input and inputs": Case("{name: x, kind: model, input: I1, inputs: [I1]}", "inputs", "not both"),
    "route of a stream": Case("{name: x, kind: model, input: packets.small}", "input", "no routes"),
    "load for an unknown stream": Case(
        "{name: x, kind: model, load: {I2: 1}}", "load.I2", "streams that exist"
    ),
    "negative load": Case("{name: x, kind: model, load: {I1: -1}}", "load.I1", "at least 0", "-1"),
    "negative cost": Case("{name: x, kind: model, input: I1, cost: -1}", "cost", "at least 0", "-1"),
    "NaN cost": Case("{name: x, kind: model, input: I1, cost: .nan}", "cost", "finite", "NaN"),
    "infinite selectivity": Case(
        "{name: x, kind: model, input: I1, selectivity: .inf}", "selectivity", "finite"
    ),
    "text as selectivity": Case(
        "{name: x, kind: model, input: I1, selectivity: hi}", "selectivity", "number"
    ),
    "truth as number": Case("{name: x, kind: model, input: I1, bytes: true}", "bytes", "number", "true"),
    "number as flag": Case("{name: x, kind: model, input: I1, movable: 1}", "movable", "true or false", "1"),
    "yes as flag": Case("{name: x, kind: model, input: I1, movable: yes}", "movable", "true or false", "yes"),
    "bad series": Case("{name: x, kind: model, series: [1, -2]}", "series[1]", "at least 0", "-2"),
    "where and routes": Case(f"{{{F}, where: flag, routes: {{r: flag}}}}", "routes", "exactly one of"),
    "neither where nor routes": Case(f"{{{F}}}", "", "exactly one of"),
    "where is not a condition": Case(f"{{{F}, where: size + 1}}", "where", "must be a condition", "bigint"),
    "unknown column": Case(f"{{{F}, where: siez > 1}}", "where", "column must exist", "siez", "size"),
    "column in the wrong case": Case(
        f"{{{F}, where: Size > 1}}", "where", "column must exist", hint="'size'"
    ),
    "syntax error": Case(f"{{{F}, where: 'size >'}}", "where", "Spark SQL expression", "size >", "missing"),
    "unknown function": Case(f"{{{F}, where: 'uper(src) = 1'}}", "where", "supported one", "uper", "upper"),
    "aggregate in a filter": Case(f"{{{F}, where: 'sum(size) > 1'}}", "where", "aggregate operator"),
    "subquery": Case(f"{{{F}, where: 'size in (select 1)'}}", "where", "made of columns"),
    "window function": Case(f"{{{M}, select: {{x: 'sum(size) over ()'}}}}", "select.x", "made of columns"),
    "alias in select": Case(
        f"{{{M}, select: {{x: size as y}}}}", "select.x", "made of columns", hint="alias"
    ),
    "empty select": Case(f"{{{M}, select: {{}}}}", "select", "at least 1 entry"),
    "column name with a dot": Case(f"{{{M}, select: {{a.b: size}}}}", "select.a.b", "without '.'"),
    "time redefined": Case(f"{{{M}, select: {{ts: size}}}}", "select.ts", "must not be redefined"),
    "selectivity by route without routes": Case(
        f"{{{F}, where: flag, selectivity: {{a: 1}}}}", "selectivity", "go with routes"
    ),
    "selectivity of an unknown route": Case(
        f"{{{F}, routes: {{r: flag}}, selectivity: {{r: 1, q: 1}}}}", "selectivity.q", "route must exist"
    ),
    "selectivity of a route left out": Case(
        f"{{{F}, routes: {{r: flag, q: true}}, selectivity: {{r: 1}}}}", "selectivity", "every route", "q"
    ),
    "no window": Case(f"{{{A}, compute: {{n: count(*)}}}}", "window", "must have 'window'"),
    "bare number as size": Case(
        f"{{{A}, window: {{size: 10}}, compute: {{n: count(*)}}}}", "window.size", "needs a unit", "10", "10s"
    ),
    "zero size": Case(
        f"{{{A}, window: {{size: 0s}}, compute: {{n: count(*)}}}}", "window.size", "more than 0"
    ),
    "negative size": Case(
        f"{{{A}, window: {{size: -1s}}, compute: {{n: count(*)}}}}", "window.size", "duration"
    ),
    "slide above size": Case(
        f"{{{A}, window: {{size: 1s, slide: 2s}}, compute: {{n: count(*)}}}}",
        "window.slide",
        "not be more than",
    ),
    "zero slide": Case(
        f"{{{A}, window: {{size: 1s, slide: 0s}}, compute: {{n: count(*)}}}}", "window.slide", "more than 0"
    ),
    "rows that are no integer": Case(
        f"{{{A}, window: {{rows: 1.5}}, compute: {{n: count(*)}}}}", "window.rows", "whole number", "1.5"
    ),
    "rows and a time slide": Case(
        f"{{{A}, window: {{rows: 10, slide: 1s}}, compute: {{n: count(*)}}}}",
        "window.slide",
        "number of rows",
    ),
    "size and a row slide": Case(
        f"{{{A}, window: {{size: 10s, slide: 2}}, compute: {{n: count(*)}}}}", "window.slide", "a duration"
    ),
    "size and rows": Case(
        f"{{{A}, window: {{size: 10s, rows: 2}}, compute: {{n: count(*)}}}}", "window.rows", "exactly one of"
    ),
    "compute without an aggregate": Case(
        f"{{{A}, window: {{size: 1s}}, compute: {{n: size}}}}", "compute.n", "aggregate function", "size"
    ),
    "aggregate of an aggregate": Case(
        f"{{{A}, window: {{size: 1s}}, compute: {{n: sum(avg(size))}}}}", "compute.n", "inside another"
    ),
    "loose column": Case(
        f"{{{A}, window: {{size: 1s}}, compute: {{n: sum(size) + size}}}}",
        "compute.n",
        "must be in 'by'",
        "size",
    ),
    "star outside count": Case(
        f"{{{A}, window: {{size: 1s}}, compute: {{n: sum(*)}}}}", "compute.n", "count(*)"
    ),
    "distinct outside count": Case(
        f"{{{A}, window: {{size: 1s}}, compute: {{n: sum(distinct size)}}}}", "compute.n", "count(distinct"
    ),
    "unknown group": Case(
        f"{{{A}, by: [srk], window: {{size: 1s}}, compute: {{n: count(*)}}}}",
        "by",
        "column must exist",
        "srk",
    ),
    "group twice": Case(
        f"{{{A}, by: [src, src], window: {{size: 1s}}, compute: {{n: count(*)}}}}", "by", "only once", "src"
    ),
    "compute named as group": Case(
        f"{{{A}, by: src, window: {{size: 1s}}, compute: {{src: count(*)}}}}",
        "compute.src",
        "name of a column",
    ),
    "compute named window_end": Case(
        f"{{{A}, window: {{size: 1s}}, compute: {{window_end: count(*)}}}}", "compute", "adds window_start"
    ),
    "split by an unknown column": Case(
        f"{{{F}, where: flag, split: {{into: 2, by: srk}}}}", "split.by", "column must exist", "srk"
    ),
    "split into nothing": Case(f"{{{F}, where: flag, split: {{into: 0}}}}", "split.into", "whole number"),
    "split tears groups apart": Case(
        f"{{{A}, by: src, window: {{size: 1s}}, compute: {{n: count(*)}}, split: {{into: 2, by: size}}}}",
        "split.by",
        "columns of its groups",
        "size",
    ),
    "split without groups": Case(
        f"{{{A}, window: {{size: 1s}}, compute: {{n: count(*)}}, split: {{into: 2}}}}",
        "split",
        "must have groups",
    ),
    "union of unequal types": Case(
        "{name: u, kind: union, inputs: [packets, flows]}", "inputs[1]", "one schema", "no column size"
    ),
    "input in place of inputs": Case(
        "{name: u, kind: union, inputs: [flows], input: flows}", "input", "no such key", hint="inputs"
    ),
    "join of one": Case("{name: j, kind: join, inputs: [flows], within: 1s}", "inputs", "at least 2"),
    "join of three": Case(
        "{name: j, kind: join, inputs: {a: flows, b: flows, c: flows}, within: 1s}", "inputs", "exactly two"
    ),
    "join with itself": Case(
        "{name: j, kind: join, inputs: [flows, flows], within: 1s}",
        "inputs",
        "distinct names",
        hint="aliases",
    ),
    "join without within": Case(
        "{name: j, kind: join, inputs: [flows, packets]}", "within", "must have 'within'"
    ),
    "unqualified column in a join": Case(
        "{name: j, kind: join, inputs: [flows, packets], within: 1s, where: 'n = 1'}",
        "where",
        "column must exist",
        "n",
        "flows.n",
    ),
    "multijoin without a window": Case(
        "{name: j, kind: multijoin, inputs: {a: flows, b: flows}, windows: {a: 1s}}",
        "windows",
        "every input",
        "b",
    ),
    "multijoin with a window too many": Case(
        "{name: j, kind: multijoin, inputs: {a: flows, b: flows}, windows: {a: 1s, b: 1s, c: 1s}}",
        "windows.c",
        "one of the inputs",
        "c",
    ),
    "spread and split": Case(
        "{name: j, kind: multijoin, inputs: [I1, flows], windows: {I1: 1s, flows: 1s},"
        " diffuse: {method: atr}, split: {into: 2, by: flows.src}}",
        "split",
        "must not be split too",
        hint="leave one out",
    ),
    "unknown diffusion": Case(
        "{name: j, kind: multijoin, inputs: [I1, flows], windows: {I1: 1s, flows: 1s}, diffuse: {method: x}}",
        "diffuse.method",
        "must be one of",
        "x",
    ),
    "condition on pairs of an input that is not there": Case(
        "{name: j, kind: multijoin, inputs: {a: flows, b: flows}, windows: {a: 1s, b: 1s},"
        " pairs: [{inputs: [a, x], function: 'm:f'}]}",
        "pairs[0].inputs",
        "one of the inputs",
        "x",
    ),
    "condition on pairs of one input": Case(
        "{name: j, kind: multijoin, inputs: {a: flows, b: flows}, windows: {a: 1s, b: 1s},"
        " pairs: [{inputs: [b, b], function: 'm:f'}]}",
        "pairs[0].inputs",
        "about two inputs",
        "b",
    ),
    "condition on pairs without a module": Case(
        "{name: j, kind: multijoin, inputs: {a: flows, b: flows}, windows: {a: 1s, b: 1s},"
        " pairs: [{inputs: [a, b], function: near}]}",
        "pairs[0].function",
        "module:function",
        "near",
    ),
    "shedding all": Case(
        "{name: j, kind: multijoin, inputs: {a: flows, b: flows}, windows: {a: 1s, b: 1s}, shed: {rows: 0}}",
        "shed.rows",
        "must be",
        "0",
    ),
    "function without a module": Case(
        "{name: c, kind: custom, input: flows, function: score, schema: {x: int}}",
        "function",
        "module:function",
    ),
    "custom without a schema": Case(
        "{name: c, kind: custom, input: flows, function: 'a:b'}", "schema", "must have 'schema'"
    ),
    "unknown type": Case(
        "{name: c, kind: custom, input: flows, function: 'a:b', schema: {x: sting}}",
        "schema.x",
        "Spark SQL type",
        "sting",
        "string",
    ),
    "time made something else": Case(
        "{name: c, kind: custom, input: flows, function: 'a:b', schema: {ts: int}}",
        "schema.ts",
        "stay of type",
    ),
}


@pytest.mark.parametrize("case", OPERATOR_CASES.values(), ids=OPERATOR_CASES.keys())
def test_operator_rule(case: Case) -> None:
    (problem,) = problems_of(f"{STREAMS}operators:\n  - {case.operator}\n")
    assert problem.key == f"operators[0].{case.key}".rstrip(".")
    assert problem.line == OPERATORS_LINE
    assert case.rule in problem.rule
    assert case.value in (problem.value or "")
    assert case.hint in (problem.hint or "")


STREAM_CASES = {
    "time not in the schema": ("{schema: {ts: timestamp}, time: tz}", "time", "in the schema"),
    "time of another type": ("{schema: {ts: long}, time: ts}", "time", "of type timestamp"),
    "time without a schema": ("{time: ts}", "time", "must have a schema"),
    "unknown key": ("{rates: 3}", "rates", "no such key"),
    "negative rate": ("{rate: -3}", "rate", "at least 0"),
    "negative sample": ("{rate: [1, -3]}", "rate[1]", "at least 0"),
    "empty rate": ("{rate: []}", "rate", "at least 1"),
    "rate of another type": ("{rate: true}", "rate", "a number, a list"),
    "rate file missing": ("{rate: nowhere.csv}", "rate", "must exist"),
    "negative min_rate": ("{min_rate: -1}", "min_rate", "at least 0"),
    "bare lateness": ("{lateness: 2}", "lateness", "needs a unit"),
    "zero idle_after": ("{idle_after: 0s}", "idle_after", "more than 0"),
    "source without a format": ("{source: {path: x}}", "source.format", "must have 'format'"),
    "empty schema": ("{schema: {}}", "schema", "at least 1 entry"),
    "not a mapping": ("[1]", "", "must be a mapping"),
}


@pytest.mark.parametrize(("stream", "key", "rule"), STREAM_CASES.values(), ids=STREAM_CASES.keys())
def test_stream_rule(stream: str, key: str, rule: str) -> None:
    text = f"streams:\n  s: {stream}\noperators:\n  - {{name: o, kind: model, input: s}}\n"
    (problem,) = problems_of(text)
    assert (problem.key, problem.line) == (f"streams.s.{key}".rstrip("."), 2)
    assert rule in problem.rule


FILE_CASES = {
    "unknown key": ("opeartors: []", "opeartors", "no such key"),
    "hops": ("hops: sometimes", "hops", "within, next"),
    "trigger": ("trigger: 0s", "trigger", "more than 0"),
    "name": ("name: [a]", "name", "must be a name"),
    "on_error": ("errors: {on_error: ignore}", "errors.on_error", "dead_letter, drop, fail"),
    "error sink": ("errors: {sink: {path: x}}", "errors.sink.format", "must have 'format'"),
    "output of nothing": ("outputs: {o: {input: nowhere}}", "outputs.o.input", "name of a stream"),
    "output without input": ("outputs: {o: {}}", "outputs.o.input", "must have 'input'"),
    "sink without a format": (
        "outputs: {o: {input: m, sink: {path: x}}}",
        "outputs.o.sink.format",
        "'format'",
    ),
    "query named like an operator": ("queries: {m: select n from flows}", "queries.m", "name of a stream or"),
    "dot in a stream's name": ("outputs: {a.b: {input: m}}", "outputs.a.b", "without '.'"),
}


@pytest.mark.parametrize(("line", "key", "rule"), FILE_CASES.values(), ids=FILE_CASES.keys())
def test_file_rule(line: str, key: str, rule: str) -> None:
    text = f"{STREAMS}operators:\n  - {{name: m, kind: model, input: I1}}\n{line}\n"
    (problem,) = problems_of(text)
    assert (problem.key, problem.line) == (key, 7)
    assert rule in problem.rule


def network(*operators: str, more: str = "") -> str:
    return STREAMS + "operators:\n" + "".join(f"  - {{{line}}}\n" for line in operators) + more


def test_circle_is_named() -> None:
    (problem,) = problems_of(
        network(
            "name: a, kind: model, input: c",
            "name: b, kind: model, input: a",
            "name: c, kind: model, inputs: [b, I1]",
            "name: d, kind: model, input: c",
        )
    )
    assert "circle" in problem.rule
    names = (problem.value or "").strip("'").split(" → ")
    assert names[0] == names[-1]
    assert set(names) == {"a", "b", "c"}


def test_every_circle_is_found() -> None:
    found = problems_of(
        network(
            "name: a, kind: model, input: b",
            "name: b, kind: model, input: a",
            "name: c, kind: model, input: c",
        )
    )
    assert ["circle" in problem.rule for problem in found] == [True, True]


def test_duplicate_operator_names() -> None:
    (problem,) = problems_of(network("name: a, kind: model, input: I1", "name: a, kind: model, input: I1"))
    assert (problem.key, problem.line) == ("operators[1].name", 7)
    assert "unique" in problem.rule


def test_duplicate_key_in_the_text() -> None:
    (problem,) = problems_of("streams:\n  s: {}\n  s: {}\noperators:\n- {name: o, kind: model, input: s}\n")
    assert problem.line == 3
    assert "only once" in problem.rule


@pytest.mark.parametrize(
    ("reader", "rule"),
    [("f", "read by route"), ("f.larg", "route must exist"), ("w.small", "has no routes")],
)
def test_routes(reader: str, rule: str) -> None:
    (problem,) = problems_of(
        network(
            "name: f, kind: filter, input: packets, routes: {small: size < 9, large: true}",
            "name: w, kind: filter, input: packets, where: flag",
            f"name: x, kind: model, input: {reader}",
        )
    )
    assert problem.key == "operators[2].input"
    assert rule in problem.rule


def test_union_says_which_column_differs() -> None:
    (problem,) = problems_of(
        network(
            "name: a, kind: map, input: packets, select: {n: size}",
            "name: b, kind: map, input: flows, select: {n: n}",
            "name: u, kind: union, inputs: [a, b]",
        )
    )
    assert problem.key == "operators[2].inputs[1]"
    assert "column n is int, not bigint" in (problem.value or "")


def test_union_goes_by_name_not_by_order() -> None:
    loaded = parse_network(
        network(
            "name: a, kind: map, input: flows, select: {n: n, src: src}",
            "name: u, kind: union, inputs: [flows, a]",
        )
    )
    assert loaded.network.operators["u"].schema == loaded.network.streams["flows"].schema


def test_join_columns_that_would_be_written_alike() -> None:
    (problem,) = problems_of(
        "streams:\n"
        "  a: {schema: {ts: timestamp, b_c: int}, time: ts}\n"
        "  a_b: {schema: {ts: timestamp, c: int}, time: ts}\n"
        "operators:\n"
        "  - {name: j, kind: join, inputs: [a, a_b], within: 1s}\n"
    )
    assert problem.key == "operators[0].inputs"
    assert problem.value is not None
    assert "a.b_c and a_b.c" in problem.value


def test_join_column_written_like_join_time() -> None:
    (problem,) = problems_of(
        network("name: j, kind: join, inputs: {join: q, b: flows}, within: 1s").replace(
            "I1: {}", "q: {schema: {time: timestamp}, time: time}"
        )
    )
    assert "join_time" in problem.rule


@pytest.mark.parametrize(
    ("where", "key"),
    [
        ("name: m, kind: model, input: I1, pinned: n9", "operators[0].pinned"),
    ],
)
def test_pinned_to_an_unknown_node(where: str, key: str) -> None:
    cluster = Cluster.equal(3)
    (problem,) = problems_of(network(where), cluster)
    assert problem.key == key
    assert "node of the cluster" in problem.rule
    assert problem.hint is not None
    assert "n1" in problem.hint or "n3" in problem.hint
    parse_network(network(where))  # without a cluster nothing can be said


def test_nodes_of_streams_and_outputs() -> None:
    text = network("name: m, kind: model, input: I1", more="outputs: {o: {input: m, node: x}}\n")
    found = problems_of(text.replace("I1: {}", "I1: {node: y}"), Cluster.equal(2))
    assert [problem.key for problem in found] == ["streams.I1.node", "outputs.o.node"]


def test_series_of_unequal_length() -> None:
    (problem,) = problems_of(
        network(
            "name: a, kind: model, series: [1, 2, 3]",
            "name: b, kind: model, series: [1, 2, 3]",
            "name: c, kind: model, series: [1, 2]",
            "name: d, kind: model, series: [1]",
        )
    )
    assert problem.key == "operators[2].series"
    assert "3 samples" in problem.rule


def test_two_sinks_on_one_path() -> None:
    more = (
        "outputs:\n"
        "  a: {input: I1, sink: {format: parquet, path: ./x}}\n"
        "  b: {input: I1, sink: {format: parquet, path: ./x/}}\n"
        "errors: {sink: {format: parquet, path: ./x}}\n"
    )
    found = problems_of(network("name: m, kind: model, input: I1", more=more))
    assert [problem.key for problem in found] == ["outputs.b.sink.path", "errors.sink.path"]


def test_stream_with_a_source_states_what_operators_need() -> None:
    text = network("name: f, kind: filter, input: s, where: 'x > 1'").replace(
        "I1: {}", "s: {source: {format: rate}}"
    )
    assert [problem.key for problem in problems_of(text)] == ["streams.s.schema", "streams.s.time"]
    parse_network(text.replace("kind: filter", "kind: model").replace(", where: 'x > 1'", ""))


def test_time_windows_need_an_event_time() -> None:
    text = network("name: a, kind: aggregate, input: s, window: {size: 1s}, compute: {n: count(*)}")
    (problem,) = problems_of(text.replace("I1: {}", "s: {schema: {x: int}}"))
    assert "event-time" in problem.rule
    parse_network(text.replace("I1: {}", "s: {schema: {x: int}}").replace("size: 1s", "rows: 10"))


def test_aggregates_nest_by_window_time() -> None:
    loaded = parse_network(
        network(
            "name: a, kind: aggregate, input: packets, by: src, window: {size: 1s}, compute: {n: count(*)}",
            "name: b, kind: aggregate, input: a, window: {size: 7s, slide: 2s}, compute: {top: max(n)}",
        )
    )
    names = [column.name for column in loaded.network.operators["b"].schema or ()]
    assert names == ["top", "window_start", "window_end", "window_time"]


def test_nothing_is_said_downstream_of_the_unknown() -> None:
    loaded = parse_network(
        network(
            "name: m, kind: model, input: packets", "name: f, kind: filter, input: m, where: anything = 1"
        )
    )
    assert loaded.network.operators["f"].schema is None


def test_syntax_is_checked_even_downstream_of_the_unknown() -> None:
    (problem,) = problems_of(network("name: f, kind: filter, input: I1, where: 'a ='"))
    assert "Spark SQL expression" in problem.rule


def test_a_broken_operator_does_not_make_its_readers_look_wrong() -> None:
    (problem,) = problems_of(
        network(
            "name: a, kind: filter, input: packets, where: nosuch = 1",
            "name: b, kind: nokind",
            "name: c, kind: union, inputs: [a, b]",
        )
    )[:1]
    found = problems_of(
        network(
            "name: b, kind: nokind", "name: c, kind: model, input: b", "name: d, kind: model, input: b.route"
        )
    )
    assert problem.key == "operators[0].where"
    assert [p.key for p in found] == ["operators[0].kind"]


def test_all_problems_come_at_once_in_the_order_of_lines() -> None:
    found = problems_of(
        network(
            "name: a, kind: filter, input: packets, where: nosuch = 1, cost: -1",
            "name: b, kind: model, input: nowhere",
            more="hops: never\n",
        )
    )
    assert [problem.line for problem in found] == [6, 6, 7, 8]


def test_an_empty_network_is_refused() -> None:
    (problem,) = problems_of("name: x\n")
    assert "operators or queries" in problem.rule


def test_a_union_with_an_unknown_input_says_only_that() -> None:
    (problem,) = problems_of(network("name: u, kind: union, inputs: [nowhere, packets, flows]"))
    assert problem.key == "operators[0].inputs[0]"
