from __future__ import annotations

import math
import time
from decimal import Decimal

import polars as pl
import pytest

from levelwind.model import Aggregate, Column, Operator, Port, TimeWindow
from levelwind.operators.aggregate import make_aggregate, timeouts
from levelwind.operators.aggregate.kernels import LATE, TimeWindows, may_join, step_together
from levelwind.operators.aggregate.timeouts import TIMED_OUT, TimedOutWindows
from levelwind.operators.rows import BEGINNING, END, ORDER, TIME, Arrived, RowType
from levelwind.operators.state import EMPTY, FAN, Table

SECOND = 1_000_000
TYPES = {
    "ts": "timestamp",
    "k": "string",
    "g": "string",
    "n": "bigint",
    "x": "double",
    "d": "decimal(10,2)",
    "e": "decimal(38,2)",
}
READ = RowType(tuple(Column(name=name, type=kind) for name, kind in TYPES.items()), "ts")
SCHEMA = {
    "ts": pl.Int64,
    "k": pl.String,
    "g": pl.String,
    "n": pl.Int64,
    "x": pl.Float64,
    "d": pl.Decimal(10, 2),
    "e": pl.Decimal(38, 2),
}


def aggregate(size, slide=None, *, by=(), **compute):
    """An aggregate over windows of so many seconds."""
    window = TimeWindow(size_s=size, slide_s=slide or size)
    spec = Aggregate(window=window, compute=compute or {"c": "count(*)"}, by=by)
    made = make_aggregate(Operator(name="w", inputs=(Port(source="s"),), spec=spec), (READ,))
    assert isinstance(made, TimeWindows)
    return made


def rows(*given):
    """Rows from dictionaries; ``ts`` is in seconds."""
    table = [{**dict.fromkeys(SCHEMA), **row, "ts": round(row["ts"] * SECOND)} for row in given]
    return pl.DataFrame(table, schema=SCHEMA).with_columns(pl.col("ts").cast(TIME))


def at(*times, **values):
    return rows(*({"ts": each, **values} for each in times))


def step(kernel, given, watermark, state=EMPTY):
    """One step; the watermark is in seconds."""
    mark = watermark if watermark in (BEGINNING, END) else round(watermark * SECOND)
    return kernel.step(state, [Arrived(given, mark)])


def out(stepped, *names):
    """What was put out: the start of the window in seconds, then the columns asked for."""
    found = stepped.outputs.get(None)
    if found is None:
        return []
    start = (pl.col("window_start").to_physical() / SECOND).alias("start")
    return sorted(found.select(start, *names).rows(), key=str)


def run(kernel, *batches):
    """All that comes out of batches of (rows, watermark in seconds) and of the end, and what is rejected."""
    state, found, reasons = EMPTY, [], []
    for given, watermark in (*batches, (rows(), END)):
        stepped = step(kernel, given, watermark, state)
        state = stepped.state
        found += [stepped.outputs[None]] if None in stepped.outputs else []
        reasons += [reason for bad in stepped.rejected for reason in bad.reasons]
    return pl.concat(found) if found else None, reasons


def values(frame, *names):
    return sorted(frame.select(names).rows(), key=str)


@pytest.mark.parametrize(
    ("size", "slide", "times", "watermark", "wanted"),
    [
        (10, 10, [-1, -10, -11, 0], 0, [(-10.0, 2), (-20.0, 1)]),
        (10, 10, [-1, 0], 10, [(-10.0, 1), (0.0, 1)]),
        (4, 2, [-1], 10, [(-2.0, 1), (-4.0, 1)]),
        (4, 2, [-2, -1.5], 1.999999, [(-4.0, 2)]),
        (4, 2, [-2, -1.5], 2, [(-2.0, 2), (-4.0, 2)]),
        (5, 2, [-1], 10, [(-2.0, 1), (-4.0, 1)]),
    ],
)
def test_windows_before_1970_are_aligned_as_those_after_it(size, slide, times, watermark, wanted):
    assert out(step(aggregate(size, slide), at(*times), watermark), "c") == wanted


