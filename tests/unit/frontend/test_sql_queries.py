"""What SQL becomes: the operators of each query, and the message for what cannot become any."""

from __future__ import annotations

import json

import pytest

from levelwind import planning
from levelwind.errors import InputError
from levelwind.frontend import load_network, parse_network
from levelwind.frontend.expressions import parse_expression
from levelwind.frontend.functions import SUPPORTED
from levelwind.frontend.sql.durations import text_us
from levelwind.frontend.sql.parsing import column_text, to_text
from levelwind.frontend.writing import network_document, network_text

P = {"ts": "timestamp", "src": "string", "dst": "string", "size": "int", "point": "struct<x:int,y:int>"}
HEAD = {
    "streams": {
        "p": {"schema": P, "time": "ts"},
        "q": {"schema": {"ts": "timestamp", "src": "string", "n": "bigint", "end": "int"}, "time": "ts"},
        "late": {"schema": {"at": "timestamp", "src": "string"}, "time": "at"},
        "raw": {},
    },
    "operators": [
        {"name": "f", "kind": "filter", "input": "p", "routes": {"small": "size < 3", "rest": True}},
        {"name": "pair", "kind": "join", "inputs": {"a": "p", "b": "q"}, "within": "1s"},
        {
            "name": "busy",
            "kind": "aggregate",
            "input": "p",
            "by": "src",
            "window": {"size": "10s"},
            "compute": {"n": "count(*)"},
        },
    ],
}
WINDOW = "window(ts, '10 seconds')"


def network(sql, **more):
    return parse_network({**HEAD, "queries": {"x": sql, **more}}).network


def shown(operator):
    """An operator in one line: kind, inputs, and what it does."""
    spec = operator.spec
    what = {
        "filter": lambda: spec.where,
        "map": lambda: ", ".join(f"{name}: {text}" for name, text in spec.select.items()),
        "union": lambda: "",
        "aggregate": lambda: (
            f"by {', '.join(spec.by) or '-'}; {spec.window.size_s:g}/{spec.window.slide_s:g};"
            f" {', '.join(f'{name}: {text}' for name, text in spec.compute.items())}"
        ),
        "join": lambda: f"{'/'.join(spec.aliases)} within {spec.within_s:.9g}; {spec.where}",
    }[operator.kind]()
    return f"{operator.name} = {operator.kind} {' + '.join(map(str, operator.inputs))}: {what}".rstrip(": ")


def operators_of(network, name="x"):
    return [shown(o) for o in network.operators.values() if o.properties.get("query") == name]


