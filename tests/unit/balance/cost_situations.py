"""Situations for cost models and the policies that go by them: by hand, and by chance."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from levelwind.balance import Situation
from levelwind.balance.facts import Facts, make_wiring
from levelwind.model import Node


def situation(
    arcs, node, *, load=None, rows=None, state=None, nodes=None, outside=None, unit=None, sending=None, **more
):
    """A situation by hand: operators on nodes, arcs between them, one figure each.

    ``sending`` are three: what is sent, what sending would cost and what receiving would. ``stream`` and
    ``part`` say which arcs carry the same rows, and how many of their producer's.
    """
    count = len(node)
    streams = {key: np.array(more.pop(key)) for key in ("stream", "part") if key in more}
    nodes = nodes or tuple(Node(name=f"n{i}") for i in range(max(node) + 1))
    facts = Facts(
        operators=tuple(f"o{k}" for k in range(count)),
        properties=tuple(more.pop("properties", [{}] * count)),
        priority=np.array(more.pop("priority", [0.0] * count)),
        bytes=np.full(count, np.nan),
        wiring=make_wiring(arcs, np.array(outside or [0] * count), **streams),
    )
    return Situation(
        series=np.array([load or [1.0] * count]).T,
        node=np.array(node),
        cpu=np.array([n.cpu for n in nodes]),
        movable=np.ones(count, dtype=bool),
        unit=np.arange(count) if unit is None else np.array(unit),
        state_bytes=np.array(state or [0.0] * count, dtype=float),
        nodes=nodes,
        facts=facts,
        seen={
            "rows_in": np.zeros(count),
            "rows_out": np.array(rows or [1.0] * count, dtype=float),
            **dict(
                zip(("sent", "sending", "receiving"), np.array(sending or [[0.0] * count] * 3), strict=True)
            ),
        },
        **more,
    )


@st.composite
def situations(draw, *, most=8):
    """Random operators, arcs, streams of all rows or some, and nodes; units of one or two operators."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, nodes = int(rng.integers(2, most + 1)), int(rng.integers(2, 5))
    ends = np.sort(rng.integers(0, count, (int(rng.integers(0, 13)), 2)), axis=1)
    arcs = [(int(one), int(other)) for one, other in ends if one != other]
    streams = [2 * producer + int(rng.integers(0, 2)) for producer, _ in arcs]
    unit = [k - 1 if k % 2 and rng.random() < 0.4 else k for k in range(count)]
    node = rng.integers(0, nodes, count)[unit].tolist()
    figures = rng.uniform(0.01, 2.0, (3, count)).round(3).tolist()
    return situation(
        arcs,
        node,
        load=figures[0],
        rows=figures[1],
        state=figures[2],
        outside=rng.integers(0, 3, count).tolist(),
        nodes=tuple(
            Node(name=f"n{i}", cpu=float(rng.uniform(0.5, 2.0)), memory_bytes=4.0) for i in range(nodes)
        ),
        unit=unit,
        stream=np.array(streams, dtype=np.int64),
        part=np.where(rng.random(2 * count) < 0.5, 1.0, rng.random(2 * count)),
        sending=(rng.uniform(0.0, 1.0, (3, count)) * figures[0]).tolist(),
    )
