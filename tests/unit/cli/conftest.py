"""Running the command inside the test process, and small networks to run it on."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from levelwind.cli.main import main

ROOT = Path(__file__).parents[3]
RATED = """
streams: {I1: {rate: 10}, I2: {rate: 20}}
operators:
  - {name: a, kind: model, input: I1, cost: 10ms, selectivity: 1}
  - {name: b, kind: model, input: a, cost: 20ms}
  - {name: c, kind: model, input: I2, cost: 10ms}
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def problem_keys(self) -> list[str]:
        assert self.code == 2, self
        for problem in self.json:
            assert list(problem) == ["file", "line", "key", "rule", "value", "hint"]
        assert "Traceback" not in self.err
        assert self.err.startswith("error: ")
        return [problem["key"] for problem in self.json]


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")

    def go(*arguments: object, stdin: str = "") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        seen = capsys.readouterr()
        return Ended(code, seen.out, seen.err)

    return go


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    """A network whose rates are stated, so that every planner but the series ones can work on it."""
    file = tmp_path / "rated.yaml"
    file.write_text(RATED)
    return file


@pytest.fixture
def vague(tmp_path: Path) -> Path:
    """A network that leaves a cost unstated, which is allowed with a warning."""
    file = tmp_path / "vague.yaml"
    file.write_text("streams: {I: {rate: 1}}\noperators:\n  - {name: a, kind: model, input: I}\n")
    return file


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    def make(name: str, text: str) -> Path:
        file = tmp_path / name
        file.write_text(text)
        return file

    return make