def test_bounds_and_time_of_a_window():
    found = step(aggregate(10, 5), at(3), 10).outputs[None].select(pl.selectors.datetime().to_physical())
    assert sorted(found.rows()) == [(-5 * SECOND, 5 * SECOND, 5 * SECOND - 1), (0, 10 * SECOND, 10**7 - 1)]


GAPPED = [{"c": "count(*)"}, {"c": "count(*)", "m": "max(k)"}]


@pytest.mark.parametrize("compute", GAPPED, ids=["numbers", "strings"])
@pytest.mark.parametrize("by", [(), ("k",)])
def test_rows_between_windows_that_leave_gaps_are_nobodys(compute, by):
    kernel = aggregate(5, 10, by=by, **compute)
    # 5 to 10 and 15 to 20 are gaps; 4.999999 and 10 are not.
    together, reasons = run(kernel, (at(0, 4.999999, 5, 9.5, 10, 17, 25, k="a"), 4))
    start = together["window_start"].to_physical()
    assert sorted(zip(start, together["c"], strict=True)) == [(0, 2), (10 * SECOND, 1)]
    assert reasons == []


@pytest.mark.parametrize("cut", [3, 5, 5.5, 7, 8])
def test_rows_in_gaps_are_no_dead_letters_whatever_the_watermark(cut):
    found, reasons = run(aggregate(5, 10), (at(1, 2), cut), (at(8, 8.5), 9), (at(19), 12), (at(21), 21))
    assert reasons == []
    assert values(found, "c") == [(1,), (2,)]


def test_only_rows_in_gaps_give_nothing():
    found, reasons = run(aggregate(5, 10, by=("k",)), (at(7, 17, 27, k="a"), 7), (at(8, k="b"), 8))
    assert found is None or found.is_empty()
    assert reasons == []


@pytest.mark.parametrize("compute", [{"c": "count(*)"}, {"c": "count(*)", "m": "max(g)"}])
def test_a_group_is_the_same_with_nulls_in_its_batch_or_without(compute):
    kernel = aggregate(10, by=("k", "g"), **compute)
    first = rows({"ts": 1, "k": "a", "g": "b"}, {"ts": 1, "k": "a"}, {"ts": 1, "g": "a"}, {"ts": 1})
    second = rows({"ts": 2, "k": "a", "g": "b"}, {"ts": 2, "k": "b", "g": "a"})
    third = rows({"ts": 3, "k": "a"}, {"ts": 3, "g": "a"}, {"ts": 3})
    found, _ = run(kernel, (first, 0), (second, 0), (third, 0))
    wanted = [("a", "b", 2), ("a", None, 2), (None, "a", 2), (None, None, 2), ("b", "a", 1)]
    assert values(found, "k", "g", "c") == sorted(wanted, key=str)


def test_zero_is_one_group_and_so_is_nan():
    kernel = aggregate(10, by=("x",))
    batches = [
        rows(*({"ts": 1, "x": x} for x in some)) for some in ([-0.0, math.nan], [0.0, -0.0], [-math.nan])
    ]
    found, _ = run(kernel, *((batch, 0) for batch in batches))
    counts = {str(x): c for x, c in found.select("x", "c").rows()}
    # As Spark writes it: a zero has no sign.
    assert counts == {"0.0": 3, "nan": 2}


