"""``levelwind reproduce`` against a registry of two quick experiments."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from levelwind.errors import chosen_names

RESULTS = [
    {"name": "one", "paper": "twice as good", "ours": {"ratio": 1.987654, "all": [1, 2.0]}, "claim": "c",
     "holds": True, "seconds": 1.25, "set_up": ["runs are short"]},
    {"name": "two", "paper": "no worse", "ours": {"worse": True}, "claim": "d", "holds": False,
     "seconds": 0.5, "why": "it is worse", "set_up": ["runs are short", "nodes are few"]},
]  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the registry was asked to run."""
    seen: dict[str, Any] = {}
    registry: Any = ModuleType("levelwind.reproduce.registry")
    registry.names = lambda: ("one", "two")
    registry.select = lambda wanted: chosen_names(wanted, ("one", "two"), "must be something to reproduce")
    registry.describe = lambda: [{"name": name, "title": f"what {name} is"} for name in ("one", "two")]

    def run(names: Any, **options: Any) -> list[dict[str, Any]]:
        seen.update(options, names=list(names))
        options["progress"](1, 2, "one")
        if seen.get("fails"):
            raise ZeroDivisionError
        return [result for result in RESULTS if result["name"] in names]

    registry.run = run
    monkeypatch.setitem(sys.modules, "levelwind.reproduce.registry", registry)
    return seen


def test_a_claim_that_does_not_hold_is_a_result(run, asked):
    ended = run("reproduce", "--quick", "--seed", 3)
    assert ended.code == 0
    assert ended.json == RESULTS
    assert asked["names"] == ["one", "two"]
    assert (asked["quick"], asked["seed"], asked["out"], asked["master"]) == (True, 3, None, None)


def test_text_shows_paper_and_ours(run, asked):
    ended = run("reproduce", "one", "two", "--format", "text")
    assert "ratio 1.99" in ended.out
    assert "✓" in ended.out
    assert "✗" in ended.out
    assert "note: two: it is worse" in ended.err
    assert ended.err.count("runs are short") == 1
    assert "note: one, two: unlike the paper, runs are short" in ended.err
    assert "note: two: unlike the paper, nodes are few" in ended.err


def test_minutes_are_handed_on(run, asked):
    assert run("reproduce", "one", "--minutes", 90).code == 0
    assert asked["minutes"] == 90
    assert run("reproduce", "one").code == 0
    assert asked["minutes"] is None


def test_list_runs_nothing(run, asked):
    ended = run("reproduce", "--list")
    assert ended.json[0] == {"name": "one", "title": "what one is"}
    assert asked == {}


def test_unknown_name(run, asked):
    assert run("reproduce", "onne").problem_keys() == ["NAME"]


def test_out_must_be_a_directory(run, asked, tmp_path):
    file = tmp_path / "file"
    file.touch()
    assert run("reproduce", "--out", file).problem_keys() == ["--out"]


def test_a_run_that_fails_exits_3_without_traceback(run, asked):
    asked["fails"] = True
    ended = run("reproduce")
    assert ended.code == 3
    assert ended.out == ""
    assert "failed: ZeroDivisionError" in ended.err
    assert "Traceback" not in ended.err
