"""Union: all rows, columns by name, and an order of rows that no batch can change."""

import polars as pl
import pytest
from cutting import cut_places, run
from hypothesis import given
from hypothesis import strategies as st

from levelwind.model import Column, Operator, Port
from levelwind.model.operator import Union
from levelwind.operators.rows import BEGINNING, ORDER, Arrived, RowType
from levelwind.operators.state import EMPTY
from levelwind.operators.union import make_union


def union(count, *, leaves=None, types=("timestamp", "bigint")):
    rows = RowType((Column(name="ts", type=types[0]), Column(name="n", type=types[1])), "ts")
    ports = tuple(Port(source=f"s{i}") for i in range(count))
    return make_union(Operator(name="both", spec=Union(), inputs=ports), [rows] * count, leaves)


def frame(ts, n, **more):
    return pl.DataFrame({"ts": pl.Series(ts, dtype=pl.Datetime("us", "UTC")), "n": n, **more})


def step(kernel, *frames):
    stepped = kernel.step(EMPTY, [Arrived(rows, BEGINNING) for rows in frames])
    assert stepped.state is EMPTY
    assert stepped.rejected == ()
    return stepped.outputs[None]


def test_all_rows_come_out_nulls_and_repeats_included():
    out = step(union(3), frame([1, 2], [1, None]), frame([1], [1]), frame([3], [7]))
    assert out["n"].to_list() == [1, None, 1, 7]


def test_columns_go_by_name_in_the_order_of_the_first_input():
    second = frame([5], [9]).select("n", "ts")
    out = step(union(2), frame([1], [2]), second)
    assert out.columns == ["ts", "n"]
    assert out["n"].to_list() == [2, 9]
    # also when the first brings nothing
    alone = step(union(2), frame([1], [2]).clear(), second)
    assert alone.columns == ["ts", "n"]
    assert alone["n"].to_list() == [9]


def test_without_rows_nothing_is_computed():
    empty = frame([1], [2]).clear()
    assert step(union(2), empty, empty.clone()) is empty


def test_order_counts_the_sources_before():
    ordered = [frame([1], [i], **{ORDER: [5]}) for i in range(3)]
    assert step(union(3), *ordered)[ORDER].to_list() == [5, 5 + (1 << 48), 5 + (2 << 48)]
    assert step(union(3, leaves=[2, 3, 1]), *ordered)[ORDER].to_list() == [5, 5 + (2 << 48), 5 + (5 << 48)]
    # an input that comes alone is shifted too: what else comes with it must not matter
    assert step(union(3), ordered[0].clear(), ordered[1], ordered[2].clear())[ORDER].to_list() == [
        5 + (1 << 48)
    ]


def test_unions_of_unions_order_as_one_union_of_all():
    sources = [frame([1, 1], [2 * i, 2 * i + 1], **{ORDER: [0, 1]}) for i in range(3)]
    inner = step(union(2), sources[0], sources[1])
    nested = step(union(2, leaves=[2, 1]), inner, sources[2])
    assert nested.sort("ts", ORDER).equals(step(union(3), *sources))


def test_leaves_must_fit_the_inputs():
    with pytest.raises(ValueError, match="both"):
        union(2, leaves=[1])


def test_types_that_were_not_known_are_widened():
    narrow, wide = frame([1], pl.Series([1], dtype=pl.Int32)), frame([1], pl.Series([2], dtype=pl.Int64))
    assert step(union(2, types=("timestamp", "unknown")), narrow, wide)["n"].dtype == pl.Int64
    with pytest.raises(pl.exceptions.SchemaError):
        step(union(2), narrow, wide)


NUMBERS = st.lists(st.none() | st.integers(0, 3), max_size=6)


@given(st.data(), st.lists(NUMBERS, min_size=1, max_size=3), st.booleans())
def test_batches_do_not_matter(data, numbers, ordered):
    frames = [
        frame(
            [0] * len(n),
            pl.Series(n, dtype=pl.Int64),
            **({ORDER: pl.Series(range(len(n)), dtype=pl.Int64)} if ordered else {}),
        )
        for n in numbers
    ]
    kernel = union(len(frames))
    whole, _, _ = run(kernel, frames)
    cut, _, _ = run(kernel, frames, data.draw(cut_places([f.height for f in frames])))
    by = [ORDER] if ordered else ["n"]
    assert cut[None].sort(by).equals(whole[None].sort(by))
    assert whole[None].height == sum(map(len, numbers))
    assert not ordered or whole[None][ORDER].is_unique().all()
