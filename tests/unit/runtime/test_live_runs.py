"""A live run without Spark: steps are made in this process, questions come from other threads."""

from __future__ import annotations

import threading

import pytest
from test_managing import ALONE, CLUSTER, NETWORK, world_in

from levelwind.spark import live
from levelwind.spark.api import prepare

PATIENCE_S = 60.0


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """A run of which the steps so far are known, and which has a node's loss told to it."""
    sources = dict.fromkeys(NETWORK.streams)
    run = prepare(NETWORK, CLUSTER, placement=ALONE, run_dir=tmp_path / "run", sources=sources, reuse=False)
    world = world_in(tmp_path / "checkpoint")
    run.directory.create({}, {})
    run.spark_run.coordinator = world.coordinator
    monkeypatch.setattr(run.spark_run, "missing_nodes", frozenset)
    for _ in range(5):
        run._after(world.step(left=100, right=50))
    return run


def test_batches_go_on_while_a_planner_works(begun, monkeypatch):
    made = []

    def slow(network, cluster, planner, *, usable, stands, **_):
        # Another thread, as Spark's is; a batch that waits for the plan would never begin.
        batch = threading.Thread(target=lambda: made.append(begun._before(9)), daemon=True)
        batch.start()
        batch.join(PATIENCE_S if not made else 0.0)
        return {**stands, "other": "n2"}

    monkeypatch.setattr(live, "plan_anew", slow)
    assert begun.replan(cause="try") == {"other": "n2"}
    assert made == [[]]
    assert [(move.operator, move.target) for move in begun._before(10)] == [("other", "n2")]
