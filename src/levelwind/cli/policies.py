"""``levelwind policies``: who can propose moves, and with what options."""

from __future__ import annotations

from levelwind.cli.errors import DONE
from levelwind.cli.options import FormatOption
from levelwind.cli.output import answer
from levelwind.cli.plugins import listed, table_of


def policies(format: FormatOption = None) -> int:
    """List the policies that move operators while a network runs, and their options.

    For each: what it does, and where it comes from.

    Example:
      levelwind policies
    """
    from levelwind.balance.registry import POLICIES

    found = listed(POLICIES, ("summary", "origin"))
    answer(format, lambda: found, lambda: table_of("policy", found))
    return DONE
