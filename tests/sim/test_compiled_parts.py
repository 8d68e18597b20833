"""A change in a file that compiled functions of another file call must reach the cache of compiled code."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import pytest

import levelwind.sim

SIM = Path(levelwind.sim.__file__).parent


def imported(name):
    """Modules of the simulator that one imports, itself left out."""
    tree = ast.parse((SIM / f"{name}.py").read_text())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {module.rpartition(".")[2] for module in modules if module.startswith("levelwind.sim.")}


def parts(name):
    found, new = set(), imported(name)
    while new:
        found |= new
        new = {further for part in new for further in imported(part)} - found
    return sorted(found)


@pytest.mark.parametrize("name", ["kernel", "interventions"])
def test_what_is_called_from_python_carries_a_word_for_its_parts(name):
    text = "".join((SIM / f"{part}.py").read_text() for part in parts(name))
    word = hashlib.sha256(text.encode()).hexdigest()[:12]
    assert f'PARTS = "{word}"' in (SIM / f"{name}.py").read_text(), f'must read: PARTS = "{word}"'


def test_nothing_else_holds_compiled_functions_that_python_calls():
    called = {"kernel", "interventions"}
    users = {
        path.stem
        for path in SIM.glob("*.py")
        if imported(path.stem) & {"agenda", "queues", "notes"} and path.stem not in called
    }
    # They read constants of `notes`, and call nothing.
    assert users <= {"layout", "simulator"}
