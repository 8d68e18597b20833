"""What the benchmark of the query plans runs, and what it says of made-up figures: no Spark is started."""

from __future__ import annotations

import pytest

from levelwind.bench.dcape import cases, summary, with_figures
from levelwind.model import Cluster
from levelwind.reproduce.dcape import FIGURES, LEFT, MOVED, MOVES
from levelwind.reproduce.dcape_runs import Case

# Connections of the patterns.
CONNECTIONS = {"round_robin": 12, "grouping": 3}


def step(case, number):
    moved = case.move_every is not None and number % case.move_every == 0
    return {
        "wall_s": 2.6 if moved else 2.0,
        "moves": int(moved),
        "rows": 100,
        "sent": 1e6,
        "fullest_s": 0.5,
        "cpu_s": 1.5,
    }


def made_up(wanted, throughput, skipped=()):
    """A run for every round of every case."""
    runs = {}
    for case, rounds in wanted.items():
        runs[case.name] = [
            {
                "round": number,
                "throughput": throughput(case) * (1 + number / 100),
                "steps": [step(case, k) for k in range(case.counted or 5)],
                "moves": 0,
                "connections": CONNECTIONS.get(case.planner, 5),
                "connections_at_the_end": 3,
                "boxes": {},
            }
            for number in rounds
            if case.name not in skipped
        ]
    return {"runs": runs, "capped": True, "seconds": 1.0}


def as_promised(case):
    base = {"round_robin": 100.0, "grouping": 130.0}.get(case.planner, 150.0)
    base = 140.0 if case.policy else base
    return base * (0.7 + 0.1 * case.nodes) if case.number > 1 else 100.0


def figures(result):
    return {figure.label: figure for figure in result.figures}


@pytest.mark.parametrize("full", [False, True])
def test_every_promise_has_a_figure(full):
    found = figures(summary(made_up(cases(full), as_promised), cases(full)))
    plans = (2, 3, 4) if full else (2,)
    for number in plans:
        where = f"plan {number} on 3: "
        assert found[f"{where}round_robin over grouping"].value == pytest.approx(100 / 130)
        assert found[f"{where}round_robin over grouping"].limit == 1.0
        assert found[f"{where}connections of grouping over those of round_robin"].value == 0.25
        # From 100 to 140 of 150.
        assert found[f"{where}share not regained by degradation"].value == pytest.approx(0.2)
        assert found[f"{where}grouping + degradation over resilient"].limit == 1.0
        most = 5 if full else 3
        assert found[f"plan {number}: one node over {most} by grouping"].value < 1.0
    assert found["plan 1: one node over 3 by round_robin"].limit == pytest.approx(1.1)
    # Two batches of 2.6 and 2.0 where there would be two of 2.0.
    assert found["seconds that moving a join adds, of a minute"].value == pytest.approx(0.01)
    assert all(figure.ok is not False for figure in found.values())


def test_broken_promises_are_seen():
    def broken(case):
        if case.number == 1:
            return 100.0 / case.nodes
        if case.policy == "replan":
            return 70.0
        return {"round_robin": 130.0, "grouping": 100.0}.get(case.planner, 80.0)

    result = summary(made_up(cases(False), broken), cases(False))
    found = figures(result)
    missed = {label for label, figure in found.items() if figure.ok is False}
    assert missed == {
        "plan 2 on 3: round_robin over grouping",
        "plan 2 on 3: grouping + degradation over resilient",
        "plan 1: one node over 3 by round_robin",
        "plan 2: one node over 3 by grouping",
    }
    (cause,) = [note for note in result.notes if "slower" in note]
    assert cause.startswith("plan 2 on 3: grouping is slower than round_robin: its fullest node works 0.50")


def test_no_cause_is_given_for_what_is_as_promised():
    result = summary(made_up(cases(True), as_promised), cases(True))
    assert not [note for note in result.notes if "slower" in note]


def test_the_best_of_ours_is_compared():
    found = figures(
        summary(
            made_up(cases(False), lambda case: 160.0 if case.policy == "replan" else as_promised(case)),
            cases(False),
        )
    )
    own = as_promised(Case(number=2, nodes=3, planner="grouping", policy="degradation"))
    label = "plan 2 on 3: grouping + degradation over round_robin + replan"
    assert found[label].value == pytest.approx(own / 160.0)


