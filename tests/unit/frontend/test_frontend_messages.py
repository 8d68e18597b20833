"""The full message of a deliberately terrible file, reviewed by eye when it changes.

Regenerate with ``LEVELWIND_REGENERATE=1 pytest tests/unit/frontend/test_frontend_messages.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from levelwind.errors import InputError
from levelwind.frontend import load_network
from levelwind.model import Cluster

GOLDEN = Path(__file__).parents[2] / "golden"


def test_messages_of_a_terrible_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(InputError) as caught:
        load_network("messages.yaml", cluster=Cluster.equal(5))
    said = f"{caught.value}\n"
    expected = GOLDEN / "messages.txt"
    if os.environ.get("LEVELWIND_REGENERATE"):
        expected.write_text(said, encoding="utf-8")
    assert said == expected.read_text(encoding="utf-8")


def test_every_problem_of_a_file_has_file_line_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(InputError) as caught:
        load_network("messages.yaml")
    for problem in caught.value.problems:
        assert problem.file == "messages.yaml"
        assert problem.line
        assert problem.key
