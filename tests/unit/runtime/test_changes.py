"""What is added to a network and taken out of it while it runs, and what a checkpoint goes on with."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from levelwind.errors import InputError
from levelwind.frontend import parse_network
from levelwind.frontend.addition import extended
from levelwind.rewrite.removal import without
from levelwind.runtime.changes import as_kept, continued, difference, digest, refused_streams, store
from levelwind.runtime.commits import Commit, Version

NETWORK = parse_network(
    {
        "name": "t",
        "streams": {"p": {"schema": {"ts": "timestamp", "k": "string", "v": "bigint"}, "time": "ts"}},
        "operators": [
            {"name": "some", "kind": "filter", "input": "p", "where": "v > 1"},
            {"name": "mine", "kind": "map", "input": "some", "select": {"v": "v + 1"}},
        ],
        "queries": {"total": "SELECT k, count(*) AS n FROM some GROUP BY k, window(ts, '2 seconds')"},
        "outputs": {
            "a": {"input": "mine", "sink": {"format": "parquet", "path": "/nowhere/a"}},
            "b": {"input": "total"},
            "c": {"input": "some"},
        },
    }
).network
MORE = {
    "operators": [{"name": "big", "kind": "filter", "input": "mine", "where": "v > 5"}],
    "queries": {"few": "SELECT k, max(v) AS m FROM some GROUP BY k, window(ts, '4 seconds')"},
    "outputs": {"d": {"input": "big", "sink": {"format": "parquet", "path": "out"}}, "e": {"input": "few"}},
}


def test_what_is_added_reads_what_is_there_and_changes_nothing_of_it(tmp_path):
    found = extended(NETWORK, MORE, base=tmp_path)
    assert list(found.operators)[: len(NETWORK.operators)] == list(NETWORK.operators)
    assert all(found.operators[name] is operator for name, operator in NETWORK.operators.items())
    assert found.outputs["d"].sink["path"] == str(tmp_path / "out")
    outputs, operators = difference(NETWORK, found)
    assert outputs == ("d", "e")
    assert {"big", "few"} <= set(operators) <= set(found.operators) - set(NETWORK.operators)
    # There and back.
    back = without(found, ["d", "few"])
    assert back == NETWORK


def test_every_problem_of_an_addition_is_told_with_its_line(tmp_path):
    file = tmp_path / "more.yaml"
    file.write_text(
        "trigger: 1s\n"
        "operators:\n"
        "  - {name: some, kind: filter, input: p, where: 'v > 2'}\n"
        "  - {name: lost, kind: filter, input: smoe, where: 'v > 2'}\n"
        "outputs:\n"
        "  c: {input: some}\n"
        "  f: {input: some, sink: {format: parquet, path: /nowhere/a}}\n"
    )
    with pytest.raises(InputError) as caught:
        extended(NETWORK, file)
    found = {(problem.line, problem.key) for problem in caught.value.problems}
    assert found == {
        (1, "trigger"),
        (3, "operators[0].name"),
        (4, "operators[1].input"),
        (6, "outputs.c"),
        (7, "outputs.f.sink.path"),
    }
    assert {problem.file for problem in caught.value.problems} == {str(file)}


def test_streams_of_our_own_sources_are_added_beside_others_of_their_kind():
    def with_source(network, kind):
        streams = {name: replace(stream, source={"format": kind}) for name, stream in network.streams.items()}
        return replace(network, streams=streams)

    ours, others = with_source(NETWORK, "generator"), with_source(NETWORK, "kafka")
    for kind in ("trace", "kafka"):
        more = {"streams": {"q": {"source": {"format": kind}}}, **MORE}
        assert [problem.key for problem in refused_streams(others, extended(others, more))] == ["streams.q"]
        refused = [problem.key for problem in refused_streams(ours, extended(ours, more))]
        assert refused == (["streams.q"] if kind == "kafka" else [])


def test_operators_go_with_the_last_output_that_uses_them():
    assert set(NETWORK.operators) - set(without(NETWORK, ["a"]).operators) == {"mine"}
    assert set(without(NETWORK, ["a", "c"]).operators) == set(NETWORK.operators) - {"mine"}
    left = without(NETWORK, ["b", "c"])
    assert set(left.operators) == {"some", "mine"}
    assert not left.queries
    # By the name of the query: its output goes, too.
    assert without(NETWORK, ["total"]) == without(NETWORK, ["b"])
    assert list(without(NETWORK, ["total"]).outputs) == ["a", "c"]


def test_what_cannot_be_removed_is_told_at_once():
    with pytest.raises(InputError) as caught:
        without(NETWORK, ["aa", "totla", "a"])
    assert [(problem.value, problem.hint) for problem in caught.value.problems] == [
        ("aa", "did you mean 'a'?"),
        ("totla", "did you mean 'total'?"),
    ]
    with pytest.raises(InputError, match="must keep an output"):
        without(NETWORK, ["a", "b", "c"])
    read = extended(
        NETWORK,
        {"operators": [{"name": "on", "kind": "filter", "input": "total", "where": "n > 1"}],
         "outputs": {"o": {"input": "on"}}},
    )  # fmt: skip
    with pytest.raises(InputError, match="on reads it"):
        without(read, ["total"])


def test_a_restart_goes_on_with_the_changed_network_unless_its_file_was_changed(tmp_path):
    changed = extended(NETWORK, MORE, base=tmp_path)
    version = Version(network=store(tmp_path, changed), origin=digest(NETWORK))
    commit = Commit(step=3, nodes=("n1",), streams={}, boxes={}, version=version)
    for started_with in (NETWORK, changed):
        found = continued(started_with, commit, tmp_path)
        assert found.network == changed
        assert found.network.order == as_kept(changed).order
        assert found.version == version
        assert not found.notes
    other = without(NETWORK, ["a"])  # a file that somebody has changed
    assert continued(other, commit, tmp_path).network is other
    assert continued(other, commit, tmp_path).version is None
    assert continued(other, commit, tmp_path).notes[0].endswith("does not have them: a, d, e")
    assert not continued(replace(changed, name="u"), commit, tmp_path).notes
    untouched = Commit(step=3, nodes=("n1",), streams={}, boxes={})
    assert continued(NETWORK, untouched, tmp_path).network is NETWORK
    assert json.loads((tmp_path / "networks" / f"{version.network}.json").read_text())["name"] == "t"
