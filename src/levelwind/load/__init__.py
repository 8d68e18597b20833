"""The linear load model, hyperplanes and the feasible set."""

from levelwind.load.feasible import Volume, feasible_volume
from levelwind.load.planes import Planes, bandwidth_is_abundant, plane_distance, planes
from levelwind.load.problem import Carried, Problem, make_problem
from levelwind.load.rates import Rates

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
]
