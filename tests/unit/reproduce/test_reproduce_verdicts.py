"""Every claim is decided by the data: hand-made results on which it holds, and on which it does not."""

import math

import made_up
import pytest

from levelwind.reproduce import (
    figure_4_5,
    figure_4_7,
    figure_6_1,
    figure_6_2,
    figure_6_5,
    figure_6_6,
    figure_6_7,
    figure_6_8,
    figure_6_9,
    figure_6_10,
    figure_6_11,
    figure_6_12,
    table_6_1,
)
from levelwind.reproduce.sending import BANDWIDTH, COMMUNICATION

PRINTED = table_6_1.PRINTED


def table(shift):
    """Table 6.1 with every entry moved by ``shift(row, size)``."""
    results = []
    for size in made_up.SIZES:
        (both,) = made_up.bounds(lambda _: 0.0, operators=size, points=40)
        for point in both["measured"]:
            for row, printed in PRINTED.items():
                point[row] = point["known"] * (1 - printed[size] - shift(row, size))
        results.append(both)
    return results


def bandwidth_gain(per_stream, ratio):
    return 1.0 if ratio < 1 else 1.2 if ratio == 1 else 5.0


HOLDS = {
    "4.5": (figure_4_5, made_up.cloud(lambda g: g**0.7)),
    "4.7": (figure_4_7, made_up.cloud(lambda r: r**2, name="r")),
    "6.1": (figure_6_1, made_up.resilience()),
    "6.2": (figure_6_2, made_up.resilience()),
    "6.5": (figure_6_5, made_up.by_inputs(lambda d: 0.7 if d == 2 else 0.8**d)),
    "6.6": (figure_6_6, made_up.bounds(lambda x: (1 - x) ** 2)),
    "6.7": (figure_6_7, made_up.bounds(lambda x: min(1.0, x), key="apart", instead="wrong")),
    "t6.1": (table_6_1, table(lambda row, size: 0.01)),
    "6.8": (figure_6_8, made_up.sent(lambda n, ratio: 1 + ratio, ratios=COMMUNICATION)),
    "6.9": (figure_6_9, made_up.sent(lambda n, ratio: n / 5, ratios=COMMUNICATION, against="connected")),
    "6.10": (figure_6_10, made_up.sent(bandwidth_gain, ratios=BANDWIDTH)),
    "6.11": (figure_6_11, made_up.sent(lambda n, ratio: 3.0, ratios=BANDWIDTH, against="connected")),
    "6.12": (figure_6_12, made_up.on_a_cluster(figure_6_12, {"rod": 1.05, "others": 1.3})),
}
CHANCE = {"correlation": 0.6, "llf": 0.4, "random": 0.3, "connected": 0.2}
FAILS = {
    "4.5 a point below its bound": (figure_4_5, made_up.cloud(lambda g: 0.9 * g), "below the bound"),
    "4.5 an edge that falls": (
        figure_4_5,
        made_up.cloud(lambda g: g + 0.8 * math.exp(-g * 5)),
        "lower edge does not rise",
    ),
    "4.7 a point below its bound": (
        figure_4_7,
        made_up.cloud(lambda r: 0.5 * r**3, name="r"),
        "below the bound",
    ),
    "6.1 a rival above ROD": (
        figure_6_1,
        made_up.resilience(factors=CHANCE | {"correlation": 1.1}),
        "ROD is not above correlation",
    ),
    "6.1 connected not the worst": (
        figure_6_1,
        made_up.resilience(factors=CHANCE | {"connected": 0.35}),
        "random is not above connected",
    ),
    "6.1 ROD falls": (figure_6_1, made_up.resilience((0.1, 0.3, 0.9, 0.6)), "does not rise"),
    "6.2 a mean that drifts": (
        figure_6_2,
        made_up.resilience(factors=CHANCE | {"connected": lambda size: 10 / size}),
        "connected/ROD goes from 0.40 to 0.05",
    ),
    "6.2 best runs that win": (
        figure_6_2,
        made_up.resilience(factors=CHANCE | {"correlation": 0.8}),
        "beats ROD on most graphs at 25, 50, 100, 200",
    ),
    "6.2 runs all alike": (figure_6_2, made_up.resilience(spread=(0.9, 1.0, 1.1)), "much alike"),
    "6.5 no fall": (figure_6_5, made_up.by_inputs(lambda d: 0.3 + 0.01 * d), "does not fall"),
    "6.5 a bent tail": (figure_6_5, made_up.by_inputs(lambda d: 0.2 if d > 4 else 0.9), "not straight"),
    "6.5 two inputs below": (
        figure_6_5,
        made_up.by_inputs(lambda d: 0.5 if d == 2 else 0.8**d),
        "at 2 inputs is below the line",
    ),
    "6.6 a peak elsewhere": (figure_6_6, made_up.bounds(lambda x: math.sin(3 * x)), "peaks at"),
    "6.6 no end": (figure_6_6, made_up.bounds(lambda x: 0.9), "still 0.90"),
    "6.7 no rise": (figure_6_7, made_up.bounds(lambda x: 1 - x, key="apart", instead="wrong"), "do not rise"),
    "t6.1 off by much": (
        table_6_1,
        table(lambda row, size: 0.3 if (row, size) == ("wrong", 100) else 0.0),
        "'wrong' is off: 0.85 against 0.55 at 100",
    ),
    "t6.1 a row that rises": (
        table_6_1,
        table(lambda row, size: 0.6 if row == "origin" and size == 200 else 0.0),
        "'origin' does not fall",
    ),
    "6.8 a loss": (figure_6_8, made_up.sent(lambda n, ratio: 0.9 + ratio, ratios=COMMUNICATION), "loses"),
    "6.8 no growth": (figure_6_8, made_up.sent(lambda n, ratio: 1.5, ratios=COMMUNICATION), "no growth"),
    "6.9 connected wins": (
        figure_6_9,
        made_up.sent(lambda n, ratio: 1.5 - ratio, ratios=COMMUNICATION, against="connected"),
        "connected is not beaten at ratio 0.6",
    ),
    "6.9 the lead shrinks": (
        figure_6_9,
        made_up.sent(lambda n, ratio: 100 / n, ratios=COMMUNICATION, against="connected"),
        "does not grow with the operators",
    ),
    "6.10 a gain too early": (
        figure_6_10,
        made_up.sent(lambda n, ratio: max(1.2, bandwidth_gain(n, ratio)), ratios=BANDWIDTH),
        "is not nothing",
    ),
    "6.10 no gain": (figure_6_10, made_up.sent(lambda n, ratio: 1.0, ratios=BANDWIDTH), "is not much"),
    "6.12 a rival that is faster": (
        figure_6_12,
        made_up.on_a_cluster(figure_6_12, {"rod": 1.08, "llf": 0.8, "others": 1.3}),
        "at 3.5 llf has mean 4.55 s",
    ),
    "6.12 a rival that survives": (
        figure_6_12,
        made_up.on_a_cluster(figure_6_12, {"rod": 1.05, "max_rate": 1.06, "others": 1.3}),
        "not overloaded at 4: max_rate",
    ),
    "6.12 ROD overloaded too": (
        figure_6_12,
        made_up.on_a_cluster(figure_6_12, {"rod": 1.2, "others": 1.3}),
        "ROD is",
    ),
    "6.11 connected wins": (
        figure_6_11,
        made_up.sent(lambda n, ratio: 0.5, ratios=BANDWIDTH, against="connected"),
        "connected is not beaten",
    ),
}


@pytest.mark.parametrize(("experiment", "results"), HOLDS.values(), ids=HOLDS)
def test_the_claim_holds_on_results_as_the_paper_shows_them(experiment, results):
    outcome = experiment.summarise(results)
    assert outcome.holds, outcome.why
    assert outcome.why == ""
    assert outcome.claim
    assert outcome.ours


@pytest.mark.parametrize(("experiment", "results", "reason"), FAILS.values(), ids=FAILS)
def test_the_claim_fails_with_its_reason_on_one_line(experiment, results, reason):
    outcome = experiment.summarise(results)
    assert not outcome.holds
    assert reason in outcome.why
    assert "\n" not in outcome.why


@pytest.mark.parametrize(("experiment", "results"), HOLDS.values(), ids=HOLDS)
def test_every_experiment_draws_a_picture(experiment, results, tmp_path):
    path = tmp_path / "figure.png"
    experiment.draw(results, path)
    assert path.read_bytes().startswith(b"\x89PNG")
