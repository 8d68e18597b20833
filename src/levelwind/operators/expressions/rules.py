"""All rules by kind of node, or by name of a function that the parser has no kind for."""

from __future__ import annotations

from collections.abc import Mapping

from levelwind.operators.expressions import (
    arithmetic,
    casts,
    comparison,
    digests,
    durations,
    literals,
    logic,
    mathematics,
    patterns,
    rounding,
    text,
    times,
)
from levelwind.operators.expressions.builder import Rule

RULES: Mapping[str, Rule] = {
    **literals.RULES,
    **casts.RULES,
    **arithmetic.RULES,
    **comparison.RULES,
    **logic.RULES,
    **mathematics.RULES,
    **rounding.RULES,
    **text.RULES,
    **patterns.RULES,
    **digests.RULES,
    **times.RULES,
    **durations.RULES,
}