TABLE = {
    # one operator, or none but for the name
    "SELECT * FROM p": [
        "x = map p: ts: ts, src: src, dst: dst, size: size, point: point",
    ],
    "SELECT * FROM p WHERE size > 3 OR src = 'a'": ["x = filter p: size > 3 OR src = 'a'"],
    "SELECT ts, src FROM p": ["x = map p: ts: ts, src: src"],
    "SELECT a.SIZE, a.size * 2 AS d FROM f.small AS a": ["x = map f.small: SIZE: size, d: size * 2"],
    "SELECT small.src FROM f.small": ["x = map f.small: src: src"],
    "SELECT f.small.src FROM f.small": ["x = map f.small: src: src"],
    "SELECT TS, `end` FROM q": ["x = map q: ts: ts, end: `end`"],
    "SELECT ts AS t FROM q": ["x = map q: t: ts"],
    "SELECT point.x, p.point.y AS z FROM p": ["x = map p: x: point.x, z: point.y"],
    "SELECT a.src, `b.n`, pair.a.size FROM pair": ["x = map pair: src: a.src, b.n: b.n, size: a.size"],
    "SELECT p.* FROM p WHERE instr(src, 'a') > 0": ["x = filter p: instr(src, 'a') > 0"],
    "SELECT z FROM raw WHERE y > 1": ["x.where = filter raw: y > 1", "x = map x.where: z: z"],
    "SELECT * FROM raw": ["x = filter raw: true"],
    # subqueries and common table expressions
    "SELECT s + 1 AS t FROM (SELECT size AS s, src FROM p WHERE size > 1) AS i WHERE i.src = 'a'": [
        "x.i.where = filter p: size > 1",
        "x.i = map x.i.where: s: size, src: src",
        "x.where = filter x.i: src = 'a'",
        "x = map x.where: t: s + 1",
    ],
    "WITH c AS (SELECT src, size FROM p) SELECT src FROM c UNION ALL SELECT src FROM c WHERE size > 1": [
        "x.c = map p: src: src, size: size",
        "x.1 = map x.c: src: src",
        "x.2.where = filter x.c: size > 1",
        "x.2 = map x.2.where: src: src",
        "x = union x.1 + x.2",
    ],
    "WITH c AS (SELECT src FROM p), d AS (SELECT src AS s FROM c) SELECT * FROM d": [
        "x.c = map p: src: src",
        "x = map x.c: s: src",
    ],
    "WITH p AS (SELECT src FROM p) SELECT src FROM p": ["x = map p: src: src"],
    # groups
    f"SELECT src, count(*) AS n FROM p GROUP BY src, {WINDOW}": [
        "x.window = aggregate p: by src; 10/10; n: count(*)",
        "x = map x.window: src: src, n: n",
    ],
    f"SELECT window, src, count(*) AS n FROM p GROUP BY src, {WINDOW}": [
        "x = aggregate p: by src; 10/10; n: count(*)",
    ],
    f"SELECT window.start, window.end AS e, count(*) AS n FROM p GROUP BY {WINDOW}": [
        "x.window = aggregate p: by -; 10/10; n: count(*)",
        "x = map x.window: window_start: window_start, e: window_end, n: n",
    ],
    "SELECT sum(size) / count(*) AS m, window FROM p GROUP BY window(ts, '1 minute', INTERVAL 30 SECONDS)": [
        "x = aggregate p: by -; 60/30; m: sum(size) / count(*)",
    ],
    f"SELECT upper(src) AS u, max(size) AS m, window FROM p WHERE size > 1 GROUP BY u, {WINDOW}": [
        "x.where = filter p: size > 1",
        "x.keys = map x.where: size: size, u: upper(src)",
        "x = aggregate x.keys: by u; 10/10; m: max(size)",
    ],
    f"SELECT window.start AS s, src FROM p GROUP BY s, 2, {WINDOW}": [
        "x.window = aggregate p: by src; 10/10; n: count(*)",
        "x = map x.window: s: window_start, src: src",
    ],
    f"SELECT upper(src) AS src, length(upper(src)) AS l FROM p GROUP BY 1, {WINDOW}": [
        "x.keys = map p: key: upper(src)",
        "x.window = aggregate x.keys: by key; 10/10; n: count(*)",
        "x = map x.window: src: key, l: length(key)",
    ],
    f"SELECT count(*) AS n FROM p GROUP BY {WINDOW} HAVING n > 3 AND max(size) < 9": [
        "x.window = aggregate p: by -; 10/10; n: count(*), max: max(size)",
        "x.having = filter x.window: n > 3 AND max < 9",
        "x = map x.having: n: n",
    ],
    f"SELECT src, count(*) AS n FROM p GROUP BY src, {WINDOW} HAVING count(*) > 3 AND src <> 'a'": [
        "x.window = aggregate p: by src; 10/10; n: count(*)",
        "x.having = filter x.window: n > 3 AND src <> 'a'",
        "x = map x.having: src: src, n: n",
    ],
    f"SELECT sum(size) AS size FROM p GROUP BY {WINDOW} HAVING size > 3 AND sum(size) < 9": [
        "x.window = aggregate p: by -; 10/10; size: sum(size)",
        "x.having = filter x.window: size > 3 AND size < 9",
        "x = map x.having: size: size",
    ],
    f"SELECT unix_timestamp(window.end) - max(size) AS d FROM p GROUP BY {WINDOW}": [
        "x.window = aggregate p: by -; 10/10; max: max(size)",
        "x = map x.window: d: unix_timestamp(window_end) - max",
    ],
    "SELECT sum(n) AS n, window_start AS s FROM busy GROUP BY window(window_time, '1 hour'), window_start": [
        "x.keys = map busy: n: n, s: window_start",
        "x.window = aggregate x.keys: by s; 3600/3600; n: sum(n)",
        "x = map x.window: n: n, s: s",
    ],
    "SELECT a.src, count(*) AS n FROM p a JOIN q b ON a.ts = b.ts"
    " GROUP BY a.src, window(join_time, '1 day')": [
        "x.join = join p + q: a/b within 0; None",
        "x.window = aggregate x.join: by a.src; 86400/86400; n: count(*)",
        "x = map x.window: src: a.src, n: n",
    ],
    "SELECT count(*) AS n, window FROM (SELECT ts AS t, src FROM p) GROUP BY window(t, '1 hour')": [
        "x.from = map p: t: ts, src: src",
        "x = aggregate x.from: by -; 3600/3600; n: count(*)",
    ],
    # unions
    "SELECT * FROM p UNION ALL SELECT * FROM f.rest": ["x = union p + f.rest"],
    "SELECT src, size FROM p UNION ALL (SELECT src, n FROM q UNION ALL SELECT dst, size + 1 FROM p)": [
        "x.1 = map p: src: src, size: size",
        "x.2 = map q: src: src, size: n",
        "x.3 = map p: src: dst, size: size + 1",
        "x.1.select = map x.1: src: src, size: CAST(size AS BIGINT)",
        "x.3.select = map x.3: src: src, size: CAST(size AS BIGINT)",
        "x = union x.1.select + x.2 + x.3.select",
    ],
    "SELECT a FROM raw UNION ALL SELECT b FROM raw": [
        "x.1 = map raw: a: a",
        "x.2 = map raw: a: b",
        "x = union x.1 + x.2",
    ],
    # joins
    "SELECT a.src, n FROM p a JOIN q b ON a.src = b.src AND"
    " a.ts BETWEEN b.ts - INTERVAL 2 MINUTES AND b.ts + INTERVAL 2 MINUTES WHERE a.size > 3 AND size < n": [
        "x.a.where = filter p: size > 3",
        "x.join = join x.a.where + q: a/b within 120; a.src = b.src AND a.size < b.n",
        "x = map x.join: src: a.src, n: b.n",
    ],
    "SELECT n FROM p JOIN q ON abs(p.ts - q.ts) <= INTERVAL '1 minute 30 seconds'": [
        "x.join = join p + q: p/q within 90; None",
        "x = map x.join: n: q.n",
    ],
    "SELECT n FROM p, q WHERE p.ts <= q.ts + INTERVAL 1 HOUR AND q.ts - INTERVAL 1 HOUR <= p.ts": [
        "x.join = join p + q: p/q within 3600; None",
        "x = map x.join: n: q.n",
    ],
    "SELECT n FROM p CROSS JOIN q"
    " WHERE q.ts > p.ts AND q.ts < p.ts + INTERVAL 1 SECOND AND (n > 1 OR size > 2)": [
        "x.join = join p + q: p/q within 0.999999; q.ts > p.ts AND (q.n > 1 OR p.size > 2)",
        "x = map x.join: n: q.n",
    ],
    "SELECT a.size, b.size AS other FROM p a JOIN p b ON a.ts = b.ts WHERE true": [
        "x.join = join p + p: a/b within 0; TRUE",
        "x = map x.join: size: a.size, other: b.size",
    ],
    "SELECT a.n FROM busy a JOIN (SELECT src, window FROM p GROUP BY src, window(ts, '10 seconds')) b"
    " ON a.window_start = b.window_start AND a.src = b.src": [
        "x.b.window = aggregate p: by src; 10/10; n: count(*)",
        "x.b = map x.b.window: src: src, window_start: window_start, window_end: window_end",
        "x.join = join busy + x.b: a/b within 0; a.src = b.src",
        "x = map x.join: n: a.n",
    ],
    "SELECT a.src FROM p a JOIN q b ON abs(a.ts - b.ts) <= INTERVAL 1 SECOND"
    " JOIN late c ON c.at BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"
    " WHERE join_time > b.ts AND c.src = 'a'": [
        "x.join_b = join p + q: a/b within 1; None",
        "x.c.where = filter late: src = 'a'",
        "x.join = join x.join_b + x.c.where: a_b/c within 5;"
        " c.at BETWEEN a_b.a.ts AND a_b.a.ts + INTERVAL '5' SECONDS",
        "x.where = filter x.join: join_time > a_b.b.ts",
        "x = map x.where: src: a_b.a.src",
    ],
    "SELECT raw.z FROM p JOIN raw ON p.ts = raw.t AND raw.y = size": [
        "x.join = join p + raw: p/raw within 0; raw.y = p.size",
        "x = map x.join: z: raw.z",
    ],
}


