"""The benchmark of the cost equations, on costs that are made up: no Spark is started here."""

from __future__ import annotations

import pytest

from levelwind.balance.costs.prediction import UnitCosts, expected_work
from levelwind.bench import prediction
from levelwind.bench.prediction import BATCH_S, FITTED, PREDICTED, Setting, document, summary
from levelwind.frontend import parse_network
from levelwind.testing.sides import network_of

COUNTED = 8
UNIT = {
    "filter": UnitCosts(queue_s=2e-8, evaluate_s=1e-8, batch_s=1e-3),
    "aggregate": UnitCosts(queue_s=0.0, evaluate_s=9e-8, purge_s=5e-8, batch_s=2e-3),
    "join": UnitCosts(queue_s=1e-7, evaluate_s=0.0, purge_s=2e-8, batch_s=3e-3),
}


def made_up(setting, factor=1.0):
    network = network_of(document(setting))
    return {
        name: factor * work.over(COUNTED * BATCH_S, COUNTED).cost(UNIT[network.operators[name].kind])
        for name, work in expected_work(network).items()
    }


def test_costs_that_keep_to_the_equations_are_predicted():
    result = summary({each.name: made_up(each) for each in (FITTED, *PREDICTED)}, COUNTED)
    assert result.ours.value < 1e-6
    assert result.baseline.value > 0.05
    assert all(figure.ok for figure in result.figures)


def test_costs_that_do_not_are_seen():
    costs = {each.name: made_up(each, 2.0) for each in PREDICTED} | {FITTED.name: made_up(FITTED)}
    result = summary(costs, COUNTED)
    assert result.ours.value == pytest.approx(0.5, abs=1e-3)
    assert not any(figure.ok for figure in result.figures)


def test_the_network_does_what_it_states():
    """Rates, groups and pairs counted by hand, at a rate at which that can be done."""
    setting = Setting(rate=40_000.0, window_s=4.0)
    parsed = parse_network(document(setting))
    assert parsed.warnings == ()
    work = expected_work(parsed.network)
    assert work["few"].rows_out == pytest.approx(1_000)
    assert work["small"].rows_in == pytest.approx(1_000 + 20_000)
    # Each of the 1,000 rows meets those within 4 s to both sides, one in 20,000 of them.
    assert work["small"].rows_out == pytest.approx(1_000 * 8 * 20_000 / prediction.KEYS)
    assert work["long"].state == pytest.approx(8 * (10_000 + 10_000))
    assert work["s_by_g"].state == pytest.approx(prediction.GROUPS)
    assert work["s_by_g"].rows_out == pytest.approx(prediction.GROUPS / 4)
