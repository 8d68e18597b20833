"""Network to network: plain functions."""

from levelwind.rewrite.diffuse import diffused, diffusion_name
from levelwind.rewrite.linearise import Linearised, linearise
from levelwind.rewrite.split import PhysicalNetwork, PhysicalOperator, PhysicalStream, split

__all__ = [
    "Linearised",
    "PhysicalNetwork",
    "PhysicalOperator",
    "PhysicalStream",
    "diffused",
    "diffusion_name",
    "linearise",
    "split",
]
