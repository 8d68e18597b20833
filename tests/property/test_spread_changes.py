"""A spread join whose router changes its mind at every turn puts out the rows of the plain one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_spread_joins import NODES, batches, layout, outcome

from levelwind.diffusion import router
from levelwind.diffusion.auto import advise
from levelwind.operators.spreading import diffusion
from levelwind.runtime.coordinator import Move


class Fickle:
    """Advice by chance; the same for the same rates, since a batch that is run again is routed as it was."""

    def advise(self, shape, measured, **others):
        rng = self.chance(measured)
        method = ("atr", "ctr")[rng.integers(2)]
        master, segment_s = int(rng.integers(shape.streams)), float(rng.choice([0.2, 0.7, 1.5, 4.0]))
        return replace(
            advise(shape, measured, **others), method=method, master=master, segment_s=segment_s, aligned=1.0
        )

    def slot_us(self, shape, measured, horizon_s):
        return int(self.chance(measured).choice([70_000, 300_000, 1_000_000, 5_000_000]))

    def chance(self, measured):
        return np.random.default_rng([round(1e6 * rate) for rate in measured.rates])


fickle = Fickle()


@pytest.fixture
def always(monkeypatch):
    """Choices are thought over whenever they may be, and fall by chance."""
    monkeypatch.setattr(router, "CALM", 1.0)
    monkeypatch.setattr(diffusion, "advise", fickle.advise)
    monkeypatch.setattr(diffusion, "slot_length_us", fickle.slot_us)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("streams", [2, 3, 4])
def test_same_rows_whatever_is_advised(streams):
    eras = check(streams)
    # By the mark of each run's last commit: an era is one way of routing, from one turn to the next.
    assert max(eras) >= 3
    assert sum(count > 1 for count in eras) >= 3


def check(streams):
    """How many eras each run had."""
    eras = []

    @settings(max_examples=8)
    @given(data=st.data(), told=batches())
    def same(data, told):
        nothing = [[]] * len(told)
        closed = data.draw(st.sets(st.integers(0, len(told) - 1), max_size=1))
        plain = layout(streams, None, "within")
        expected = outcome(plain, {box.name: "n1" for box in plain.boxes}, told, nothing, nothing, closed)
        spread = layout(streams, "auto", data.draw(st.sampled_from(["within", "next"])))
        names = [box.name for box in spread.boxes]
        places = st.sampled_from(NODES)
        placement = {name: data.draw(places) for name in names}
        moved = [
            [Move(operator=data.draw(st.sampled_from(names)), target=data.draw(places), cause="test")]
            for _ in told
        ]
        died = [data.draw(st.lists(st.sampled_from(["before", "publish"]), max_size=1)) for _ in told]

        def look(world):
            eras.append(world.coordinator.last.boxes["trio[in]"].marks.get("eras", 0))

        assert outcome(spread, placement, told, moved, died, closed, look) == expected

    same()
    return eras
