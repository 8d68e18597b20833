"""A sweep on Spark gives the very results that processes give."""

import sys

import pytest

from levelwind.reproduce.execution import mapper
from levelwind.reproduce.matrices import measure
from levelwind.reproduce.resilience import measure as measure_resilience

pytestmark = pytest.mark.spark

MATRICES = [{"chunk": i, "matrices": 5, "seed": i} for i in range(5)]
GRAPHS = [{"operators": 25, "streams": 5, "seed": i, "runs": 1, "budget": 0.01} for i in range(2)]


@pytest.fixture(autouse=True)
def same_python(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)


def test_spark_and_processes_give_identical_results():
    heard = []
    with mapper(master="local[2]") as mapped:
        on_spark = mapped(measure, MATRICES, lambda *tick: heard.append(tick))
        graphs = mapped(measure_resilience, GRAPHS, lambda *_: None)
        assert mapped(measure, [], lambda *_: None) == []
    with mapper(workers=2) as mapped:
        assert mapped(measure, MATRICES, lambda *_: None) == on_spark
        assert mapped(measure_resilience, GRAPHS, lambda *_: None) == graphs
    assert heard[-1] == (5, 5)
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)


def test_map_on_spark_starts_and_stops_its_own_session():
    from pyspark.sql import SparkSession

    from levelwind.spark.sweep import map_on_spark

    assert map_on_spark(abs, [-2, 1, -3], "local[2]") == [2, 1, 3]
    assert SparkSession.getActiveSession() is None


def test_a_running_session_is_used_and_left_running():
    from pyspark.sql import SparkSession

    from levelwind.spark.sweep import map_on_spark

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        assert map_on_spark(abs, [-1], "local[2]") == [1]
        assert session.range(3).count() == 3
    finally:
        session.stop()