def test_what_there_was_no_time_for_is_said():
    wanted = cases(True)
    late = [case.name for case in list(wanted)[-4:]]
    result = summary(made_up(wanted, as_promised, skipped=late), wanted)
    assert late[0] in result.notes[-1]


def test_a_last_round_that_was_cut_short_is_left_out_of_comparisons():
    """Whatever single run is missing, and whatever part of the last round."""
    for full in (False, True):
        wanted = cases(full)
        every = made_up(wanted, as_promised)
        last = max(own.stop for own in wanted.values()) - 1
        for cut in range(len(wanted)):
            runs = {
                name: [run for run in own if run["round"] < last or k < cut]
                for k, (name, own) in enumerate(every["runs"].items())
            }
            result = summary({**every, "runs": runs}, wanted)
            assert all(figure.ok is not False for figure in result.figures)


def test_moves_that_were_not_made_are_no_cheap_moves():
    wanted = cases(False)
    found = made_up(wanted, as_promised)
    for own in found["runs"].values():
        for run in own:
            run["steps"] = [{**each, "moves": 0} for each in run["steps"]]
    assert figures(summary(found, wanted))["seconds that moving a join adds, of a minute"].ok is False


def test_all_nodes_and_both_patterns_are_in_the_full_table():
    wanted = cases(True)
    for number in (1, 2, 3, 4):
        assert Case(number=number, nodes=1, planner="round_robin") in wanted
        for nodes in (2, 3, 4, 5):
            for planner in ("round_robin", "grouping"):
                assert Case(number=number, nodes=nodes, planner=planner) in wanted
    pairs = [case for case, rounds in wanted.items() if rounds == range(5) and case.policy is None]
    assert {(case.number, case.planner) for case in pairs} == {
        (number, planner) for number in (2, 3, 4) for planner in ("round_robin", "grouping")
    }
    assert [case for case in wanted if case.apart] == [MOVED, LEFT]
    assert wanted[MOVED] == wanted[LEFT] == range(3)
    assert MOVED.counted == MOVES * MOVED.move_every


def test_a_join_apart_is_no_rival_of_plans_as_planners_have_them():
    # On four nodes at most, as the join apart is: taken for a plan by grouping, it would be the largest.
    wanted = {case: rounds for case, rounds in cases(True).items() if case.nodes <= 4}
    result = summary(made_up(wanted, lambda c: 1e9 if c.apart else as_promised(c)), wanted)
    found = figures(result)
    assert len(found) == len(result.figures)
    assert found["plan 2: one node over 4 by grouping"].value == pytest.approx(80 / (1.1 * 130))
    label = "throughput without moves over that with one every 10 batches"
    assert found[label].value == pytest.approx(1.0)


@pytest.mark.parametrize("planner", ["correlation", "resilient"])
def test_our_planners_place_the_plans(planner):
    case = Case(number=2, nodes=3, planner=planner)
    assert set(case.placement(Cluster.equal(3))) == set(case.network.operators)


def test_the_full_pass_runs_what_figures_show_and_nothing_twice():
    wanted, together = cases(True), with_figures(cases(True))
    shown = {case for figure in FIGURES.values() for case in figure.chosen(quick=False).values()}
    assert set(together) == set(wanted) | shown
    for case, rounds in together.items():
        assert set(rounds) >= set(wanted.get(case, ()))
        assert set(rounds) >= (set(range(3)) if case in shown else set())
        assert rounds == max(wanted.get(case, range(0)), range(3 if case in shown else 0), key=len)


@pytest.mark.parametrize(("dearer", "error"), [(1.0, "0%"), (2.0, "50%")])
def test_costs_of_joins_are_predicted_from_another_plan(dearer, error):
    """Plan 3's joins cost as much a row as plan 2's, or twice as much."""
    wanted = cases(True)
    found = made_up(wanted, as_promised)
    for case in wanted:
        if case.number in (2, 3) and case.nodes == 1:
            per_row = 1e-6 * (dearer if case.number == 3 else 1.0)
            joins = [name for name in case.network.order if case.network.operators[name].is_join]
            rows = {name: 1000.0 * k for k, name in enumerate(joins, start=1)}
            for run in found["runs"][case.name]:
                run["boxes"] = {name: [n, 2 * n, 2 * n * per_row] for name, n in rows.items()}
    (note,) = [note for note in summary(found, wanted).notes if "predicted" in note]
    assert note == f"cost of plan 3's joins, predicted from plan 2: median error {error}, largest {error}"
