"""``levelwind cost-models``: how full a node is, by whom, and from what statistics."""

from __future__ import annotations

from levelwind.cli.errors import DONE
from levelwind.cli.options import FormatOption
from levelwind.cli.output import answer
from levelwind.cli.plugins import listed, table_of


def cost_models(format: FormatOption = None) -> int:
    """List the cost models by which the policies balance and degradation judge nodes, and their options.

    For each: what it does, the statistics that are collected for it, and where it comes from. Choose one with
    --policy-set cost=NAME, with an option as cost=NAME:OPTION=VALUE.

    Example:
      levelwind cost-models
    """
    from levelwind.balance.costs import COST_MODELS

    found = listed(COST_MODELS, ("summary", "origin", "statistics"))
    for each in found:
        each["needs"] = ", ".join(sorted(each["statistics"])) or "nothing"
        each["statistics"] = sorted(each["statistics"])
    answer(format, lambda: found, lambda: table_of("cost model", found))
    return DONE
