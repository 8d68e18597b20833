"""Processes give what this process gives, in the same order, and a failure is not swallowed."""

import os

import pytest

from levelwind.reproduce.execution import ONE_THREAD, mapper
from levelwind.reproduce.matrices import measure

ITEMS = [{"chunk": i, "matrices": 5, "seed": i} for i in range(4)]


def test_processes_give_the_same_results_as_this_process():
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    heard = []
    with mapper(workers=2) as mapped:
        results = mapped(measure, ITEMS, lambda *tick: heard.append(tick))
    assert results == [measure(item) for item in ITEMS]
    assert heard == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert {name: os.environ.get(name) for name in ONE_THREAD} == before


def test_a_cell_that_fails_fails_the_run():
    with mapper(workers=2) as mapped, pytest.raises(KeyError):
        mapped(measure, [{"chunk": 0}], lambda *_: None)
