"""A multi-way join spread over nodes: the operator that sends, the parts that join, the one that fuses."""

from levelwind.operators.spreading.diffusion import make_diffusion
from levelwind.operators.spreading.fusion import make_fusion
from levelwind.operators.spreading.parts import make_join_part

__all__ = ["make_diffusion", "make_fusion", "make_join_part"]
