"""The state of time windows: shared, merged, given up, and what is left of it after the end."""

from __future__ import annotations

import math

import polars as pl
import pytest
from windowing import SECOND, aggregate, at, out, rows, step

from levelwind.operators.aggregate.kernels import LATE, may_join, step_together
from levelwind.operators.rows import BEGINNING, END, Arrived
from levelwind.operators.state import EMPTY, FAN, Table


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
