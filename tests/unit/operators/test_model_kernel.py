"""Model operators: the stated CPU time is burned, and the stated share of rows comes out exactly."""

import time
from fractions import Fraction
from math import floor

import polars as pl
import pytest
from cutting import cut_places, run
from hypothesis import given
from hypothesis import strategies as st

from levelwind.model import Operator, Port
from levelwind.model.operator import Model
from levelwind.operators.model import COUNT, burn, make_model
from levelwind.operators.rows import BEGINNING, Arrived, RowType
from levelwind.operators.state import EMPTY

UNKNOWN = RowType(None, None)


def model(*, inputs=1, cost_s=0.0, selectivity=1.0, rows=UNKNOWN):
    ports = tuple(Port(source=f"s{i}") for i in range(inputs))
    operator = Operator(name="o", spec=Model(), inputs=ports, cost_s=cost_s, selectivity=selectivity)
    return make_model(operator, [rows] * inputs)


def frame(count, name="ts", first=0):
    return pl.DataFrame({name: pl.Series(range(first, first + count), dtype=pl.Datetime("us", "UTC"))})


def spent(action):
    start = time.thread_time()
    action()
    return time.thread_time() - start


def test_burn_uses_the_cpu_for_so_long():
    assert 0.02 <= spent(lambda: burn(0.02)) < 0.03
    start = time.thread_time()
    burn(0.01)
    assert spent(lambda: burn(0.01, since=start)) < 0.005


def test_a_step_burns_the_cost_of_its_rows():
    kernel = model(cost_s=0.002, inputs=2)
    arrived = [Arrived(frame(10), BEGINNING), Arrived(frame(5), BEGINNING)]
    assert 0.03 <= spent(lambda: kernel.step(EMPTY, arrived)) < 0.04
    nothing = [Arrived(frame(0), BEGINNING)] * 2
    assert spent(lambda: kernel.step(EMPTY, nothing)) < 0.001


def test_an_unstated_cost_is_a_microsecond():
    operator = Operator(name="o", spec=Model(), inputs=(Port(source="s"),))
    assert make_model(operator, [UNKNOWN]).cost_s == 1e-6


SELECTIVITIES = st.sampled_from([0.0, 0.1, 0.29, 0.3, 0.5, 0.999, 1.0, 1.1, 1.5, 2.0, 3.7, 1 / 3])


@given(st.data(), SELECTIVITIES, st.lists(st.integers(0, 40), min_size=1, max_size=3))
def test_totals_are_exact_and_batches_do_not_matter(data, selectivity, heights):
    kernel = model(inputs=len(heights), selectivity=selectivity)
    frames = [frame(height, first=100 * i) for i, height in enumerate(heights)]
    whole, _, _ = run(kernel, frames)
    cut, _, _ = run(kernel, frames, data.draw(cut_places(heights)))
    assert cut[None].sort("ts").equals(whole[None].sort("ts"))
    wanted = Fraction(1, 3) if selectivity == 1 / 3 else Fraction(repr(selectivity))
    assert whole[None].height == sum(floor(wanted * height) for height in heights)


def test_selectivity_counts_as_it_is_written():
    assert 0.29 * 100 < 29  # what floats would make of it
    out, _, _ = run(model(selectivity=0.29), [frame(100)])
    assert out[None].height == 29


@pytest.mark.parametrize("selectivity", [1 / 3, 0.123456789, 2.999999999])
def test_counting_stays_exact_after_very_many_rows(selectivity):
    kernel = model(selectivity=selectivity)
    before = 4 * 10**18 + 12_345
    state = EMPTY.with_mark(f"{COUNT}0", before)
    out, _, _ = run(kernel, [frame(5000)], state=state)
    exact = kernel.selectivity
    assert out[None].height == floor(exact * (before + 5000)) - floor(exact * before)
    assert float(exact) == pytest.approx(selectivity, rel=1e-15)


def test_rows_are_spread_and_repeated():
    half, _, _ = run(model(selectivity=0.5), [frame(6)])
    assert half[None]["ts"].to_physical().to_list() == [1, 3, 5]
    more, _, _ = run(model(selectivity=1.5), [frame(4)])
    assert more[None]["ts"].to_physical().to_list() == [0, 1, 1, 2, 3, 3]


def test_the_state_is_a_count_and_only_where_it_is_needed():
    kernel = model(selectivity=0.5, inputs=2)
    _, _, state = run(kernel, [frame(9), frame(4)], [[3, 1], [6, 1]])
    assert state.marks == {"rows0": 9, "rows1": 4}
    _, _, state = run(model(selectivity=2.0), [frame(9)], [[3]])
    assert state is EMPTY


def test_other_inputs_take_the_form_of_the_first():
    first = pl.DataFrame({"ts": frame(1)["ts"], "n": [1], "text": ["a"]})
    second = pl.DataFrame({"time": frame(1, first=7)["ts"], "n": ["not a number"], "more": [0]})
    operator = Operator(name="o", spec=Model(), inputs=(Port(source="a"), Port(source="b")), cost_s=0.0)
    kernel = make_model(operator, [RowType(None, "ts"), RowType(None, "time")])
    out, _, _ = run(kernel, [first, second])
    assert out[None].schema == first.schema
    assert out[None].select(pl.col("ts").to_physical(), "n", "text").rows() == [(0, 1, "a"), (7, None, None)]


def test_rows_of_a_single_column_add_up_whatever_it_is_called():
    out, _, _ = run(model(inputs=2), [frame(2), frame(1, "when", first=7)])
    assert out[None]["ts"].to_physical().to_list() == [0, 1, 7]


def test_without_inputs_nothing_comes_out():
    operator = Operator(name="o", spec=Model(series=(0.5,)), cost_s=1.0)
    stepped = make_model(operator, []).step(EMPTY, [])
    assert stepped.outputs[None].height == 0
    assert stepped.state is EMPTY


@pytest.mark.parametrize("selectivity", [0.0, 0.5, 1.0, 2.5])
def test_a_step_without_rows_leaves_everything_as_it_is(selectivity):
    kernel = model(selectivity=selectivity)
    empty = frame(0)
    stepped = kernel.step(EMPTY, [Arrived(empty, BEGINNING)])
    assert stepped.outputs[None] is empty
    assert stepped.state is EMPTY
