"""``levelwind bench`` against a registry of made-up benchmarks, and one real one."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from levelwind.bench import registry
from levelwind.cli.main import main

RESULT = {
    "name": "volume", "ratio": 2.0, "ours": 0.5, "baseline": 1.0, "spread": 0.1,
    "notes": ["limit missed: b", "machine: two cores"], "unit": "s", "limit": 1.0, "ok": False,
    "figures": [
        {"label": "a", "value": 0.5, "unit": "s", "limit": 1.0, "ok": True},
        {"label": "b", "value": 7.0, "unit": "MB", "limit": 5.0, "ok": False},
        {"label": "c", "value": 1.5, "unit": "ratio", "limit": None, "ok": None},
    ],
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the registry was asked to run."""
    seen: dict[str, Any] = {}

    def run(names: Any, **options: Any) -> list[dict[str, Any]]:
        seen.update(options, names=list(names))
        options["progress"](0, 1, "volume: now")
        if seen.get("fails"):
            raise ZeroDivisionError
        return [RESULT]

    monkeypatch.setattr(registry, "run", run)
    return seen


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def go(*arguments: object) -> tuple[int, str, str]:
        code = main(["bench", *map(str, arguments)])
        return (code, *capsys.readouterr())

    return go


def test_json_is_the_list_and_limits_missed_exit_0(run, asked):
    code, out, _ = run("volume", "--repeat", 2, "--full", "--seed", 3, "--format", "json")
    assert code == 0
    assert json.loads(out) == [RESULT]
    assert asked["names"] == ["volume"]
    assert (asked["repeat"], asked["full"], asked["seed"]) == (2, True, 3)


def test_text_is_a_table_with_limits(run, asked):
    code, out, err = run("--format", "text")
    assert code == 0
    head, _, first, second, third = out.splitlines()
    assert head.split() == ["name", "ours", "baseline", "ratio", "limit", "ok"]
    assert first.split() == ["volume", "0.500", "s", "1.00", "s", "2.00", "±", "0.100", "1", "s", "✓"]
    assert second.split() == ["b", "7.00", "MB", "5", "MB", "✗"]
    assert third.split() == ["c", "1.50", "-", "-"]
    assert "note: volume: limit missed: b" in err
    assert "note: machine: two cores" in err
    assert asked["names"] == list(registry.names())


def test_out_gets_the_json_too(run, asked, tmp_path):
    file = tmp_path / "results.json"
    assert run("--out", file, "--format", "text")[0] == 0
    assert json.loads(file.read_text()) == [RESULT]


def test_out_is_refused_before_anything_runs(run, asked, tmp_path):
    code, out, _ = run("--out", tmp_path, "--format", "json")
    assert code == 2
    assert json.loads(out)[0]["key"] == "--out"
    assert asked == {}


def test_list_runs_nothing(run, asked):
    code, out, _ = run("--list", "--format", "json")
    assert code == 0
    assert [item["name"] for item in json.loads(out)] == list(registry.names())
    assert asked == {}


def test_unknown_name_tells_the_nearest(run, asked):
    code, out, _ = run("volumes", "--format", "json")
    assert code == 2
    (problem,) = json.loads(out)
    assert (problem["key"], problem["value"], problem["hint"]) == (
        "NAME",
        "volumes",
        "did you mean 'volume'?",
    )


@pytest.mark.parametrize("repeat", ["0", "many"])
def test_repeat_is_a_positive_number(run, asked, repeat):
    code, out, _ = run("--repeat", repeat, "--format", "json")
    assert code == 2
    assert json.loads(out)[0]["key"] == "--repeat"


def test_a_benchmark_that_breaks_exits_3(run, asked):
    asked["fails"] = True
    code, out, err = run("volume")
    assert code == 3
    assert out == ""
    assert "failed: ZeroDivisionError" in err


def test_listing_does_not_wait_for_numpy():
    code = "import sys; from levelwind.cli.main import main; main(['bench', '--list']); "
    code += "sys.exit('numpy' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 0


def test_the_contracts_keys_come_out_of_a_real_run(run):
    code, out, _ = run("volume", "--repeat", 1, "--format", "json")
    assert code == 0
    (answer,) = json.loads(out)
    assert {"name", "ratio", "ours", "baseline", "spread", "notes"} <= set(answer)
    assert answer["ratio"] == pytest.approx(answer["baseline"] / answer["ours"])
