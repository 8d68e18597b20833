"""Numbers as people and programs get them."""

from __future__ import annotations

import doctest
import json
import math

import numpy as np
import pytest

from levelwind.cli import figures
from levelwind.cli.output import json_text
from levelwind.model import Measures


def test_docstrings_hold():
    assert doctest.testmod(figures).failed == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0004567, "0.000457"),
        (99.95, "100"),
        (123456.0, "123000"),
        (-0.5, "-0.500"),
        (math.nan, "-"),
        (3, "3"),
    ],
)
def test_three_significant_digits(value, text):
    assert figures.number(value) == text


def test_every_measure_has_a_figure():
    named = {figure.name for figure in figures.FIGURES}
    assert named == set(Measures().as_dict()) - {"feasible_error"}


def test_json_knows_no_nan_and_takes_numpy():
    value = {"a": math.nan, "b": math.inf, "c": np.float64(1.5), "d": np.array([1, 2]), "e": (True, None)}
    assert json.loads(json_text(value)) == {"a": None, "b": None, "c": 1.5, "d": [1, 2], "e": [True, None]}