@pytest.mark.parametrize(("sql", "expected"), TABLE.items(), ids=range(len(TABLE)))
def test_operators(sql, expected):
    assert operators_of(network(sql)) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT size * 2L AS d, 'a' AS s FROM p", {"d": "bigint", "s": "string", "ts": "timestamp"}),
        (
            f"SELECT src, avg(size) AS m FROM p GROUP BY src, {WINDOW}",
            {"src": "string", "m": "double", "window_time": "timestamp"},
        ),
        ("SELECT a.size FROM p a JOIN q b ON a.ts = b.ts", {"size": "int", "join_time": "timestamp"}),
        ("SELECT size FROM p UNION ALL SELECT n FROM q", {"size": "bigint", "ts": "timestamp"}),
    ],
)
def test_columns_and_types_are_spark_s_and_the_time_goes_along(sql, expected):
    schema = network(sql).operators["x"].schema
    assert {column.name: column.type for column in schema} == expected


REFUSED = [
    ("SELECT DISTINCT src FROM p", "this part of SQL", "DISTINCT", "window("),
    ("SELECT src FROM p ORDER BY src", "this part of SQL", "ORDER BY", "event time"),
    ("SELECT src FROM p SORT BY src", "this part of SQL", "SORT BY", ""),
    ("SELECT src FROM p LIMIT 3", "this part of SQL", "LIMIT", "WHERE"),
    ("SELECT src FROM p OFFSET 3", "this part of SQL", "OFFSET", ""),
    ("SELECT src FROM p TABLESAMPLE (5 ROWS)", "this part of SQL", "TABLESAMPLE", "hash"),
    ("SELECT src FROM p LATERAL VIEW explode(dst) t AS z", "this part of SQL", "LATERAL VIEW", ""),
    ("SELECT p.src FROM p LEFT JOIN q ON p.ts = q.ts", "this part of SQL", "LEFT JOIN", "inner"),
    ("SELECT p.src FROM p FULL OUTER JOIN q ON p.ts = q.ts", "this part of SQL", "FULL OUTER JOIN", ""),
    ("SELECT p.src FROM p LEFT SEMI JOIN q ON p.ts = q.ts", "this part of SQL", "LEFT SEMI JOIN", ""),
    ("SELECT size FROM p JOIN q USING (src) WHERE p.ts = q.ts", "this part of SQL", "USING", "ON"),
    ("SELECT src FROM p UNION SELECT src FROM q", "this part of SQL", "UNION without ALL", "UNION ALL"),
    ("SELECT src FROM p EXCEPT SELECT src FROM q", "this part of SQL", "EXCEPT", ""),
    ("SELECT * EXCEPT (src) FROM p", "this part of SQL", "* EXCEPT", "one by one"),
    (f"SELECT count(*) AS n FROM p GROUP BY ROLLUP(src), {WINDOW}", "this part of SQL", "ROLLUP", ""),
    ("WITH RECURSIVE c AS (SELECT src FROM p) SELECT src FROM c", "this part of SQL", "WITH RECURSIVE", ""),
    ("SELECT x FROM (SELECT src AS x FROM p) AS t(x)", "must not rename", "t(x)", "AS"),
    ("SELECT sum(size) OVER (PARTITION BY src) AS s FROM p", "window functions", "OVER", "GROUP BY"),
    ("SELECT row_number() OVER (PARTITION BY src) AS s FROM p", "window functions", "OVER", "GROUP BY"),
    ("SELECT src FROM p WHERE src IN (SELECT src FROM q)", "must stand in FROM", "SELECT src", "join"),
    ("SELECT (SELECT n FROM q) AS n FROM p", "must stand in FROM", "SELECT n", ""),
    ("SELECT src FROM p WHERE EXISTS (SELECT n FROM q)", "must stand in FROM", "SELECT n", ""),
    ("SELECT count(*) AS n FROM p", "exactly one window", "no window", "window(ts,"),
    ("SELECT src, count(*) AS n FROM p GROUP BY src", "exactly one window", "no window", "window(ts,"),
    (f"SELECT count(*) AS n FROM p GROUP BY {WINDOW}, window(ts, '1 day')", "exactly one", "2 windows", ""),
    ("SELECT count(*) AS n FROM p GROUP BY window(ts)", "must be written", "window(ts)", ""),
    ("SELECT count(*) AS n FROM p GROUP BY window(ts, '1 month')", "fixed length", "1 month", "seconds"),
    ("SELECT count(*) AS n FROM p GROUP BY window(ts, size)", "fixed length", "size", ""),
    ("SELECT count(*) AS n FROM p GROUP BY window(ts, '1 s', '2 s')", "fixed length", "1 s", ""),
    ("SELECT count(*) AS n FROM p GROUP BY window(ts, '1 second', '1 day')", "slide must not", "window(", ""),
    ("SELECT count(*) AS n FROM p GROUP BY window(src, '1 day')", "over the event time", "src", "window(ts"),
    (
        "SELECT count(*) AS n FROM p a JOIN q b ON a.ts = b.ts GROUP BY window(size, '1 day')",
        "over the event time",
        "a.size",
        "window(join_time",
    ),
    ("SELECT window(ts, '1 day').start AS s FROM p", "must stand in GROUP BY", "window", ""),
    (f"SELECT size, count(*) AS n FROM p GROUP BY src, {WINDOW}", "in GROUP BY", "size", "first(size)"),
    (f"SELECT * FROM p GROUP BY src, {WINDOW}", "name its columns", "*", ""),
    (f"SELECT window AS w, count(*) AS n FROM p GROUP BY {WINDOW}", "by its ends", "window", "window.start"),
    (f"SELECT max(window.end) AS e FROM p GROUP BY {WINDOW}", "inside an aggregate", "window.end", "outside"),
    (f"SELECT count(*) AS n FROM p GROUP BY 3, {WINDOW}", "number in GROUP BY", "3", ""),
    (f"SELECT count(*) AS n FROM p GROUP BY max(size), {WINDOW}", "aggregate functions", "max(size)", ""),
    (f"SELECT sum(count(*)) AS n FROM p GROUP BY {WINDOW}", "inside another", "count", ""),
    ("SELECT src FROM p WHERE count(*) > 2", "SELECT or HAVING", "count(*) > 2", ""),
    ("SELECT src FROM p WHERE size + 1", "must be a condition", "size + 1", ""),
    ("SELECT FROM p", "SELECT must name columns", "SELECT FROM p", "*"),
    (f"SELECT count() AS n FROM p GROUP BY {WINDOW}", "at least 1 argument", "count()", ""),
    ("SELECT size + 1 FROM p", "must have a name", "size + 1", "AS"),
    (f"SELECT count(*) FROM p GROUP BY {WINDOW}", "must have a name", "count(*)", "AS"),
    ("SELECT src, dst AS SRC FROM p", "distinct names", "SRC", "AS"),
    ("SELECT size AS `a.b` FROM p", "without '.'", "a.b", ""),
    ("SELECT src AS ts FROM p", "time column", "ts", "another name"),
    ("SELECT size, ts FROM p a JOIN q b ON a.ts = b.ts AND a.size = b.n", "one table", "ts", "a.ts or b.ts"),
    ("SELECT p.size FROM p JOIN p ON p.ts = p.ts", "distinct names", "p", "AS"),
    ("SELECT c.* FROM p", "must stand in FROM", "c.*", "p"),
    ("SELECT size FROM p JOIN q ON p.src = q.src", "bound the time", "p and q", "p.ts BETWEEN q.ts"),
    ("SELECT size FROM p JOIN q ON p.ts >= q.ts", "bound the time", "p and q", "BETWEEN"),
    ("SELECT n FROM p JOIN q ON p.ts > q.ts AND p.ts < q.ts", "leave room", "p and q", ""),
    ("SELECT src, size FROM p UNION ALL SELECT src FROM q", "as many columns", "1", "2"),
    ("SELECT src FROM p UNION ALL SELECT src FROM late", "one time column", "ts and at", ""),
    ("SELECT src FROM p UNION ALL SELECT n FROM q", "types that agree", "string and bigint", "CAST"),
    ("SELECT ts FROM p UNION ALL SELECT src FROM q", "time column", "ts", "another name"),
    ("WITH c AS (SELECT srk FROM p) SELECT src FROM p", "column must exist", "srk", "src"),
    ("SELECT x FROM VALUES (1) AS t", "FROM must read", "VALUES", ""),
]


