"""How rows come, and how much: shapes, arrival laws, the load level, ideal loads."""

from __future__ import annotations

import numpy as np
import pytest
from sim_worlds import model, network, on

from levelwind.model import Join, Operator, Port, Stream
from levelwind.sim.arrivals import constant, listed, steps
from levelwind.sim.levels import at_level, base_rates
from levelwind.sim.scenario import Chains
from levelwind.sim.simulator import Simulator
from levelwind.sim.statistics import IdealLoads
from levelwind.sim.tables import Law
from levelwind.sim.workloads import OnOff, Periodic, Poisson, Recorded, make_arrivals

STREAMS = tuple(f"I{k}" for k in range(8))
NET = network(*(model(f"o{k}", f"I{k}") for k in range(8)), streams=STREAMS)
MEANS = dict.fromkeys(STREAMS, 10.0)


def rates(workload, horizon_s=200.0, step_s=0.5, seed=0, net=NET, means=MEANS):
    made = make_arrivals(workload, net, means, horizon_s=horizon_s, rng=np.random.default_rng(seed))
    edges = np.arange(0, horizon_s + step_s / 2, step_s)
    return np.array([made[name].rows(edges) for name in net.streams]) / step_s


def test_periodic_is_high_for_half_of_the_period_and_phases_are_even():
    found = rates(Periodic(ratio=4.0, period_s=8.0))
    assert set(np.round(found.ravel(), 9)) == {4.0, 16.0}
    np.testing.assert_allclose(found.mean(axis=1), 10.0)
    for k in range(8):  # a period has 16 of these steps; each stream is an eighth further on
        np.testing.assert_allclose(found[k, :100], np.roll(found[0, :160], -2 * k)[:100])
    np.testing.assert_allclose(found.sum(axis=0), 80.0)


def test_random_phases_depend_on_the_seed():
    one, other = rates(Periodic(phases="random")), rates(Periodic(phases="random"), seed=1)
    np.testing.assert_allclose(one.mean(axis=1), 10.0, rtol=1e-9)
    assert (one != other).any()


def test_on_off_has_opposites_and_shifted_ones():
    found = rates(OnOff(on_s=4.0, off_s=6.0, independent=0.25), horizon_s=4000.0, step_s=0.25)
    np.testing.assert_allclose(found.mean(axis=1), 10.0, rtol=0.12)
    highest = found.max(axis=1)
    np.testing.assert_allclose(highest[[0, 1, 3, 5, 7]], 25.0)  # active four tenths of the time
    np.testing.assert_allclose(highest[[2, 4, 6]], 10.0 / 0.6)
    correlation = np.corrcoef(found)
    for k, base in ((2, 0), (4, 1), (6, 0)):
        assert correlation[k, base] < -0.98
    for k, base in ((3, 0), (5, 1), (7, 0)):
        lags = [np.corrcoef(found[base, : -lag or None], found[k, lag:])[0, 1] for lag in range(41)]
        assert max(lags) > 0.9
        assert np.argmax(lags) > 0


def test_recorded_rates_repeat_and_begin_at_different_places():
    found = rates(Recorded(columns=((1.0, 3.0), (2.0, 2.0)), step_s=1.0), horizon_s=8.0, step_s=1.0)
    np.testing.assert_allclose(found[0, :4], [5.0, 15.0, 5.0, 15.0])
    np.testing.assert_allclose(found[1], 10.0)
    np.testing.assert_allclose(found[4, :4], [15.0, 5.0, 15.0, 5.0])


def test_recorded_times_are_played_at_the_mean_rate():
    made = make_arrivals(
        Recorded(columns=((5.0, 6.0, 9.0),), times=True, phases="even"),
        network(model("o", "I")),
        {"I": 3.0},
        horizon_s=100.0,
        rng=np.random.default_rng(0),
    )["I"]
    # Four seconds from first to last and six to the next round, for three rows: played six times as fast.
    np.testing.assert_allclose(made.times_s, [0.0, 1 / 6, 4 / 6])
    assert made.cycle_s == pytest.approx(1.0)
    assert made.rows(np.array([0.0, 30.0]))[0] == 90


def test_stated_series_are_kept_by_poisson():
    net = network(model("o", "I"), streams=(Stream(name="I", rate=(2.0, 4.0)),))
    found = rates(Poisson(), horizon_s=6.0, step_s=1.0, net=net, means={"I": 3.0})
    np.testing.assert_allclose(found[0], [2.0, 4.0] * 3)


