"""Parts of a spread join: one that is sent whole groups, or one hop of those that pass partial groups on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from levelwind.model import JoinPart, Operator
from levelwind.operators.multijoin import make_multijoin
from levelwind.operators.protocol import Kernel
from levelwind.operators.rows import RowType
from levelwind.operators.spreading.columns import ERA


def make_join_part(operator: Operator, inputs: Sequence[RowType]) -> Kernel:
    """The kernel of a part."""
    spec = operator.spec
    assert isinstance(spec, JoinPart)
    whole = replace(operator, spec=replace(spec.join, diffuse=None))
    if spec.hop is None:
        return make_multijoin(whole, inputs, together=ERA, part=spec.instance)
    from levelwind.operators.spreading.hops import make_hop

    return make_hop(whole, spec, inputs)
