from __future__ import annotations

import math

import polars as pl
import pytest

from levelwind.operators.rows import TIME
from levelwind.operators.state import EMPTY, FAN, Segment, State, Table

# A multiple of FAN squared: such a run is merged as soon as there are FAN of them.
ROWS = FAN * FAN


def frame(*clock, **columns):
    return pl.DataFrame({"t": list(clock), **columns})


def table(*frames):
    found = Table("t")
    for each in frames:
        found = found.append(each)
    return found


def sized(number, times=1):
    """A frame of ``times`` the usual size, whose clock is its number."""
    return pl.DataFrame({"t": [number] * ROWS * times, "x": range(ROWS * times)})


class TestSegment:
    """Pieces of tables."""

    def test_it_knows_its_size_and_bounds(self):
        segment = Segment.of(frame(5, 2, 9), "t")
        assert (segment.rows, segment.low, segment.high) == (3, 2, 9)
        assert segment.bytes == 24
        assert segment.place is None
        assert segment.at_hand

    def test_a_clock_may_be_a_time(self):
        segment = Segment.of(frame(-7, 3).cast({"t": TIME}), "t")
        assert (segment.low, segment.high) == (-7, 3)

    def test_it_is_loaded_once_and_only_when_it_is_read(self):
        loads = []

        def load():
            loads.append(1)
            return frame(1)

        segment = Segment(rows=1, bytes=8, low=1, high=1, load=load)
        assert not segment.at_hand
        assert loads == []
        assert segment.frame is segment.frame
        assert loads == [1]
        assert segment.at_hand

    def test_it_must_have_rows_from_somewhere(self):
        with pytest.raises(ValueError, match="frame or a way to load"):
            Segment(rows=1, bytes=8, low=1, high=1)


class TestTable:
    """Tables of segments."""

    def test_appending_leaves_the_older_table_and_its_segments_as_they_are(self):
        first = table(frame(1))
        second = first.append(frame(2, 3))
        assert (first.rows, second.rows) == (1, 3)
        assert second.segments[0] is first.segments[0]
        assert second.bytes == 24

    def test_no_rows_make_no_segment(self):
        assert table(frame(1)[:0]).segments == ()
        assert Table("t").read() is None

    def test_rows_are_read_in_the_order_in_which_they_came(self):
        assert table(frame(3), frame(1, 2)).read()["t"].to_list() == [3, 1, 2]

    def test_columns_are_found_by_name_and_missing_ones_are_null(self):
        read = table(frame(1, a=[10]), frame(2, b=["x"])).read()
        assert read.sort("t").select("t", "a", "b").rows() == [(1, 10, None), (2, None, "x")]

    @pytest.mark.parametrize(
        ("below", "segments", "left"),
        [(0, 2, [1, 2, 3, 9]), (2, 2, [2, 3, 9]), (3, 2, [3, 9]), (4, 1, [9]), (9, 1, [9]), (10, 0, None)],
    )
    def test_evicted_rows_are_no_longer_read(self, below, segments, left):
        evicted = table(frame(1, 2, 3), frame(9)).evict(below)
        assert len(evicted.segments) == segments
        read = evicted.read()
        assert (None if read is None else read["t"].to_list()) == left

    def test_the_horizon_never_goes_back(self):
        evicted = table(frame(1, 5)).evict(4)
        assert evicted.evict(2) is evicted
        assert evicted.append(frame(3)).read()["t"].to_list() == [5]

    def test_eviction_writes_nothing_anew(self):
        before = table(frame(1, 2), frame(3))
        after = before.evict(2)
        assert after.segments == before.segments


class TestCompact:
    """Many segments become few."""

    def test_few_segments_stay(self):
        some = table(*(frame(i) for i in range(FAN - 1)))
        assert some.compact() is some

    def test_many_become_one_in_order(self):
        merged = table(*(frame(-i) for i in range(FAN))).compact()
        assert len(merged.segments) == 1
        assert merged.read()["t"].to_list() == [-i for i in range(FAN)]

    def test_evicted_rows_are_given_up(self):
        merged = table(*(frame(i, 100) for i in range(FAN))).evict(5).compact()
        assert merged.rows == FAN + FAN - 5
        assert merged.horizon == 5

    def test_a_merge_makes_rows_fewer(self):
        merged = table(*(frame(1, x=[i]) for i in range(FAN))).compact(
            lambda frames: pl.concat(frames).group_by("t").agg(pl.col("x").sum())
        )
        assert merged.read().rows() == [(1, sum(range(FAN)))]

    def test_one_large_segment_is_not_written_again_with_small_ones(self):
        large = table(sized(0, times=100))
        merged = large
        for number in range(FAN):
            merged = merged.append(sized(number))
        merged = merged.compact()
        assert len(merged.segments) == 2
        assert merged.segments[0] is large.segments[0]

    def test_what_is_merged_may_complete_a_run_of_larger_ones(self):
        found = table(*(sized(0, times=FAN) for _ in range(FAN - 1)), *(sized(1) for _ in range(FAN - 1)))
        assert found.compact() is found
        assert len(found.append(sized(1)).compact().segments) == 1

    def test_tables_that_began_together_are_not_all_merged_in_one_batch(self):
        merged_after = set()
        for more in range(FAN):
            found = Table("t")
            while not any(segment.rows > ROWS + more * FAN for segment in found.segments):
                found = found.append(pl.DataFrame({"t": [1] * (ROWS + more * FAN)})).compact()
                last = len(found.segments)
            merged_after.add(found.rows // (ROWS + more * FAN))
            assert last == 1
        assert merged_after == set(range(FAN, 2 * FAN))

    @pytest.mark.parametrize("appends", [500])
    def test_bytes_are_written_a_logarithmic_number_of_times_and_segments_are_few(self, appends):
        found, written, most = Table("t"), 0, 0
        for number in range(appends):
            before = {id(segment) for segment in found.segments}
            after = found.append(sized(number)).compact()
            written += sum(segment.bytes for segment in after.segments if id(segment) not in before)
            most = max(most, len(after.segments))
            found = after
        levels = math.log(appends, FAN)
        appended = appends * sized(0).estimated_size()
        assert found.bytes == appended
        assert written / appended <= 1 + levels + 0.1
        assert most <= 2 * FAN * math.ceil(levels)
        assert found.read()["t"].unique(maintain_order=True).to_list() == list(range(appends))


class TestState:
    """Tables and marks by name."""

    def test_a_new_table_is_empty(self):
        assert EMPTY.table("rows", "t") == Table("t")

    def test_changes_make_a_new_state(self):
        state = EMPTY.with_table("rows", table(frame(1))).with_mark("closed", 7)
        again = state.with_table("more", table(frame(2, 3))).with_mark("closed", 8)
        assert State() == EMPTY
        assert (set(state.tables), dict(state.marks)) == ({"rows"}, {"closed": 7})
        assert (set(again.tables), dict(again.marks)) == ({"rows", "more"}, {"closed": 8})
        assert again.table("rows", "t") is state.table("rows", "t")
        assert (state.bytes, again.bytes) == (8, 24)
        assert [segment.rows for segment in again.segments()] == [1, 2]

    def test_tables_and_marks_cannot_be_changed_in_place(self):
        state = EMPTY.with_mark("closed", 7)
        with pytest.raises(TypeError):
            state.marks["closed"] = 8
        with pytest.raises(TypeError):
            state.tables["rows"] = Table("t")
