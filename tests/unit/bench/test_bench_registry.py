"""The registry, the harness, and the shape of what comes out."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from levelwind.bench import registry
from levelwind.bench.machine import machine_note
from levelwind.bench.result import Figure, Result, Settings, compared, spread_of
from levelwind.bench.timing import interleaved, process_output
from levelwind.errors import InputError

CONTRACT = ["name", "ratio", "ours", "baseline", "spread", "notes"]


def test_every_name_is_a_module_that_says_what_it_compares():
    assert [item["name"] for item in registry.describe()] == list(registry.names())
    for name in registry.names():
        module = import_module(f"levelwind.bench.{name}")
        assert name == module.NAME
        assert "against" in (module.__doc__ or "") or "over" in (module.__doc__ or "")
        assert callable(module.run)


def test_unknown_names_are_told_all_at_once_with_the_nearest():
    with pytest.raises(InputError) as caught:
        registry.run(["volum", "starts"])
    assert [problem.value for problem in caught.value.problems] == ["volum", "starts"]
    assert [problem.hint for problem in caught.value.problems] == [
        "did you mean 'volume'?",
        "did you mean 'start'?",
    ]


def test_run_gives_the_contracts_list(monkeypatch):
    asked: list[Settings] = []
    fake: Any = ModuleType("levelwind.bench.volume")

    def run(settings: Settings) -> Result:
        asked.append(settings)
        settings.step("now")
        return compared("volume", [1.0, 2.0, 1.0], [4.0, 6.0, 4.0], labels=("a", "b"), limit=0.5)

    fake.run = run
    monkeypatch.setitem(sys.modules, "levelwind.bench.volume", fake)
    steps: list[tuple[int, int, str]] = []
    (answer,) = registry.run(["volume", "volume"], repeat=3, seed=4, progress=lambda *at: steps.append(at))
    assert list(answer)[:6] == CONTRACT
    assert (answer["ratio"], answer["ours"], answer["baseline"]) == (4.0, 1.0, 4.0)
    assert answer["spread"] == 0.25
    assert answer["ok"] is False
    assert answer["notes"][0] == "a against b"
    assert answer["notes"][1] == "limit missed: a is 1 s, not below 0.5"
    assert answer["notes"][-1].startswith("machine: ")
    assert (asked[0].repeat, asked[0].full, asked[0].seed) == (3, False, 4)
    assert steps == [(0, 1, "volume: starting"), (0, 1, "volume: now")]


def test_machine_note_names_cores_and_versions():
    text = machine_note()
    for part in (" cores", "Python 3.", "numpy "):
        assert part in text


def test_a_figure_without_limit_is_neither_right_nor_wrong():
    assert Figure(label="x", value=1.0, unit="s").ok is None
    assert Figure(label="x", value=1.0, unit="s", limit=1.0).ok is True


def test_rounds_are_the_callers_choice_up_to_a_limit():
    assert Settings().rounds(5) == 5
    assert Settings(repeat=9).rounds(5) == 9
    assert Settings(repeat=9).rounds(5, most=3) == 3


def test_spread_is_range_over_median():
    assert spread_of([2.0]) == 0.0
    assert spread_of([1.0, 2.0, 4.0]) == 1.5


def test_contenders_take_turns_and_the_first_round_does_not_count():
    order: list[str] = []

    def contender(name: str) -> Any:
        def measured() -> float:
            order.append(name)
            return float(len(order))

        return measured

    taken = interleaved({"a": contender("a"), "b": contender("b")}, 2)
    assert "".join(order) == "ababba"
    assert taken == {"a": [3.0, 6.0], "b": [4.0, 5.0]}


def test_a_process_that_fails_fails_the_benchmark():
    with pytest.raises(RuntimeError, match="exit code 3: gone"):
        process_output([sys.executable, "-c", "import sys; print('gone', file=sys.stderr); sys.exit(3)"])
