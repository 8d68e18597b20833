"""The linear load model, hyperplanes and the feasible set."""

from levelwind.loads.feasible import Volume, feasible_volume
from levelwind.loads.planes import Planes, bandwidth_is_abundant, plane_distance, planes, volume_of_planes
from levelwind.loads.problem import Carried, Problem, make_problem
from levelwind.loads.rates import Rates

__all__ = [
    "Carried",
    "Planes",
    "Problem",
    "Rates",
    "Volume",
    "bandwidth_is_abundant",
    "feasible_volume",
    "make_problem",
    "plane_distance",
    "planes",
    "volume_of_planes",
]
