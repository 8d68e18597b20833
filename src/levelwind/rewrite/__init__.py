"""Network to network: plain functions."""

from levelwind.rewrite.diffuse import diffused, diffusion_name
from levelwind.rewrite.linearise import Linearised, linearise
from levelwind.rewrite.reuse import Shared, share
from levelwind.rewrite.split import PhysicalNetwork, PhysicalOperator, PhysicalStream, split

__all__ = [
    "Linearised",
    "PhysicalNetwork",
    "PhysicalOperator",
    "PhysicalStream",
    "Shared",
    "diffused",
    "diffusion_name",
    "linearise",
    "share",
    "split",
]
