"""A pass over the figures of seed 003: each setting once a round, kept as it is run. No Spark is started."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levelwind.errors import RunError
from levelwind.reproduce import dcape_pass
from levelwind.reproduce.dcape import FIGURES
from levelwind.reproduce.dcape_pass import (
    EFFORTS,
    FILE,
    Kept,
    code_digest,
    distinct,
    due,
    run_missing,
    run_together,
)
from levelwind.reproduce.dcape_runs import Case

FULL = EFFORTS[False]
WANTED = {name: list(figure.chosen(False).values()) for name, figure in FIGURES.items()}


class Cluster:
    """Runs everything in no time; breaks down after so many runs, in all of its life."""

    def __init__(self, breaks_after=None):
        self.ran, self.breaks_after = [], breaks_after

    def __call__(self, kept, number, cases, effort, most_s, told):
        for case in cases:
            if len(self.ran) == self.breaks_after:
                raise KeyboardInterrupt
            self.ran.append((number, case.name))
            kept.add(case, number, {"throughput": 1.0 + number, "capped": True, "seconds": 2.0})
            told()


def passed(folder, cluster, figures=WANTED, effort=FULL, code="this", **more):
    return run_together(figures, effort, Path(folder), one_round=cluster, code=code, **more)


def test_all_figures_together_run_every_setting_three_times(tmp_path):
    cluster, ticks = Cluster(), []
    found = passed(tmp_path, cluster, tick=lambda *tick: ticks.append(tick))
    assert sum(len(cases) for cases in WANTED.values()) == 83
    assert len(cluster.ran) == len(set(cluster.ran)) == 3 * 57
    assert ticks[-1][:2] == (171, 171)
    for name, cases in WANTED.items():
        assert list(found[name]["runs"]) == [case.name for case in cases]
        for runs in found[name]["runs"].values():
            assert [run["round"] for run in runs] == [0, 1, 2]
            assert [run["throughput"] for run in runs] == [1.0, 2.0, 3.0]
        assert found[name]["capped"]
        assert found[name]["seconds"] == 6.0 * len(cases)


def test_a_first_look_runs_less():
    few = {case for figure in FIGURES.values() for case in figure.chosen(True).values()}
    assert len(few) <= 35
    assert all(case.rows < 1 for case in few)


def test_rounds_go_there_and_back_and_rivals_stand_side_by_side():
    every = [case for cases in WANTED.values() for case in cases]
    rounds = [
        [case.name for case in cases]
        for cases in due(dict.fromkeys(every, range(3)), lambda case, number: False)
    ]
    assert rounds[1] == rounds[0][::-1]
    assert rounds[2] == rounds[0]
    for nodes in (2, 3, 4, 5):
        places = [rounds[0].index(f"plan 2 on {nodes}: {planner}") for planner in ("grouping", "round_robin")]
        assert abs(places[0] - places[1]) <= 2


@given(breaks=st.lists(st.integers(0, 4), max_size=4))
def test_a_pass_that_is_interrupted_goes_on_where_it_stopped(breaks, tmp_path_factory):
    folder, ran = tmp_path_factory.mktemp("pass"), []
    figures = {name: WANTED[name] for name in ("dcape_5_12", "dcape_5_15", "dcape_6_4")}
    for after in breaks:
        cluster = Cluster(after)
        with pytest.raises(KeyboardInterrupt):
            passed(folder, cluster, figures)
        ran += cluster.ran
        with (folder / FILE).open("ab") as file:
            file.write(b'{"case": "cut o')
    cluster = Cluster()
    passed(folder, cluster, figures)
    assert Counter([*ran, *cluster.ran]).most_common(1)[0][1] == 1
    assert len(ran) + len(cluster.ran) == 24


@pytest.mark.parametrize("own", [range(2, 3), range(1)])
def test_settings_have_the_rounds_that_they_say(tmp_path, own):
    often, seldom = (Case(number=2, nodes=3, planner=name) for name in ("round_robin", "grouping"))
    rounds = {often: range(3), seldom: own}
    cluster, ticks = Cluster(), []
    asked = {"effort": FULL, "directory": tmp_path, "one_round": cluster, "code": "this"}
    kept = run_missing(rounds, tick=lambda *tick: ticks.append(tick), **asked)
    assert [run["round"] for run in kept.of(often)] == [0, 1, 2]
    assert [run["round"] for run in kept.of(seldom)] == list(own)
    assert [done for done, _, _ in ticks] == [1, 2, 3, 4]
    assert ticks[-1][1:] == (4, "round 3 of 3")
    run_missing(rounds, **asked)
    assert len(cluster.ran) == 4


def test_a_figure_that_is_asked_for_later_finds_its_runs(tmp_path):
    passed(tmp_path, Cluster(), {name: WANTED[name] for name in ("dcape_5_7", "dcape_5_8")})
    cluster = Cluster()
    found = passed(tmp_path, cluster, {"dcape_5_14": WANTED["dcape_5_14"]})
    assert cluster.ran == []
    assert len(found["dcape_5_14"]["runs"]) == 6


@pytest.mark.parametrize("change", [{"code": "other"}, {"effort": EFFORTS[True]}])
def test_runs_of_other_code_or_effort_are_not_taken(tmp_path, change):
    figures = {"dcape_6_4": WANTED["dcape_6_4"]}
    passed(tmp_path, Cluster(), figures)
    cluster = Cluster()
    passed(tmp_path, cluster, figures, **change)
    assert len(cluster.ran) == 4 * change.get("effort", FULL).rounds
    again = Cluster()
    passed(tmp_path, again, figures)
    assert again.ran == []


def test_runs_of_code_that_ran_the_same_are_taken(tmp_path, monkeypatch):
    figures = {"dcape_6_4": WANTED["dcape_6_4"]}
    passed(tmp_path, Cluster(), figures, code="before")
    monkeypatch.setattr(dcape_pass, "RAN_THE_SAME", {"now": ("before",)})
    cluster = Cluster()
    found = passed(tmp_path, cluster, figures, code="now")
    assert cluster.ran == []
    assert all(len(runs) == FULL.rounds for runs in found["dcape_6_4"]["runs"].values())
    passed(tmp_path, cluster, figures, code="later")
    assert len(cluster.ran) == 4 * FULL.rounds


def test_when_time_is_over_figures_have_the_rounds_that_are_whole(tmp_path):
    figures = {"dcape_6_4": WANTED["dcape_6_4"]}
    with pytest.raises(KeyboardInterrupt):
        passed(tmp_path, Cluster(6), figures)
    cluster = Cluster()
    found = passed(tmp_path, cluster, figures, most_s=0.0)
    assert cluster.ran == []
    assert {name: [run["round"] for run in runs] for name, runs in found["dcape_6_4"]["runs"].items()} == {
        case.name: [0] for case in figures["dcape_6_4"]
    }


def test_no_whole_round_is_a_failed_run_that_says_how_to_go_on(tmp_path):
    with pytest.raises(RunError, match=f"dcape_6_4 was finished in time.*{FILE}.*goes on"):
        passed(tmp_path, Cluster(), {"dcape_6_4": WANTED["dcape_6_4"]}, most_s=0.0)


def test_a_round_that_breaks_says_why(tmp_path):
    kept = Kept(tmp_path / FILE, FULL, dcape_pass.code_digest())
    with pytest.raises(RunError, match=r"round 2 .* broke off: ValueError: .*same command goes on"):
        dcape_pass._in_a_process(kept, 1, [], FULL, None, lambda: None)


def test_sources_that_change_during_a_pass_end_it(tmp_path):
    kept = Kept(tmp_path / FILE, FULL, "what it was when the pass began")
    with pytest.raises(RunError, match="sources were changed meanwhile"):
        dcape_pass._in_a_process(kept, 1, [], FULL, None, lambda: None)


def test_on_one_node_all_patterns_are_one_setting():
    alone = {case for cases in WANTED.values() for case in cases if case.nodes == 1 and not case.copies}
    assert {case.planner for case in alone} == {"round_robin"}


def test_names_tell_settings_apart():
    every = distinct(case for cases in WANTED.values() for case in cases)
    assert len({case.name for case in every}) == len(every)


def test_the_code_that_runs_tells_runs_apart_and_nothing_else():
    assert len(code_digest()) == 16
    root = Path(dcape_pass.__file__).parents[1]
    covered = {*dcape_pass.PACKAGES, "reproduce"}
    # Everything that a run may go through is covered, but for what draws, asks and compares.
    others = {path.name for path in root.iterdir() if (path / "__init__.py").exists()} - covered
    assert others == {"bench", "cli", "diffusion", "sim", "space", "testing"} | (others & {"dashboard"})
    assert all((root / module).exists() for module in dcape_pass.MODULES)


def test_lines_are_plain_json(tmp_path):
    kept = Kept(tmp_path / FILE, FULL, "this")
    kept.add(Case(number=2, nodes=2, planner="grouping"), 1, {"throughput": 3.0})
    (line,) = (tmp_path / FILE).read_text().splitlines()
    entry = json.loads(line)
    assert entry["case"] == "plan 2 on 2: grouping"
    assert entry["by"]["effort"] == {"rounds": 3, "batches": 5, "seconds": 60.0}
    left = due(
        {Case(number=2, nodes=2, planner="grouping"): range(3)}, Kept(tmp_path / FILE, FULL, "this").has
    )
    assert [len(each) for each in left] == [1, 0, 1]
