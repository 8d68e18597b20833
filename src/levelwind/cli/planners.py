"""``levelwind planners``: who can decide, and with what options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from levelwind.cli.errors import DONE
from levelwind.cli.figures import plain_table
from levelwind.cli.options import FormatOption
from levelwind.cli.output import answer, warning

if TYPE_CHECKING:
    from rich.console import RenderableType


def planners(format: FormatOption = None) -> int:
    """List the planners and their options.

    For each: what it does, where it comes from, and what the network must state for it.

    Example:
      levelwind planners
    """
    found = _planners()
    answer(format, lambda: found, lambda: _text(found))
    return DONE


def loadable_planners() -> dict[str, type[Any]]:
    """All planners by name. One that cannot be imported (a broken plug-in) is left out."""
    from levelwind.placement import planner_class, planner_names

    found = {}
    for name in planner_names():
        try:
            found[name] = planner_class(name)
        except ImportError as error:
            warning(f"planner {name} cannot be loaded: {error}")
    return found


def _planners() -> list[dict[str, Any]]:
    from dataclasses import fields

    listed = []
    for name, kind in loadable_planners().items():
        options = [
            {
                "name": option.name,
                "default": option.default,
                "text": option.metadata.get("text", ""),
                "choices": list(option.metadata.get("choices", ())),
            }
            for option in fields(kind)
        ]
        listed.append(
            {
                "name": name,
                "summary": kind.summary,
                "origin": kind.origin,
                "needs": kind.needs,
                "options": options,
            }
        )
    return listed


def _text(found: Sequence[dict[str, Any]]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    table = plain_table()
    table.add_column("planner", no_wrap=True)
    table.add_column("what it does", ratio=3)
    table.add_column("needs", no_wrap=True)
    table.add_column("origin", ratio=2)
    settings = plain_table()
    settings.add_column("option", no_wrap=True)
    settings.add_column("default", no_wrap=True)
    settings.add_column("what it does", ratio=1)
    for planner in found:
        table.add_row(planner["name"], planner["summary"], planner["needs"], planner["origin"])
        for option in planner["options"]:
            text = option["text"]
            if option["choices"]:
                text += f" ({', '.join(option['choices'])})"
            settings.add_row(f"{planner['name']}.{option['name']}", _shown(option["default"]), text)
    return Group(table, Text(), settings) if settings.row_count else table


def _shown(default: object) -> str:
    """A default as it would be typed after ``--set``."""
    if default is None:
        return "auto"
    return str(default).lower() if isinstance(default, bool) else str(default)
