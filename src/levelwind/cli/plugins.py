"""What can be chosen by name, as lists for people and programs: planners and policies look alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from levelwind.cli.figures import plain_table
from levelwind.cli.output import warning

if TYPE_CHECKING:
    from rich.console import RenderableType

    from levelwind.plugins import Registry


def loadable(registry: Registry) -> dict[str, type[Any]]:
    """All of a registry by name. One that cannot be imported (a broken plug-in) is left out."""
    found = {}
    for name in registry.names():
        try:
            found[name] = registry.find(name)
        except ImportError as error:
            warning(f"{registry.kind} {name} cannot be loaded: {error}")
    return found


def listed(registry: Registry, facts: Sequence[str]) -> list[dict[str, Any]]:
    """For each: its name, the class's facts of these names, and its options."""
    from dataclasses import fields

    return [
        {"name": name}
        | {fact: getattr(kind, fact) for fact in facts}
        | {
            "options": [
                {
                    "name": option.name,
                    "default": option.default,
                    "text": option.metadata.get("text", ""),
                    "choices": list(option.metadata.get("choices", ())),
                }
                for option in fields(kind)
            ]
        }
        for name, kind in loadable(registry).items()
    ]


def table_of(kind: str, found: Sequence[dict[str, Any]]) -> RenderableType:
    """What there is, and below it the options of all."""
    from rich.console import Group
    from rich.text import Text

    needs = any("needs" in each for each in found)
    table = plain_table()
    table.add_column(kind, no_wrap=True)
    table.add_column("what it does", ratio=3)
    if needs:
        table.add_column("needs", no_wrap=True)
    table.add_column("origin", ratio=2)
    settings = plain_table()
    settings.add_column("option", no_wrap=True)
    settings.add_column("default", no_wrap=True)
    settings.add_column("what it does", ratio=1)
    for each in found:
        needed = [each["needs"]] if needs else []
        table.add_row(each["name"], each["summary"], *needed, each["origin"])
        for option in each["options"]:
            text = option["text"]
            if option["choices"]:
                text += f" ({', '.join(option['choices'])})"
            settings.add_row(f"{each['name']}.{option['name']}", _shown(option["default"]), text)
    return Group(table, Text(), settings) if settings.row_count else table


def _shown(default: object) -> str:
    """A default as it would be typed after ``--set``."""
    if default is None:
        return "auto"
    return str(default).lower() if isinstance(default, bool) else str(default)
