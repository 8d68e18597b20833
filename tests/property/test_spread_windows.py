"""A spread multijoin whose windows change puts out the rows of the plain one with the same changes."""

from __future__ import annotations

import shutil
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_spread_changes import always
from test_spread_joins import NODES, SPREAD, World, batches, network

from levelwind.rewrite.windows import with_windows
from levelwind.runtime.coordinator import Move
from levelwind.runtime.program import Layout

__all__ = ["always"]  # a fixture
SPANS = (0.0, 0.5, 1.5, 3.0, 6.0, 20.0)
_LAYOUTS = {}


def layout(kind, windows):
    key = *kind, *sorted(windows.items())
    if key not in _LAYOUTS:
        streams, method, hops = kind
        _LAYOUTS[key] = Layout(with_windows(network(streams, SPREAD.get(method), hops), "trio", windows))
    return _LAYOUTS[key]


def outcome(kind, placement, told, windows, moved, died, closed):
    folder, now = tempfile.mkdtemp(), {}
    try:
        world = World(folder, layout(kind, now), placement)
        for number, batch in enumerate(told):
            if number in windows:
                now = {**now, **windows[number]}
                world.layout = layout(kind, now)
                world.revive()
            world.step(number, batch, moved[number], died[number])
            if number in closed:
                world.close_and_go_on()
        return world.rows()
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("streams", [2, 3, 4])
@pytest.mark.parametrize("method", ["atr", "ctr", "auto"])
@settings(max_examples=8)
@given(data=st.data(), told=batches())
def test_same_rows_as_the_plain_join_with_the_same_changes(method, streams, data, told):
    check(method, streams, data, told)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("streams", [2, 3])
def test_same_rows_if_the_router_changes_its_mind_too(streams):
    @settings(max_examples=10)
    @given(data=st.data(), told=batches())
    def same(data, told):
        check("auto", streams, data, told)

    same()


def check(method, streams, data, told):
    some = st.dictionaries(st.sampled_from("abcd"[:streams]), st.sampled_from(SPANS), min_size=1)
    windows = data.draw(st.dictionaries(st.integers(0, len(told) - 1), some, min_size=1, max_size=4))
    closed = data.draw(st.sets(st.integers(0, len(told) - 1), max_size=1))
    plain = streams, None, "within"
    nothing = [[]] * len(told)
    on_one = {box.name: "n1" for box in layout(plain, {}).boxes}
    expected = outcome(plain, on_one, told, windows, nothing, nothing, closed)
    # With hops to the next batch, what is filtered elsewhere comes later, and so after another change.
    hops = data.draw(st.sampled_from(["within", "next"])) if streams < 4 else "within"
    spread = streams, method, hops
    names = [box.name for box in layout(spread, {}).boxes]
    places = st.sampled_from(NODES)
    placement = {name: data.draw(places) for name in names}
    moved = [
        [
            Move(operator=data.draw(st.sampled_from(names)), target=data.draw(places), cause="test")
            for _ in range(data.draw(st.integers(0, 2)))
        ]
        for _ in told
    ]
    died = [data.draw(st.lists(st.sampled_from(["before", "after", "publish"]), max_size=1)) for _ in told]
    assert outcome(spread, placement, told, windows, moved, died, closed) == expected
