"""The hidden columns by which parts of a spread join know what they are sent."""

from __future__ import annotations

from levelwind.operators.multijoin.meeting import KNOWN, SPAN

__all__ = ["ERA", "KNOWN", "ROLE", "ROUND", "SLOT", "SPAN", "STREAM"]

# The era of routing that a copy of a row is part of: a part joins only rows of one era.
ERA = "__era"
# In an era of coordinated routing: the slot of a row, and whether it is kept, looks for partners, or both.
SLOT = "__slot"
ROLE = "__role"
# Of a partial group: the stream of the row that looks for partners.
STREAM = "__stream"
# In which round a row came: how often the run had been closed before. Of a partial group, its latest row's.
ROUND = "__round"
