"""What the benchmarks of spread joins make of what they measured. No Spark is started here."""

from __future__ import annotations

from pathlib import Path

import pytest

from levelwind.bench import join, join_sides, routing
from levelwind.testing.sides import network_of


def side(groups, seconds=1.0):
    return {"batch_s": [seconds] * 16, "groups": groups, "node_cpu_s": [[0.5] * 16], "capped": True}


def tables(of=lambda name: 100):
    found = []
    for name, others in (("narrow", ()), ("wide", join.OTHERS), ("capped", ())):
        table = join._Table(name, join_sides.SHAPES["wide"], others=others)
        for each in table.names:
            table.add(each, side(of(each), 4.0 if each == join.PLAIN else 1.0))
        found.append(table)
    return found


def test_join_has_a_figure_for_each_side():
    answer = join.summary(tables()).as_dict()
    labels = [figure["label"] for figure in answer["figures"]]
    assert {"wide, 2 instances, ctr", "wide, 2 instances, auto", "wide, plain query"} <= set(labels)
    assert answer["ratio"] == pytest.approx(4.0)


@pytest.mark.parametrize("loser", ["1", "4", "ctr", "auto", join.PLAIN])
def test_join_fails_if_a_side_loses_rows(loser):
    with pytest.raises(RuntimeError, match=r"do not find the same groups.*99"):
        join.summary(tables(lambda name: 99 if name == loser else 100))


def test_a_plain_query_that_died_need_not_have_found_all():
    made = tables()
    made[1].runs[join.PLAIN] = [{**side(7), "died": "not done within 600 s"}]
    join.summary(made)


@pytest.mark.parametrize("method", ["atr", "ctr", "auto"])
def test_all_parts_of_an_instance_stand_on_one_node(method):
    network = network_of(join_sides.document(join_sides.SHAPES["wide"], Path("data"), 2, method))
    placement = join_sides.standing(network, ["n1", "n2"])
    assert {placement["trio[in]"], placement["trio"], placement["trio[0]"]} == {"n1"}
    assert {node for name, node in placement.items() if name.startswith("trio[1")} == {"n2"}


def test_routing_says_what_a_row_costs_and_whether_the_diffusion_holds_the_join_up():
    def one(diffusion, busiest):
        series = {"diffusion": diffusion, "busiest": busiest, "packing": 0.01, "mean": 0.1, "copies": 6000.0}
        return {name: [9.0, 9.0, value, value] for name, value in series.items()}

    runs = {"light": one(0.1, 0.4), "heavy": one(0.03, 0.02)}
    answer = routing.summary(runs, rows=2000, instances=30).as_dict()
    figures = {figure["label"]: (figure["value"], figure["ok"]) for figure in answer["figures"]}
    assert figures["light: a row"] == (pytest.approx(50.0), False)
    assert figures["light: diffusion over the busiest part"] == (pytest.approx(0.25), True)
    assert figures["heavy: a row"] == (pytest.approx(15.0), True)
    assert figures["heavy: diffusion over the busiest part"] == (pytest.approx(1.5), False)
    assert answer["ratio"] == pytest.approx(1 / 1.5)
    assert any(note.startswith("heavy: 3.0 copies of a row") for note in answer["notes"])


def test_routing_runs_a_small_join():
    found = routing.measured("ctr", 3, batches=2, rows=60, instances=2, seed=0)
    assert all(len(values) == 2 for values in found.values())
    assert found["copies"][0] >= 60
    assert 0 < found["packing"][1] < found["diffusion"][1]
