"""Which operators are equal, and what becomes of a network in which they are one."""

from __future__ import annotations

import pytest

from levelwind.frontend import parse_network
from levelwind.model import Port
from levelwind.rewrite.canonical import canonical
from levelwind.rewrite.reuse import inherited, share, shared_anew

SCHEMA = {"ts": "timestamp", "k": "string", "v": "bigint"}


def made(*operators, queries=None, outputs=None):
    read = {o["name"] for o in operators}
    return parse_network(
        {
            "name": "t",
            "streams": {"p": {"schema": SCHEMA, "time": "ts"}, "q": {"schema": SCHEMA, "time": "ts"}},
            "operators": list(operators),
            "queries": queries or {},
            "outputs": {f"to_{name}": {"input": name} for name in outputs or read},
        }
    ).network


def where(name, text, **more):
    return {"name": name, "kind": "filter", "input": "p", "where": text, **more}


EQUAL = [
    ("v > 1", "(v>1)"),
    ("v > 1", "1 < v"),
    ("v >= 1", "1 <= v"),
    ("v = 1", "1 = v"),
    ("v = 1", "`v` = 1"),
    ("v != 1", "v <> 1"),
    ("v in (1, 2)", "v IN (1,2)"),
    ("v = 1 and k = 'a'", "k = 'a' AND v = 1"),
    ("v = 1 or (k = 'a' or v = 2)", "v = 2 or v = 1 or k = 'a'"),
    ("v between 1 and 2", "v  BETWEEN 1 AND 2"),
    ("v between 1 and 2", "v <= 2 and 1 <= v"),
    ("v between 1 and 2 and k = 'a'", "k = 'a' and v >= 1 and v <= 2"),
    ("v in (1, 2)", "v in (2, 1)"),
    ("v + 1 > 2", "2 < 1 + v"),
    ("v * 2 + 1 > 2", "1 + 2 * v > 2"),
    ("not v = 1", "v <> 1"),
    ("v <=> 1", "1 <=> v"),
    ("v = 1 and v = 1", "v = 1"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_however_written(one, other):
    assert canonical(one) == canonical(other)
    assert share(made(where("a", one), where("b", other))).served_by == {"b": "a"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("v > 1", "v >= 1"),
        ("v > 1", "v < 1"),
        ("v - 1 > 0", "1 - v > 0"),
        ("k = 'a'", "k = 'A'"),
        ("v = 1 and k = 'a'", "v = 1 or k = 'a'"),
        ("v <> 0 and 10 / v > 1", "10 / v > 1 and v <> 0"),
        ("v > 1 and (v < 5 or k = 'a')", "(v > 1 and v < 5) or k = 'a'"),
        ("(v + 1) + 2 > 0", "v + (1 + 2) > 0"),
        ("v between 1 and 2", "v between 2 and 1"),
        ("v / 2 > 1", "2 / v > 1"),
        ("concat(k, 'a') = 'aa'", "concat('a', k) = 'aa'"),
        ("not v < 1", "v > 1"),
    ],
)
def test_not_equal(one, other):
    assert canonical(one) != canonical(other)
    assert not share(made(where("a", one), where("b", other))).served_by


def test_equal_chains_become_one_and_tails_stay():
    network = made(
        where("a1", "v > 1"),
        {"name": "a2", "kind": "map", "input": "a1", "select": {"w": "v + 1"}},
        {"name": "a3", "kind": "filter", "input": "a2", "where": "w > 2"},
        where("b1", "1 < v"),
        {"name": "b2", "kind": "map", "input": "b1", "select": {"w": "v + 1"}},
        {"name": "b3", "kind": "filter", "input": "b2", "where": "w > 3"},
        outputs=("a3", "b3", "b2"),
    )
    shared = share(network)
    assert shared.served_by == {"b1": "a1", "b2": "a2"}
    assert list(shared.network.operators) == ["a1", "a2", "a3", "b3"]
    assert shared.network.operators["b3"].inputs == (Port(source="a2"),)
    assert shared.network.outputs["to_b2"].input == Port(source="a2")
    assert shared.serving("b2") == "a2"
    assert shared.serving("b3[1]") == "b3[1]"


@pytest.mark.parametrize(
    "change",
    [
        {"reusable": False},
        {"input": "q"},
        {"movable": False},
        {"pinned": "n1"},
        {"table": "t"},
        {"split": {"into": 2, "by": "k"}},
    ],
)
def test_what_stands_under_other_rules_is_not_shared(change):
    assert not share(made(where("a", "v > 1"), where("b", "v > 1", **change))).served_by


def test_names_of_columns_and_routes_count():
    def project(name, column):
        return {"name": name, "kind": "map", "input": "p", "select": {column: "v + 1"}}

    assert not share(made(project("a", "x"), project("b", "y"))).served_by
    assert share(made(project("a", "x"), project("b", "x"))).served_by == {"b": "a"}


def test_models_are_shared_in_planning_alone():
    def model(name):
        return {"name": name, "kind": "model", "input": "p", "cost": 0.1}

    network = made(model("a"), model("b"))
    assert not share(network).served_by
    assert share(network, models=True).served_by == {"b": "a"}


def test_queries_share_their_beginnings():
    text = "SELECT k, {} AS n FROM p WHERE v > {} GROUP BY k, window(ts, '2 seconds')"
    queries = {
        "one": text.format("count(*)", 1),
        "two": text.format("sum(v)", 1),
        "far": text.format("sum(v)", 2),
    }
    network = made(queries=queries, outputs=queries)
    before, after = len(network.operators), len(share(network).network.operators)
    assert after < before
    assert {"one", "two", "far"} <= set(share(network).network.operators)


def test_what_runs_already_serves():
    network = made(where("a", "v > 1"), where("b", "v > 1"))
    running = share(made(where("b", "v > 1")))
    assert shared_anew(network, running).served_by == {"a": "b"}


def test_what_computes_goes_on_computing():
    network = made(where("a", "v > 1"), where("b", "v > 1"), where("c", "v > 1"))
    running = share(made(where("b", "v > 1"), where("c", "v > 1", reusable=False)))
    assert shared_anew(network, running).served_by == {"a": "b"}


def test_what_goes_leaves_its_state_to_one_of_those_it_served():
    before = share(made(where("a", "v > 1"), where("b", "v > 1"), where("c", "v > 1")))
    after = shared_anew(made(where("b", "v > 1"), where("c", "v > 1")), before)
    assert inherited(before, after) == {"b": "a"}
    assert after.served_by == {"c": "b"}
    assert inherited(after, shared_anew(made(where("c", "v > 1")), after)) == {"c": "b"}
    assert inherited(before, before) == {}


def test_what_was_told_to_stand_on_different_nodes_is_not_shared():
    network = made(where("a", "v > 1"), where("b", "1 < v"), where("c", "(v>1)"))
    assert share(network, standing={"a": "n1", "b": "n2", "c": "n1"}).served_by == {"c": "a"}


def test_whoever_computes_for_others_is_as_important_as_any_of_them():
    network = made(where("a", "v > 1", priority=1), where("b", "1 < v", priority=4), where("c", "v > 1"))
    shared = share(network)
    assert shared.served_by == {"b": "a", "c": "a"}
    assert shared.network.operators["a"].priority == 4
    # What is asked for stays as it was written.
    assert network.operators["a"].priority == 1