@pytest.mark.parametrize(("sql", "rule", "value", "hint"), REFUSED, ids=range(len(REFUSED)))
def test_refusals(sql, rule, value, hint):
    with pytest.raises(InputError) as caught:
        network(sql)
    problems = [problem for problem in caught.value.problems if rule in problem.rule]
    assert problems, caught.value
    assert problems[0].key == "queries.x"
    assert value in problems[0].value
    assert hint in (problems[0].hint or "")


def test_all_problems_come_at_once_with_the_line_of_the_query(tmp_path):
    file = tmp_path / "network.yaml"
    file.write_text(
        "streams:\n  p: {schema: {ts: timestamp, src: string}, time: ts}\n"
        "queries:\n"
        "  good: SELECT src FROM p\n"
        "  bad: SELECT DISTINCT srk, length(src), count(*) AS n FROM p WHERE siz > 1 ORDER BY n\n"
    )
    with pytest.raises(InputError) as caught:
        load_network(file)
    assert {(problem.key, problem.line) for problem in caught.value.problems} == {("queries.bad", 5)}
    told = [problem.value.strip("'") for problem in caught.value.problems]
    assert sorted(told) == ["DISTINCT", "ORDER BY", "length(src)", "no window", "siz", "srk"]


def test_names_stay_apart():
    sql = "WITH `where` AS (SELECT src, size FROM p WHERE size > 1) SELECT src FROM `where` WHERE size > 2"
    assert [line.split(" =")[0] for line in operators_of(network(sql))] == [
        "x.where.where",
        "x.where",
        "x.where.2",
        "x",
    ]