@pytest.mark.parametrize("extra", [{}, {"t": "max(k)"}], ids=["numbers", "strings"])
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([1.0, math.nan], (1.0, math.nan)),
        ([math.nan, 1.0, math.inf], (1.0, math.nan)),
        ([math.nan], (math.nan, math.nan)),
        ([None, math.nan, -math.inf], (-math.inf, math.nan)),
        ([None, 2.0, -3.0], (-3.0, 2.0)),
        ([None], (None, None)),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_nan_is_larger_than_any_number(given, wanted, extra, together):
    kernel = aggregate(10, low="min(x)", high="max(x)", **extra)
    each = [rows({"ts": 1, "x": x, "k": "a"}) for x in given]
    found, _ = run(kernel, *((batch, 0) for batch in ([pl.concat(each)] if together else each)))
    assert found.select("low", "high").equals(
        pl.DataFrame([wanted], schema={"low": pl.Float64, "high": pl.Float64}, orient="row")
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([2**62, 2**62], None),
        ([2**62, 2**62 - 1], 2**63 - 1),
        ([2**62, 2**62, -1], 2**63 - 1),
        ([-(2**63)], -(2**63)),
        ([-(2**62), -(2**62), -1], None),
        ([2**63 - 1, 2**63 - 1, -(2**63), -(2**63)], -2),
        ([None, 5], 5),
        ([None], "nothing"),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_a_sum_of_whole_numbers_is_exact_or_rejected(given, wanted, together):
    each = [rows({"ts": 1, "n": n}) for n in given]
    batches = [pl.concat(each)] if together else each
    found, reasons = run(aggregate(10, s="sum(n)"), *((batch, 0) for batch in batches))
    if wanted is None:
        assert found.is_empty()
        assert len(reasons) == 1
        assert "does not fit bigint" in reasons[0]
    else:
        assert found["s"].to_list() == [None if wanted == "nothing" else wanted]
        assert reasons == []


def test_a_sum_that_does_not_fit_takes_no_other_group_with_it():
    given = [{"ts": 1, "k": k, "n": 2**62} for k in ("a", "a", "b")]
    found, reasons = run(aggregate(10, by=("k",), s="sum(n)"), (rows(*given), 0))
    assert values(found, "k", "s") == [("b", 2**62)]
    assert len(reasons) == 1


def test_the_average_of_large_numbers_does_not_overflow():
    found, reasons = run(aggregate(10, m="avg(n)"), (at(1, 2, 3, n=2**62), 0))
    assert found["m"].to_list() == [float(2**62)]
    assert reasons == []


@pytest.mark.parametrize(
    ("given", "total", "mean"),
    [
        (["0.10", "0.20"], "0.30", "0.150000"),
        (["1.00", "0.00", "0.00"], "1.00", "0.333333"),
        (["-1.00", "0.00", "-1.00"], "-2.00", "-0.666667"),
        (["99999999.99"] * 3, "299999999.97", "99999999.990000"),
        (["-99999999.99", "99999999.98"], "-0.01", "-0.005000"),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_sums_and_averages_of_decimals_are_exact(given, total, mean, together):
    each = [rows({"ts": 1, "d": Decimal(d)}) for d in given]
    kernel = aggregate(10, s="sum(d)", m="avg(d)", low="min(d)")
    found, _ = run(kernel, *((batch, 0) for batch in ([pl.concat(each)] if together else each)))
    assert found.select("s", "m", "low").rows() == [
        (Decimal(total), Decimal(mean), min(Decimal(d) for d in given))
    ]
    assert found.schema["s"] == pl.Decimal(20, 2)
    assert found.schema["m"] == pl.Decimal(14, 6)


def test_a_sum_of_the_largest_decimals_is_exact_or_rejected():
    most, least = (Decimal(sign + "9" * 36 + ".99") for sign in ("", "-"))
    kernel = aggregate(10, by=("k",), s="sum(e)")
    given = [("a", most), ("a", most), ("b", most), ("b", least), ("b", Decimal("0.07")), ("c", least)]
    found, reasons = run(kernel, *((rows({"ts": 1, "k": k, "e": e}), 0) for k, e in given))
    assert values(found, "k", "s") == [("b", Decimal("0.07")), ("c", least)]
    assert len(reasons) == 1
    assert "does not fit decimal(38,2)" in reasons[0]


@pytest.mark.parametrize("extra", [{}, {"t": "max(k)"}], ids=["numbers", "strings"])
def test_a_gap_of_half_a_century_costs_nothing(extra):
    kernel = aggregate(10, 1, by=("k",), c="count(*)", **extra)
    now = 1_780_000_000
    step(kernel, at(0, k="a"), END)  # compiled beforehand
    begin = time.process_time()
    stepped = step(kernel, at(0, now, k="a"), now + 100)
    took = time.process_time() - begin
    assert len(out(stepped)) == 20
    # Half a century has 10^9 windows and more: to visit each takes seconds, to keep each gigabytes.
    assert took < 1
    assert stepped.state.bytes < 10_000


def test_first_and_last_go_by_time_then_rank():
    given = [
        rows({"ts": t, "n": n}).with_columns(pl.lit(r, pl.Int64).alias(ORDER))
        for t, r, n in [(2, 1, 21), (1, 2, 12), (1, 1, 11), (2, 2, 22), (1, 3, None)]
    ]
    kernel = aggregate(10, f="first(n)", l="last(n)")
    assert run(kernel, (pl.concat(given), 0))[0].select("f", "l").rows() == [(11, 22)]
    assert run(kernel, *((each, 0) for each in given))[0].select("f", "l").rows() == [(11, 22)]


class TestTogether:
    """Aggregates that read the same rows by the same groups."""

    def members(self):
        return [
            aggregate(4, 2, by=("k",), s="sum(6 div n)"),
            aggregate(4, by=("k",), c="count(*)"),
            aggregate(2, by=("k",), c="count(*)", m="max(x)"),
        ]

    def test_who_may(self):
        a, b = aggregate(4, 2, by=("k",)), aggregate(10, by=("k",))
        assert may_join(a, b)
        assert not may_join(a, aggregate(10, by=("g",)))
        assert not may_join(a, aggregate(3, by=("k",)))

    def test_a_row_that_fails_for_one_is_rejected_by_that_one_alone(self):
        members = self.members()
        given = rows({"ts": 1, "k": "a", "n": 2}, {"ts": 1, "k": "a", "n": 0}, {"ts": 1, "k": "b", "n": 3})
        results = step_together(members, [EMPTY] * 3, Arrived(given, END))
        assert [[bad.rows["n"].to_list() for bad in each.rejected] for each in results] == [[[0]], [], []]
        assert out(results[0], "k", "s") == [(-2.0, "a", 3), (-2.0, "b", 2), (0.0, "a", 3), (0.0, "b", 2)]
        assert out(results[1], "k", "c") == [(0.0, "a", 2), (0.0, "b", 1)]
        assert out(results[2], "k", "c") == [(0.0, "a", 2), (0.0, "b", 1)]

    def test_the_segment_of_a_batch_is_one_and_the_same(self):
        members, states = self.members(), [EMPTY] * 3
        for number in range(2):
            results = step_together(members, states, Arrived(at(number, k="a", n=1), BEGINNING))
            states = [each.state for each in results]
        held = [each.state.tables["panes"].segments for each in results]
        assert [len(segments) for segments in held] == [2, 2, 2]
        for segments in held[1:]:
            assert all(a is b for a, b in zip(segments, held[0], strict=True))

    def test_segments_that_are_merged_stay_shared(self):
        members, states = self.members(), [EMPTY] * 3
        for number in range(FAN):
            results = step_together(members, states, Arrived(at(number, k="a", n=1), BEGINNING))
            states = [each.state for each in results]
        held = [state.tables["panes"].segments for state in states]
        assert [len(segments) for segments in held] == [1, 1, 1]
        assert held[0][0] is held[1][0] is held[2][0]

    def test_going_on_alone_after_steps_together(self):
        members = self.members()
        shared = step_together(members, [EMPTY] * 3, Arrived(at(0.5, k="a", n=1, x=1.0), BEGINNING))
        for member, before in zip(members, shared, strict=True):
            alone = step(member, at(0.5, k="a", n=1, x=1.0), END)
            after = step(member, at(0.7, k="a", n=1, x=1.0), END, before.state)
            twice = [
                (start, *(2 * v if i and not isinstance(v, float) else v for i, v in enumerate(row)))
                for start, *row in out(alone, "k", *member.compute)
            ]
            assert out(after, "k", *member.compute) == twice


STRINGS = {
    "c": "count(*)",
    "s": "sum(x)",
    "f": "first(n)",
    "u": "count(distinct g)",
    "m": "max(g)",
    "v": "stddev(x)",
}
NUMBERS = {"c": "count(*)", "s": "sum(n)", "a": "avg(x)", "l": "min(x)", "v": "stddev(x)"}


@pytest.mark.parametrize("compute", [STRINGS, NUMBERS], ids=["strings", "numbers"])
def test_merging_segments_changes_no_result(compute):
    kernel = aggregate(1000, 500, by=("k",), **compute)
    given = [
        rows(
            {"ts": i % 7 + i / 100, "k": "ab"[i % 2], "g": str(i % 5), "n": i, "x": float(i * i)},
            {"ts": i, "k": None if i % 3 else "a", "g": None, "n": -i, "x": None if i % 4 else 1.5},
        )
        for i in range(5 * FAN)
    ]
    state, most = EMPTY, 0
    for batch in given:
        state = step(kernel, batch, BEGINNING, state).state
        most = max(most, len(state.tables["panes"].segments))
    assert most <= 2 * FAN
    assert len(state.tables["panes"].segments) < len(given)
    merged = step(kernel, rows(), END, state).outputs[None]
    whole = step(kernel, pl.concat(given), END).outputs[None]
    keys = ["window_start", "k"]
    for left, right in zip(merged.sort(keys).rows(), whole.sort(keys).rows(), strict=True):
        assert _close(left, right)


def _close(left, right):
    """Whether rows are equal, floats within what rounding may do."""
    return all(
        math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(left, right, strict=True)
    )


def test_what_no_window_needs_is_given_up():
    kernel = aggregate(10, 1, by=("k",), c="count(*)")
    state, seen = EMPTY, []
    for number in range(200):
        batch = rows(*({"ts": number + i / 10, "k": str(i)} for i in range(10)))
        stepped = step(kernel, batch, number + 0.9, state)
        state = stepped.state
        assert len(out(stepped)) == (0 if number == 0 else 10)
        seen.append(state.tables["panes"].rows)
    # Ten seconds of one pane for each of ten groups, and what a merge has not given up yet.
    assert max(seen) <= 10 * 10 * 2
    assert seen[-1] == seen[100]


def test_the_end_leaves_no_panes():
    stepped = step(aggregate(10), at(1), END)
    assert stepped.state.tables["panes"] == Table("__pane")


class TestAfterTheEnd:
    """A later run that goes on from where all that was open was put out."""

    def test_rows_of_windows_that_were_put_out_are_late(self):
        kernel = aggregate(10, by=("k",))
        ended = step(kernel, at(3, 12, k="a"), END)
        assert out(ended, "c") == [(0.0, 1), (10.0, 1)]
        later = step(kernel, at(9, 15, 20, k="b"), 25, ended.state)
        assert [bad.reasons.to_list() for bad in later.rejected] == [[LATE, LATE]]
        assert later.rejected[0].rows["ts"].to_physical().to_list() == [9 * SECOND, 15 * SECOND]
        assert out(later) == []
        assert out(step(kernel, rows(), 30, later.state), "k", "c") == [(20.0, "b", 1)]

    def test_of_windows_that_overlap_only_those_still_to_come_count(self):
        kernel = aggregate(4, 2)
        ended = step(kernel, at(3), END)
        assert out(ended, "c") == [(0.0, 1), (2.0, 1)]
        # 3 is in windows that are put out alone; 5 is in that from 2, which is, and in that from 4.
        later = step(kernel, at(3, 5), END, ended.state)
        assert [bad.rows.height for bad in later.rejected] == [1]
        assert out(later, "c") == [(4.0, 1)]

    def test_nothing_is_late_after_an_end_without_rows(self):
        kernel = aggregate(10)
        ended = step(kernel, rows(), END)
        later = step(kernel, at(-5), END, ended.state)
        assert later.rejected == ()
        assert out(later, "c") == [(-10.0, 1)]

    def test_members_that_ended_at_different_times_each_tell_for_themselves(self):
        members = [aggregate(2), aggregate(10)]
        ended = step_together(members, [EMPTY] * 2, Arrived(at(1), END))
        later = step_together(members, [each.state for each in ended], Arrived(at(3), END))
        assert [len(each.rejected) for each in later] == [0, 1]
        assert out(later[0], "c") == [(2.0, 1)]
        assert out(later[1]) == []


class TestTimeouts:
    """Windows that close some time after their first row."""

    def kernel(self, size, slide, timeout, *, by=("k",), **compute):
        window = TimeWindow(size_s=size, slide_s=slide)
        spec = Aggregate(window=window, compute=compute or {"c": "count(*)"}, by=by, timeout_s=timeout)
        made = make_aggregate(Operator(name="w", inputs=(Port(source="s"),), spec=spec), (READ,))
        assert isinstance(made, TimedOutWindows)
        return made

    def late(self, stepped):
        """Times in seconds and reasons of what was rejected."""
        return [
            (at.timestamp(), reason)
            for bad in stepped.rejected
            for at, reason in zip(bad.rows["ts"], bad.reasons, strict=True)
        ]

    @pytest.mark.parametrize(
        ("watermark", "wanted"), [(3.999999, []), (4, [(0.0, "a", 2)]), (10, [(0.0, "a", 2)])]
    )
    def test_a_window_closes_so_long_after_its_first_row(self, watermark, wanted):
        stepped = step(self.kernel(10, 10, 3), at(1, 3.9, 4, k="a"), watermark)
        assert out(stepped, "k", "c") == wanted
        rest = step(self.kernel(10, 10, 3), rows(), END, stepped.state)
        assert out(stepped, "k", "c") + out(rest, "k", "c") == [(0.0, "a", 2)]
        assert self.late(stepped) + self.late(rest) == [(4.0, TIMED_OUT)]

    def test_its_bounds_stay_its_own(self):
        found = step(self.kernel(10, 10, 3), at(1, k="a"), 4).outputs[None]
        assert found.select(pl.selectors.datetime().to_physical()).rows() == [(0, 10**7, 10**7 - 1)]

    def test_its_end_closes_it_too(self):
        stepped = step(self.kernel(10, 10, 3), at(8, 9.5, 10, k="a"), 10)
        assert out(stepped, "c") == [(0.0, 2)]
        assert self.late(stepped) == []

    def test_a_row_that_comes_later_but_is_earlier_is_the_first(self):
        kernel = self.kernel(10, 10, 3)
        before = step(kernel, at(3, 4.5, k="a"), 0.5)
        stepped = step(kernel, at(1, k="a"), 5, before.state)
        assert out(stepped, "c") == [(0.0, 2)]
        assert self.late(before) == []
        assert self.late(stepped) == [(4.5, TIMED_OUT)]

    def test_each_group_has_its_own_first_row(self):
        given = rows({"ts": 1, "k": "a"}, {"ts": 3}, {"ts": 5, "k": "a"}, {"ts": 5})
        stepped = step(self.kernel(10, 10, 3), given, 6)
        assert out(stepped, "k", "c") == [(0.0, "a", 1), (0.0, None, 2)]
        assert self.late(stepped) == [(5.0, TIMED_OUT)]

    def test_a_row_is_late_only_if_no_window_takes_it(self):
        # 5 is too late for the window from 2 and the first of that from 4, and so is 7.5 for those after.
        stepped = step(self.kernel(4, 2, 1), at(3, 5, 5.5, 7.5, k="a"), END)
        assert out(stepped, "c") == [(0.0, 1), (2.0, 1), (4.0, 2), (6.0, 1)]
        assert self.late(stepped) == []
        assert self.late(step(self.kernel(4, 2, 0.5), at(2, 3, 4, k="a"), END)) == [(3.0, TIMED_OUT)]

    def test_a_dead_letter_is_the_row_as_it_came(self):
        given = rows({"ts": 1, "k": "a", "n": 1}, {"ts": 9, "k": "a", "n": 7, "g": "unused"})
        stepped = step(self.kernel(10, 10, 3, s="sum(n + 1)"), given, END)
        (bad,) = stepped.rejected
        assert bad.rows.equals(given[1:])

    def test_a_row_that_fails_opens_no_window(self):
        given = rows({"ts": 1, "k": "a", "n": 0}, {"ts": 3, "k": "a", "n": 2}, {"ts": 5, "k": "a", "n": 3})
        stepped = step(self.kernel(10, 10, 3, s="sum(6 div n)"), given, END)
        assert out(stepped, "s") == [(0.0, 5)]
        assert [moment for moment, _ in self.late(stepped)] == [1.0]

    def test_a_sum_that_does_not_fit_is_rejected(self):
        stepped = step(self.kernel(10, 10, 3, s="sum(n)"), at(1, 2, k="a", n=2**62), END)
        assert out(stepped) == []
        assert "does not fit bigint" in stepped.rejected[0].reasons[0]

    @pytest.mark.parametrize("timeout", [10, 11, 1e300])
    def test_one_as_long_as_the_window_changes_nothing(self, timeout):
        given = at(-11, -10, -1, 0, 3, 9.999999, 10, k="a")
        stepped = step(self.kernel(10, 5, timeout), given, END)
        assert out(stepped, "c") == out(step(aggregate(10, 5, by=("k",)), given, END), "c")
        assert self.late(stepped) == []

    def test_a_step_in_which_nothing_is_due_leaves_the_tables_as_they_are(self):
        kernel = self.kernel(10, 10, 3)
        state = step(kernel, at(1, 7, k="a"), 2).state
        stepped = step(kernel, rows(), 3.9, state)
        assert stepped.state.tables is state.tables
        assert out(stepped) == []
        assert out(step(kernel, rows(), 4, stepped.state), "c") == [(0.0, 1)]

    def test_the_end_is_the_same_whether_rows_came_with_the_watermark_or_before_it(self):
        kernel = self.kernel(10, 10, 3, s="sum(6 div n)")
        bad = at(3, k="a", n=0)
        together = step(kernel, bad, 14).state
        apart = step(kernel, rows(), 14, step(kernel, bad, BEGINNING).state).state
        ends = [step(kernel, rows(), END, state).state.marks for state in (together, apart)]
        assert ends == [{"closed": 14 * SECOND}] * 2

    def test_what_is_kept_does_not_grow(self, monkeypatch):
        monkeypatch.setattr(timeouts, "SLACK", 0)
        kernel = self.kernel(100, 100, 2, c="count(*)", s="sum(n)")
        state, kept = EMPTY, []
        for number in range(100):
            # Every second a new group begins and closes two seconds later; its window ends much later.
            batch = rows(*({"ts": number + i / 50, "k": str(number), "n": i} for i in range(50)))
            state = step(kernel, batch, number + 1, state).state
            kept.append(state.tables["open"].rows)
        assert max(kept) <= 2 * 2 * 50
        assert state.tables["windows"].read() is None
        assert state.tables["pending"].rows == 0
