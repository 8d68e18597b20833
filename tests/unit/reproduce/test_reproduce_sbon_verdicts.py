"""Claims of the wide-area figures: made-up results on which they hold, and on which they do not."""

from __future__ import annotations

import numpy as np
import pytest

from levelwind.reproduce import (
    sbon_figure_5,
    sbon_figure_8,
    sbon_figure_9,
    sbon_figure_10,
    sbon_figure_12,
    sbon_figure_13,
    sbon_figure_14,
    sbon_load_space,
    sbon_table_1,
)
from levelwind.reproduce.sbon_migration import seattle
from levelwind.reproduce.sbon_placements import PLANNERS, SHARES

USUAL = {name: usage for name, (usage, _) in sbon_table_1.PRINTED.items()} | {
    "network": 0.03,
    "network_coordinates": 0.1,
    "relaxation_height": 0.15,
}


def placements(*, late=0.0, tail=2.0, faster=-0.1, **usage):
    row = {"coordinate_error": 0.1, "coordinate_error_with_height": 0.05}
    for name in PLANNERS:
        at = {**USUAL, **usage}[name]
        slow = tail if name in ("producer", "random") else 0.5
        row[name] = {
            "usage": at,
            "usage_of_means": at,
            "delay": 0.2,
            "largest_delay": late if name in ("consumer", "ip_multicast") else 1.0,
            "usage_quantiles": [1000.0 * (1 + at) * (1 + share) for share in SHARES],
            "delay_quantiles": np.linspace(faster, slow, len(SHARES)).tolist(),
        }
    return [row, row]


def twins(saved=0.2, moves=3):
    move = [{"slice": 2 * k, "to": "n1"} for k in range(moves)]
    stays, goes = [1.0] * 42, [1.0 - saved] * 42
    return [
        {"stays": stays, "migrates": goes, "delay_stays": stays, "delay_migrates": goes, "moves": move}
    ] * 3


def pairs(usage=0.2, control=0.05, worse=0):
    rows = [
        {"usage": -0.2 if k < worse else usage, "delay": 0.1, "moves": 2, "control": control,
         "stays": 1.0, "migrates": 1.2 if k < worse else 1 - usage}
        for k in range(24)
    ]  # fmt: skip
    return [{"rows": rows[:12]}, {"rows": rows[12:]}]


def groups(shared=50.0, multicast=45.0, together=60.0):
    return [
        {"apart": 100.0, "shared": shared, "multicast": multicast, "unshared_together": together, "served": 3}
    ] * 4


def ranks(relaxation=3, network=0):
    usage = [1.0 + 0.1 * k for k in range(sbon_figure_14.NODES)]
    return [{"usage": usage, "relaxation": relaxation, "network": network}] * 3


def loaded(delay=0.9, in_transit=0.9):
    def rows():
        last = len(sbon_load_space.WEIGHTS_MS) - 1
        return [
            {"delay_ms": 50.0 * delay ** (k / last), "in_transit": 400.0 * in_transit ** (k / last),
             "travelling": 300.0, "load": 0.5 - 0.05 * k}
            for k in range(last + 1)
        ]  # fmt: skip

    return [{"relaxation": rows(), "network": rows()}] * 2


def movement(last=0.01, error=0.05):
    def side(end, off):
        return {"movement_ms": np.geomspace(1.0, end, 50).tolist(), "error": off}

    return [{"filter": side(last, error), "raw": side(0.2, 0.3)}] * 2


@pytest.mark.parametrize(
    ("experiment", "good", "bad"),
    [
        (sbon_table_1, placements(), placements(late=0.01)),
        (sbon_table_1, placements(), placements(ip_multicast=0.5)),
        (sbon_table_1, placements(), placements(relaxation_height=0.5)),
        (sbon_figure_8, placements(), placements(relaxation_height=0.4)),
        (sbon_figure_9, placements(), placements(tail=0.4)),
        (sbon_figure_9, placements(), placements(faster=0.0)),
        (sbon_figure_10, twins(), twins(saved=-0.1)),
        (sbon_figure_10, twins(), twins(moves=20)),
        (sbon_figure_12, pairs(), pairs(control=0.3)),
        (sbon_figure_12, pairs(worse=1), pairs(worse=2)),
        (sbon_figure_13, groups(), groups(shared=70.0)),
        (sbon_figure_13, groups(), groups(multicast=50.0)),
        (sbon_figure_13, groups(), groups(together=40.0)),
        (sbon_figure_14, ranks(), ranks(relaxation=10)),
        (sbon_figure_14, ranks(), ranks(network=3)),
        (sbon_load_space, loaded(), loaded(delay=1.1)),
        (sbon_load_space, loaded(), loaded(in_transit=1.1)),
        (sbon_figure_5, movement(), movement(last=0.15)),
        (sbon_figure_5, movement(), movement(error=0.2)),
    ],
)
def test_the_data_decide(experiment, good, bad, tmp_path):
    assert experiment.summarise(good).holds
    told = experiment.summarise(bad)
    assert not told.holds
    assert told.why
    experiment.draw(good, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_the_slices_are_whole():
    slices = seattle()
    assert slices.shape == (43, 60, 60)
    assert np.isfinite(slices).all()