@pytest.mark.parametrize("text", ["x.window", "x.where"])
def test_inner_operators_are_nobody_else_s(text):
    operators = [*HEAD["operators"], {"name": "m", "kind": "model", "input": text}]
    sql = f"SELECT count(*) AS n FROM p GROUP BY {WINDOW}"
    with pytest.raises(InputError, match="'x' has no routes"):
        parse_network({**HEAD, "operators": operators, "queries": {"x": sql}})


@pytest.mark.parametrize("name", ["p", "f"])
def test_a_query_s_name_must_be_its_own(name):
    with pytest.raises(InputError, match="must not have the name of a stream or operator"):
        parse_network({**HEAD, "queries": {name: "SELECT src FROM q"}})


def test_what_is_stated_for_a_query_s_operators():
    sql = f"SELECT src, count(*) AS n FROM p GROUP BY src, {WINDOW}"
    stated = {
        "x.window": {"cost": "3us", "selectivity": 0.5, "split": {"into": 2, "by": "src"}},
        "x": {"pinned": "n1", "properties": {"team": "a"}},
    }
    found = parse_network({**HEAD, "queries": {"x": {"sql": sql, "operators": stated}}}).network
    assert found.queries["x"].sql == sql
    window, last = found.operators["x.window"], found.operators["x"]
    assert (window.cost_s, window.selectivity, window.split.into) == (3e-6, 0.5, 2)
    assert (last.pinned, last.properties) == ("n1", {"team": "a", "query": "x"})
    assert parse_network(network_text(found)).network == found
    assert parse_network(json.dumps(network_document(found))).network == found
    for name, split in (("x.windw", None), ("x.window", {"into": 2, "by": "n"})):
        with pytest.raises(InputError) as caught:
            parse_network({**HEAD, "queries": {"x": {"sql": sql, "operators": {name: {"split": split}}}}})
        assert caught.value.problems[0].key.startswith("queries.x.operators")


