"""Network coordinates, the cost space built on them, and topologies to try them on."""

from levelwind.space.coordinates import Coordinates, median_error
from levelwind.space.cost_space import CostSpace
from levelwind.space.routes import Routes, find_routes
from levelwind.space.transit_stub import TransitStub, transit_stub
from levelwind.space.vivaldi import Vivaldi, VivaldiConfig, embed

__all__ = [
    "Coordinates",
    "CostSpace",
    "Routes",
    "TransitStub",
    "Vivaldi",
    "VivaldiConfig",
    "embed",
    "find_routes",
    "median_error",
    "transit_stub",
]