def gaps(arrivals, until_s, seed=0):
    problem, placement = on(network(model("o", "I", cost=0.0)), 1)
    pieces = []
    simulator = Simulator(
        problem, {"I": arrivals}, placement, horizon_s=until_s, seed=seed, trace=pieces.append
    )
    simulator.advance(until_s)
    simulator.flush_trace()
    rows = np.concatenate(pieces)
    return rows["at_s"][rows["kind"] == 0]


def test_gaps_are_exponential_within_a_rate():
    times = gaps(constant(50.0, 2000.0), 2000.0)
    found = np.diff(times) * 50.0
    assert found.mean() == pytest.approx(1.0, rel=0.02)
    assert found.std() == pytest.approx(1.0, rel=0.02)
    assert np.quantile(found, 0.9) == pytest.approx(np.log(10), rel=0.03)


def test_counts_follow_the_rate_where_it_jumps():
    # Drawing each gap at the rate of its beginning would lose a tenth of the short bursts' rows.
    times, shape = np.arange(0.0, 4000.0, 0.5), np.tile([20.0, 1.0], 4000)
    found = gaps(steps(times, shape, 4000.0), 4000.0)
    high = (found % 1.0) < 0.5
    assert high.sum() == pytest.approx(40_000, rel=0.015)
    assert (~high).sum() == pytest.approx(2_000, rel=0.06)


def test_regular_rows_are_evenly_spaced():
    found = gaps(constant(4.0, 50.0, law=Law.REGULAR), 50.0)
    np.testing.assert_allclose(np.diff(found), 0.25)
    assert len(found) == 200


def test_recorded_times_come_again():
    found = gaps(listed([0.5, 0.7], cycle_s=2.0), 6.0)
    np.testing.assert_allclose(found, [0.5, 0.7, 2.5, 2.7, 4.5, 4.7])
    assert len(gaps(listed([0.5, 0.7]), 60.0)) == 2


@pytest.mark.parametrize("workload", [Periodic(), OnOff(), Poisson()])
def test_the_load_level_is_the_busy_time_of_all_nodes(workload):
    net = Chains(chains=6, length=5).network(np.random.default_rng(2))
    problem, _ = on(net, 6)
    means = base_rates(net, np.random.default_rng(3))
    assert all(0.8 <= rate <= 1.2 for rate in means.values())
    made = make_arrivals(workload, net, means, horizon_s=240.0, rng=np.random.default_rng(4))
    made = at_level(problem, made, 0.7, from_s=40.0, until_s=240.0)
    placement = {name: f"n{j % 6 + 1}" for j, name in enumerate(problem.physical.names)}
    simulator = Simulator(problem, made, placement, horizon_s=240.0, seed=5)
    simulator.advance(40.0)
    before = simulator.busy_s.sum()
    simulator.advance(240.0)
    assert (simulator.busy_s.sum() - before) / (6 * 200.0) == pytest.approx(0.7, rel=0.03)


def join_problem():
    join = Operator(
        name="j",
        spec=Join(aliases=("a", "b"), within_s=0.5),
        inputs=(Port(source="A"), Port(source="B")),
        cost_s=1e-4,
        selectivity=0.1,
    )
    return on(network(join, model("after", "j", cost=1e-3), streams=("A", "B")), 1)


def test_a_join_costs_what_the_load_model_says():
    problem, placement = join_problem()
    ideal = IdealLoads(problem).of(np.array([40.0, 60.0]))
    np.testing.assert_allclose(ideal, [2 * 0.5 * 40 * 60 * 1e-4, 2 * 0.5 * 40 * 60 * 0.1 * 1e-3])
    arrivals = {"A": constant(40.0, 300.0), "B": constant(60.0, 300.0)}
    simulator = Simulator(problem, arrivals, placement, horizon_s=300.0, seed=1)
    simulator.advance(300.0)
    assert simulator.busy_s[0] / 300.0 == pytest.approx(ideal.sum(), rel=0.03)


def test_the_load_level_is_met_where_load_grows_with_the_square_of_rates():
    problem, _ = join_problem()
    made = {name: constant(10.0, 100.0) for name in "AB"}
    scaled = at_level(problem, made, 0.6, from_s=0.0, until_s=100.0)
    rate = np.array([scaled[name].rate[0] for name in "AB"])
    assert IdealLoads(problem).of(rate).sum() == pytest.approx(0.6, rel=1e-6)
