"""Reading text: encodings, syntax, YAML's traps, lines."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from levelwind.errors import InputError, Problem
from levelwind.frontend import load_network, parse_network, yamltext
from levelwind.frontend.document import mapping_document, parse_document
from levelwind.frontend.yamltext import scalar

ONE = "streams: {I1: {}}\noperators:\n  - {name: o1, kind: model, input: I1, cost: 1}\n"


def problem_of(path: Path) -> Problem:
    with pytest.raises(InputError) as caught:
        load_network(path)
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    return problem


def written(tmp_path: Path, content: str | bytes, name: str = "net.yaml") -> Path:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("", 1, "must not be empty"),
        ("# nothing\n", 1, "must not be empty"),
        ("---\n", 1, "must not be empty"),
        ("- a\n- b\n", 1, "must be a mapping"),
        ("just words\n", 1, "must be a mapping"),
        (b"name: a\nname2: \xff\xfe\n", 2, "UTF-8"),
        ("name: a\nstreams:\n\tI1: {}\n", 3, "YAML"),
        ("name: a\nstreams: {I1: {}\n", 3, "YAML"),
        ("name: 'a\n", 2, "YAML"),
        ("a: 1\n---\nb: 2\n", 2, "YAML"),
        ("a: *nowhere\n", 1, "YAML"),
        ("[" * 100_000, None, "nest"),
        ("- " * 100_000, None, "nest"),
        ("a: \0", None, "text"),
        ("a: \x07\n", None, "YAML"),
    ],
)
def test_broken_text_gives_one_problem(
    tmp_path: Path, content: str | bytes, line: int | None, words: str
) -> None:
    problem = problem_of(written(tmp_path, content))
    assert words in problem.rule
    assert problem.line == line


def test_tabs_are_named(tmp_path: Path) -> None:
    assert "tabs" in (problem_of(written(tmp_path, "a:\n\tb: 1\n")).hint or "")


def test_file_that_is_not_there(tmp_path: Path) -> None:
    assert "must exist" in problem_of(tmp_path / "none.yaml").rule


def test_directory(tmp_path: Path) -> None:
    assert "directory" in problem_of(tmp_path).rule


@pytest.mark.parametrize(
    ("content", "line"),
    [('{"streams": {},\n "operators": [}', 2), ("", 1), ("{'a': 1}", 1), ("[" * 100_000, None)],
)
def test_broken_json(tmp_path: Path, content: str, line: int | None) -> None:
    assert problem_of(written(tmp_path, content, "net.json")).line == line


def test_json_has_lines(tmp_path: Path) -> None:
    text = json.dumps({"streams": {"I1": {}}, "operators": [{"name": "o", "kind": "modell"}]}, indent=1)
    problem = problem_of(written(tmp_path, text, "net.json"))
    assert (problem.key, problem.line) == ("operators[0].kind", 8)


def test_json_that_yaml_cannot_read_loads_without_lines(tmp_path: Path) -> None:
    operators = '[{"name": "o", "kind": "model", "input": "I1"}]'
    text = f'{{"name": "\\ud83d\\ude00", "streams": {{"I1": {{}}}}, "operators": {operators}}}'
    assert load_network(written(tmp_path, text, "net.json")).network.name == "😀"


def test_json_indented_with_tabs(tmp_path: Path) -> None:
    text = json.dumps(
        {"streams": {"I1": {}}, "operators": [{"name": "o", "kind": "model", "input": "I1"}]}, indent="\t"
    )
    assert load_network(written(tmp_path, text, "net.json")).network.order == ("o",)


def test_byte_order_mark(tmp_path: Path) -> None:
    assert load_network(written(tmp_path, b"\xef\xbb\xbf" + ONE.encode())).network.order == ("o1",)


def test_words_that_yaml_1_1_takes_for_truth_are_names() -> None:
    text = (
        "streams: {on: {node: no}, y: {}, 'null': {}, 1: {}}\n"
        "operators:\n"
        "  - {name: off, kind: model, inputs: [on, y, '1', 'null'], cost: 1e-6, pinned: yes}\n"
    )
    network = parse_network(text).network
    assert list(network.streams) == ["on", "y", "null", "1"]
    assert network.streams["on"].node == "no"
    assert network.operators["off"].pinned == "yes"
    assert network.operators["off"].cost_s == 1e-6


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("1.", 1.0),
        (".5", 0.5),
        ("+1", 1),
        ("-2.5E+3", -2500.0),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("off", "off"),
        ("~", None),
        ("", None),
        ("12:30:45", "12:30:45"),
        ("2020-01-01", "2020-01-01"),
        ("1_000", "1_000"),
        (".inf", float("inf")),
        ("=", "="),
        ("e5", "e5"),
        ("-", "-"),
        (".", "."),
        ("9" * 5000, float("inf")),
    ],
)
def test_plain_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    read = scalar(text)
    assert read == value
    assert type(read) is type(value)


def test_quoted_scalars_stay_text() -> None:
    assert parse_document(
        "[\"1\", 'true', !!str 5, |\n  x\n]".replace("|\n  x\n", "'x'"), what="x"
    ).value == ["1", "true", "5", "x"]


def test_anchors_and_merge_keys() -> None:
    text = "base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo: {<<: [{z: 0}, *b]}\n"
    assert parse_document(text, what="x").value == {
        "base": {"x": 1, "y": 2},
        "one": {"x": 1, "y": 3},
        "two": {"z": 0, "x": 1, "y": 2},
    }


def test_merged_keys_have_lines() -> None:
    document = parse_document("base: &b\n  x: 1\none:\n  <<: *b\n  y: 3\n", what="x")
    assert document.line(("one", "x")) == 2
    assert document.line(("one", "y")) == 5
    assert document.line(("one", "missing")) == 3
    assert document.line(("base", "x", "deeper", 3)) == 2


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a: &x [*x]", "contain itself"),
        ("a: !!python/object:os.system x", "tag"),
        ("a: !mine [1]", "tag"),
        ("a: !!int five", "tag"),
        ("? [1, 2]\n: 3", "key must be text"),
        ("a: {<<: 3}", "merged"),
        ("a: 1\na: 2", "only once"),
    ],
)
def test_yaml_that_we_do_not_take(text: str, rule: str) -> None:
    (problem,) = parse_document(text, what="x").problems
    assert rule in problem.rule
    assert problem.line


def test_a_billion_laughs_stay_small() -> None:
    text = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))
    with pytest.raises(InputError):
        parse_network(text)


def test_mapping_has_no_lines() -> None:
    with pytest.raises(InputError) as caught:
        parse_network({"streams": {}, "operators": [{"name": "x", "kind": "model", "input": "y"}]})
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.key) == (None, None, "operators[0].input")


def test_mapping_may_hold_numpy_tuples_and_paths() -> None:
    np = pytest.importorskip("numpy")
    document = mapping_document(
        {"a": np.arange(3), "b": (np.float64(1.5), np.int64(2)), "c": Path("x") / "y"}
    )
    assert document.value == {"a": [0, 1, 2], "b": [1.5, 2], "c": "x/y"}


@pytest.mark.parametrize("mapping", [{1: {}}, {"streams": {2: {}}}])
def test_mapping_keys_are_text(mapping: dict[object, object]) -> None:
    with pytest.raises(InputError):
        parse_network(mapping)  # type: ignore[arg-type]


def test_mapping_that_contains_itself() -> None:
    loop: dict[str, object] = {}
    loop["loop"] = loop
    with pytest.raises(InputError):
        parse_network(loop)


def test_the_collector_is_left_as_it_was() -> None:
    assert gc.isenabled()
    parse_network(ONE)
    assert gc.isenabled()
    gc.disable()
    try:
        parse_network(ONE)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_loader_in_python_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x {b: 1e-6, c: [no, 'true', ~]}\nd: {<<: *x, e: !!str 3}\n"
    fast = parse_document(text, what="x")
    monkeypatch.setattr(yamltext, "_LOADER", yamltext._PurePython)
    slow = parse_document(text, what="x")
    assert slow.value == fast.value
    assert slow.line(("d", "e")) == fast.line(("d", "e")) == 2
