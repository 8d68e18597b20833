"""Sides of a comparison as processes of their own: Spark has one context, and one set of settings, in each.

A side is a function at the top of a module that can be run, which calls `answer`; it prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from levelwind.frontend import parse_network
from levelwind.model import Network


def network_of(document: Mapping[str, Any]) -> Network:
    """A network from a mapping in the shape of a file; what its author could add does not matter here."""
    return parse_network(document).network


def answer(sides: Mapping[str, Callable[..., Mapping[str, Any]]]) -> None:
    """Be one side of a benchmark, as the command line says: its name, and its arguments as JSON."""
    name, arguments = sys.argv[1:3]
    print(json.dumps(sides[name](**json.loads(arguments))), flush=True)
    # Queries that were cut off are not waited for: Spark ends with this process.
    os._exit(0)


def side(module: str, name: str, *, patience_s: float = 1800.0, **arguments: Any) -> dict[str, Any]:
    """Run a side of a benchmark as a process; one that breaks or is not done in time says so in ``died``."""
    command = [sys.executable, "-m", module, name, json.dumps(arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, errors = process.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"died": f"no answer within {patience_s:g} s"}
    if process.returncode != 0:
        last = (errors.strip().splitlines() or ["no message"])[-1]
        return {"died": f"exit code {process.returncode}: {last[:300]}"}
    return dict(json.loads(out.strip().splitlines()[-1]))


def ours(module: str, name: str, **arguments: Any) -> dict[str, Any]:
    """A side of our own, which must not break."""
    found = side(module, name, **arguments)
    if found.get("died"):
        message = f"{module}, {name}: {found['died']}"
        raise RuntimeError(message)
    return found
