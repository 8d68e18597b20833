"""Expressions that are held against Spark, by the function they are about: `expression_cases.txt`."""

from __future__ import annotations

from pathlib import Path


def read_groups(name: str) -> dict[str, list[str]]:
    """The expressions of a file beside this one, by the heading above them."""
    found: dict[str, list[str]] = {}
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    texts: list[str] = []
    for line in filter(None, lines):
        if line.startswith("[") and line.endswith("]"):
            texts = found.setdefault(line[1:-1], [])
        elif not line.startswith("#"):
            texts += line.split(" ;; ")
    return found


GROUPS = read_groups("expression_cases.txt")
FUNCTIONS = {
    name.removeprefix("function "): texts for name, texts in GROUPS.items() if name.startswith("function ")
}
CASES = list(dict.fromkeys(text for texts in GROUPS.values() for text in texts))
