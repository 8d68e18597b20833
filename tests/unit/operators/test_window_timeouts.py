"""Windows that close some time after their first row."""

from __future__ import annotations

import polars as pl
import pytest
from windowing import READ, SECOND, aggregate, at, out, rows, step

from levelwind.model import Aggregate, Operator, Port, TimeWindow
from levelwind.operators.aggregate import make_aggregate, timeouts
from levelwind.operators.aggregate.timeouts import TIMED_OUT, TimedOutWindows
from levelwind.operators.rows import BEGINNING, END
from levelwind.operators.state import EMPTY


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
