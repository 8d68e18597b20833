"""``levelwind planners``: who can decide, and with what options."""

from __future__ import annotations

from typing import Any

from levelwind.cli.errors import DONE
from levelwind.cli.options import FormatOption
from levelwind.cli.output import answer
from levelwind.cli.plugins import listed, loadable, table_of


def planners(format: FormatOption = None) -> int:
    """List the planners and their options.

    For each: what it does, where it comes from, and what the network must state for it.

    Example:
      levelwind planners
    """
    from levelwind.placement.registry import PLANNERS

    found = listed(PLANNERS, ("summary", "origin", "needs"))
    answer(format, lambda: found, lambda: table_of("planner", found))
    return DONE


def loadable_planners() -> dict[str, type[Any]]:
    """All planners by name. One that cannot be imported (a broken plug-in) is left out."""
    from levelwind.placement.registry import PLANNERS

    return loadable(PLANNERS)
