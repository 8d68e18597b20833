from __future__ import annotations

import pytest

from levelwind.errors import InputError
from levelwind.frontend import parse_network

HEAD = {
    "streams": {
        "p": {"schema": {"ts": "timestamp", "src": "string", "size": "int"}, "time": "ts"},
        "q": {"schema": {"ts": "timestamp", "src": "string", "n": "int"}, "time": "ts"},
        "raw": {},
    },
    "operators": [
        {"name": "f", "kind": "filter", "input": "p", "routes": {"small": "size < 3", "rest": True}}
    ],
}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT src, count(*) AS n FROM p GROUP BY src, window(ts, '10 seconds')",
        "SELECT window.start, src, sum(size) s FROM p GROUP BY window(ts, '10 seconds', '1 second'), src",
        "SELECT * FROM p WHERE size > 3",
        "SELECT a.src, b.n FROM p a JOIN q AS b ON a.src = b.src AND a.ts = b.ts",
        "WITH c AS (SELECT src, size * 2 AS s FROM p) SELECT s FROM c WHERE s > 1",
        "SELECT s FROM (SELECT size AS s FROM p)",
        "SELECT size FROM f.small",
        "SELECT SRC FROM p",
        "SELECT anything FROM raw",
        "SELECT src FROM p UNION ALL SELECT src FROM q",
        "SELECT src, max(size) AS m FROM p GROUP BY src, window(ts, '1 minute') HAVING count(*) > 1",
    ],
)
def test_good(sql: str) -> None:
    assert parse_network({**HEAD, "queries": {"x": sql}}).network.queries["x"].sql == sql


@pytest.mark.parametrize(
    ("sql", "rule", "value", "hint"),
    [
        ("SELECT FROM WHERE", "Spark SQL query", "SELECT FROM WHERE", ""),
        ("SELECT 'a FROM p", "Spark SQL query", "", ""),
        ("DROP TABLE p", "single SELECT", "DROP", ""),
        ("SELECT src FROM p; SELECT src FROM q", "single SELECT", "", ""),
        ("INSERT INTO p SELECT * FROM q", "single SELECT", "", ""),
        ("SELECT 1", "must read", "", "FROM"),
        ("SELECT src FROM pp", "name of a stream", "pp", "'p'"),
        ("SELECT size FROM f", "by route", "f", "f.small"),
        ("SELECT size FROM f.big", "route must exist", "f.big", ""),
        ("SELECT srk FROM p", "column must exist", "srk", "src"),
        ("SELECT p.srk FROM p", "column must exist", "p.srk", "src"),
        ("SELECT a.n FROM p a JOIN q b ON a.ts = b.ts", "column must exist", "a.n", ""),
        ("SELECT s2 FROM (SELECT size AS s FROM p)", "column must exist", "s2", ""),
        ("SELECT trimm(src) AS s FROM p", "supported one", "trimm", "trim"),
        ("SELECT window(ts, '1 second') FROM p", "must stand in GROUP BY", "window", "window.start"),
    ],
)
def test_bad(sql: str, rule: str, value: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_network({**HEAD, "queries": {"x": sql}})
    (problem,) = caught.value.problems
    assert problem.key == "queries.x"
    assert rule in problem.rule
    assert value in (problem.value or "")
    assert hint in (problem.hint or "")


def test_a_known_table_is_checked_beside_an_unknown_one() -> None:
    with pytest.raises(InputError) as caught:
        parse_network({**HEAD, "queries": {"x": "SELECT p.srk, raw.z FROM p JOIN raw ON p.ts = raw.t"}})
    (problem,) = caught.value.problems
    assert problem.value == "'p.srk'"


def test_operators_queries_and_outputs_read_queries() -> None:
    network = parse_network(
        {
            "streams": HEAD["streams"],
            "operators": [{"name": "m", "kind": "filter", "input": "x", "where": "src <> 'a'"}],
            "queries": {"y": "SELECT upper(src) AS u FROM m", "x": "SELECT src FROM p"},
            "outputs": {"o": {"input": "y"}},
        }
    ).network
    assert list(network.operators) == ["m", "y", "x"]
    assert network.order == ("x", "m", "y")
    assert [column.name for column in network.operators["y"].schema or ()] == ["u", "ts"]


@pytest.mark.parametrize("first", ["SELECT src FROM x", "SELECT src FROM y", "SELECT src FROM m"])
def test_circles_are_refused(first: str) -> None:
    operators = [{"name": "m", "kind": "filter", "input": "y", "where": "true"}]
    queries = {"x": first, "y": "SELECT src FROM x"}
    with pytest.raises(InputError, match="in a circle") as caught:
        parse_network({"streams": HEAD["streams"], "operators": operators, "queries": queries})
    assert len(caught.value.problems) == 1


def test_a_broken_query_does_not_break_its_readers() -> None:
    with pytest.raises(InputError) as caught:
        parse_network(
            {
                "streams": HEAD["streams"],
                "queries": {"x": 3, "y": "SELECT FROM", "z": "SELECT a FROM x UNION ALL SELECT b FROM y"},
                "outputs": {"o": {"input": "x"}, "r": {"input": "y"}},
            }
        )
    assert [problem.key for problem in caught.value.problems] == ["queries.x", "queries.y"]
