"""The record of an experiment on disk: everything needed to check it, or to draw it anew."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from levelwind.reproduce.outcome import Outcome, Result


def write_record(
    directory: Path,
    name: str,
    title: str,
    outcome: Outcome,
    results: Sequence[Result],
    *,
    quick: bool,
    seed: int,
    seconds: float,
    measured_with: str | None,
) -> Path:
    """Write ``name.json``: the outcome, all points, and how they came about. Returns its path."""
    record = {
        "name": name,
        "title": title,
        "statement": statement(name, outcome),
        "paper": outcome.paper,
        "ours": outcome.ours,
        "claim": outcome.claim,
        "holds": outcome.holds,
        "why": outcome.why,
        "set_up": list(outcome.set_up),
        "command": command(name, quick=quick, seed=seed),
        "seed": seed,
        "quick": quick,
        "seconds": round(seconds, 3),
        "measured_with": measured_with,
        "versions": versions(),
        "points": list(results),
    }
    path = directory / f"{name}.json"
    # NaN is not JSON: a result that holds one is a mistake, and better found here than by a reader.
    path.write_text(
        json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return path


def statement(name: str, outcome: Outcome) -> str:
    """One line that says whether the claim holds."""
    verdict = "holds" if outcome.holds else f"does not hold: {outcome.why}"
    return f"{name}: the claim {verdict}"


def command(name: str, *, quick: bool, seed: int) -> str:
    """What to type to get the same numbers."""
    return f"levelwind reproduce {name}{' --quick' if quick else ''} --seed {seed}"


def versions() -> dict[str, Any]:
    """Versions of what the numbers depend on."""
    found: dict[str, Any] = {"python": platform.python_version()}
    for package in ("numpy", "levelwind"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found
