"""Random expressions as Hypothesis draws them: of a wanted kind, made of `expression_forms.txt`."""

from __future__ import annotations

from collections.abc import Callable

from expression_cases import read_groups
from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[str]], str]
_GROUPS = read_groups("expression_forms.txt")
_KINDS = {"i": "integer", "d": "decimal", "x": "double", "b": "boolean", "s": "string", "t": "timestamp"}


@st.composite
def expressions(draw: Draw, kind: str | None = None, depth: int = 4) -> str:
    """An expression of a kind, up to so many levels deep."""
    kind = kind or draw(st.sampled_from(sorted(_KINDS.values())))
    if depth == 0 or draw(st.sampled_from(["leaf", "inner", "inner", "inner"])) == "leaf":
        return draw(st.sampled_from(_GROUPS[f"leaf {kind}"]))
    pieces = draw(st.sampled_from(_GROUPS[f"inner {kind}"])).split("{")
    text = pieces[0]
    for piece in pieces[1:]:
        wanted = _KINDS.get(piece[0]) or draw(st.sampled_from(["integer", "decimal", "double"]))
        text += draw(expressions(wanted, depth - 1)) + piece[2:]
    return text