def test_a_plan_places_what_queries_become():
    found = network("SELECT src FROM p WHERE size > 1", y="SELECT src AS s FROM x")
    plan = planning.plan(found, 2, "random", seed=1)
    assert {"x.where", "x", "y"} <= set(plan.placement)
    assert not any("SQL" in note for note in plan.notes)


@pytest.mark.parametrize("name", SUPPORTED)
def test_functions_are_written_as_they_are_read(name):
    function = SUPPORTED[name]
    for count in range(function.least, min(function.most, 4) + 1):
        arguments = "a as int" if function.result == "cast" else ", ".join("abcd"[:count])
        parsed = parse_expression(f"{name}({arguments})")
        if parsed.tree is not None:
            again = parse_expression(to_text(parsed.tree))
            assert not again.faults
            assert to_text(again.tree) == to_text(parsed.tree)


@pytest.mark.parametrize(
    "name", ["src", "end", "a b", "select", "a.end", "interval", "1st", "a.b.c.d.e", "`"]
)
def test_column_names_are_written_as_they_are_read(name):
    text = column_text(name)
    assert parse_expression(f"{text} + 1").outside == (name,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 seconds", 10_000_000),
        ("INTERVAL 1 hour 30 minutes", 5_400_000_000),
        ("0.5 seconds", 500_000),
        ("2 weeks", 1_209_600_000_000),
        ("1 month", None),
        ("", None),
        ("10", None),
        ("0.0000001 seconds", None),
        ("99999999999999999 days", None),
    ],
)
def test_durations(text, expected):
    assert text_us(text) == expected
