"""Bad input of every kind: exit 2, the problems as a list, no traceback, nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str, str], Path]
WORKED = "examples/worked.yaml"
BROKEN = """
streams: {I1: {}}
operators:
  - {name: o1, kind: model, inptu: I1, cost: 14}
  - {name: o2, kind: modle, input: I1}
"""


@pytest.mark.parametrize(
    ("arguments", "keys", "hint"),
    [
        ((), ["COMMAND"], "plan"),
        (("plna",), ["COMMAND"], "'plan'"),
        (("--vresion",), ["--vresion"], "'--version'"),
        (("plan",), ["NETWORK"], "levelwind plan --help"),
        (("plan", WORKED), ["--cluster"], "--nodes"),
        (("plan", WORKED, "--ndoes", "2"), ["--ndoes"], "'--nodes'"),
        (("plan", WORKED, "--nodes"), ["--nodes"], "--help"),
        (("plan", WORKED, "--nodes", "two"), ["--nodes"], None),
        (("plan", WORKED, "--nodes", "0"), ["--nodes"], None),
        (("plan", WORKED, "--nodes", "9" * 20), ["--nodes"], None),
        (("plan", WORKED, "--nodes", "2", "--seed", "-1"), ["--seed"], None),
        (("plan", WORKED, "--nodes", "2", "--format", "xml"), ["--format"], None),
        (("plan", WORKED, "--nodes", "2", "more"), [""], "--help"),
        (("plan", WORKED, "--nodes", "2", "--set", "order"), ["--set"], None),
        (("plan", WORKED, "--nodes", "2", "--set", "order=raw", "--set", "order=raw"), ["--set order"], None),
        (("plan", WORKED, "--nodes", "2", "--set", "ordre=raw"), ["rod.ordre"], "'order'"),
        (("plan", WORKED, "--nodes", "2", "--set", "order=big"), ["rod.order"], None),
        (("plan", WORKED, "--nodes", "2", "--planner", "rdo"), ["planner"], "'rod'"),
        (("plan", WORKED, "--nodes", "2", "--planner", "llf"), ["planner llf"], "rate"),
        (("plan", WORKED, "--nodes", "2", "--cluster", "examples/cluster.yaml"), ["--nodes"], "--cluster"),
        (("plan", WORKED, "--nodes", "2", "--output", "none/plan.json"), ["--output"], None),
        (("plan", WORKED, "--nodes", "2", "--output", "examples"), ["--output"], None),
        (("plan", "none.yaml", "--cluster", "neither.yaml"), ["", ""], "path"),
        (("compare", WORKED, "--nodes", "2", "--planners", "rod,llf"), ["planner llf"], "rate"),
        (("compare", WORKED, "--nodes", "2", "--planners", "rdo"), ["--planners"], "'rod'"),
        (("compare", WORKED, "--nodes", "2", "--planners", ","), ["--planners"], None),
        (
            ("compare", WORKED, "--nodes", "2", "--planners", "rod", "--set", "llf.k=1"),
            ["--set llf.k"],
            "known: rod",
        ),
        (
            ("compare", WORKED, "--nodes", "2", "--planners", "rod", "--set", "oder=raw"),
            ["--set oder"],
            "'order'",
        ),
        (("size", WORKED), ["rates"], "--rates"),
        (("size", WORKED, "--rates", "I1=x,I9=3"), ["--rates I1", "--rates I9"], None),
        (("size", WORKED, "--rates", "I1=1,I2=1", "--cpu", "0"), ["--cpu"], None),
        (("size", WORKED, "--rates", "I1=inf"), ["--rates I1"], None),
        (("measure", WORKED, "--nodes", "2"), ["--placement"], "--help"),
        (("measure", WORKED, "--nodes", "2", "--placement", "none.json"), [""], "path"),
    ],
)
def test_every_kind_of_bad_option(run, arguments, keys, hint):
    ended = run(*arguments)
    assert ended.problem_keys() == keys
    if hint is not None:
        assert hint in ended.json[0]["hint"]


def test_problems_of_a_file_carry_file_line_and_key(run, write: Write):
    file = write("broken.yaml", BROKEN)
    for command in (("check", file), ("plan", file, "--nodes", 2)):
        ended = run(*command)
        assert ended.problem_keys()[0] == "operators[0].inptu"
        assert {problem["file"] for problem in ended.json} == {str(file)}
        assert ended.json[0]["line"] == 4
        assert "'input'" in ended.json[0]["hint"]


def test_json_asked_for_by_name_leaves_one_line_on_stderr(run, write: Write):
    ended = run("check", write("broken.yaml", BROKEN), "--format=json")
    assert len(ended.json) > 1
    assert len(ended.err.splitlines()) == 1


def test_text_has_one_message_per_file_and_a_line_per_problem(run, write: Write):
    file = write("broken.yaml", BROKEN)
    count = len(run("check", file).json)
    ended = run("check", file, "--format", "text")
    assert ended.code == 2
    assert ended.out == ""
    head, *lines = ended.err.splitlines()
    assert head == f"error: {count} problems in {file}"
    assert len(lines) == count


@pytest.mark.parametrize("text", ["", "[1, 2]", "{a: [n1]}", "a: n1: n2", "\0"])
def test_unreadable_placement_from_standard_input(run, text):
    ended = run("measure", WORKED, "--nodes", 2, "--placement", "-", stdin=text)
    ended.problem_keys()
    assert {problem["file"] for problem in ended.json} == {"<standard input>"}


def test_placement_that_does_not_fit_names_its_file(run, write: Write):
    file = write("p.json", json.dumps({"o1": "n1", "o2": "n7", "o3": "n1", "ox": "n1"}))
    ended = run("measure", WORKED, "--nodes", 2, "--placement", file)
    assert sorted(ended.problem_keys()) == ["o2", "o4", "ox"]
    assert {problem["file"] for problem in ended.json} == {str(file)}


def test_unknown_operator_to_explain(run):
    plan = run("plan", WORKED, "--nodes", 2).out
    ended = run("explain", WORKED, "--nodes", 2, "--placement", "-", "--operator", "p1", stdin=plan)
    assert ended.problem_keys() == ["operator"]


def test_pins_are_checked_against_the_cluster(run, write: Write):
    text = "streams: {I: {}}\noperators:\n  - {name: a, kind: model, input: I, cost: 1ms, pinned: n7}\n"
    file = write("pinned.yaml", text)
    assert run("check", file).code == 0
    assert run("check", file, "--nodes", 2).problem_keys() == ["operators[0].pinned"]
    assert run("check", file, "--cluster", "examples/cluster.yaml").code == 2


def test_bad_cluster_file_is_checked_as_one(run, write: Write):
    file = write("cluster.yaml", "nodes:\n  - {name: n1, cup: 1}\n")
    assert run("check", file).problem_keys() == ["nodes[0].cup"]


def test_problems_of_network_and_cluster_come_together(run, write: Write):
    cluster = write("cluster.yaml", "nodes:\n  - {name: n1, cup: 1}\n")
    ended = run("plan", write("broken.yaml", BROKEN), "--cluster", cluster)
    assert ended.problem_keys()[0] == "nodes[0].cup"
    assert len({problem["file"] for problem in ended.json}) == 2


def test_a_missing_cluster_file_is_told_before_any_planning(run, tmp_path):
    output = tmp_path / "plan.json"
    ended = run("plan", WORKED, "--cluster", tmp_path / "none.yaml", "--output", output)
    assert ended.problem_keys() == [""]
    assert not output.exists()
