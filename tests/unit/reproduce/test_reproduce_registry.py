"""Running experiments: names, records, determinism, and the same work done once."""

import json
from types import SimpleNamespace

import pytest

from levelwind.errors import InputError
from levelwind.reproduce import describe, figure_4_5, figure_4_7, names, registry, run
from levelwind.reproduce.matrices import measure

KEYS = {"name", "paper", "ours", "claim", "holds", "seconds", "why", "set_up", "files"}


def few(quick, seed):
    return [{"chunk": i, "matrices": 20, "seed": seed * 10 + i} for i in range(3)]


def small(module):
    """The experiment with only sixty matrices."""
    return SimpleNamespace(
        TITLE=module.TITLE, cells=few, measure=measure, summarise=module.summarise, draw=module.draw
    )


@pytest.fixture
def two_small(monkeypatch):
    monkeypatch.setattr(
        registry, "EXPERIMENTS", {"figure_4_5": small(figure_4_5), "figure_4_7": small(figure_4_7)}
    )


def test_names_and_descriptions_agree():
    assert [entry["name"] for entry in describe()] == list(names())
    assert {"figure_4_5", "figure_6_1", "figure_6_11", "table_6_1"} <= set(names())
    assert all(entry["title"] for entry in describe())


def test_an_unknown_name_is_an_input_error_that_names_the_nearest():
    with pytest.raises(InputError) as caught:
        run(["figure_6_1", "figure_66", "tabel_6_1"])
    assert [problem.value for problem in caught.value.problems] == ["figure_66", "tabel_6_1"]
    assert caught.value.problems[0].hint == "did you mean 'figure_6_6'?"
    assert caught.value.problems[1].hint == "did you mean 'table_6_1'?"


@pytest.mark.parametrize("name", names())
def test_cells_are_plain_json_fixed_by_the_seed_and_unlike_for_another(name):
    experiment = registry.EXPERIMENTS[name]
    cells = experiment.cells(True, 3)
    assert json.loads(json.dumps(cells)) == cells
    assert cells == experiment.cells(True, 3)
    seeds = {cell["seed"] for cell in cells}
    assert seeds.isdisjoint(cell["seed"] for cell in experiment.cells(True, 4))
    assert len(experiment.cells(False, 3)) >= len(cells)


def untimed(result):
    """A result without what a clock has said."""
    return {key: value for key, value in result.items() if key not in ("plan_s", "pair_s", "route_us")}


@pytest.mark.parametrize("name", sorted(set(names()) - registry.ON_A_CLUSTER))
def test_a_cell_measured_twice_gives_the_same_json(name):
    experiment = registry.EXPERIMENTS[name]
    cell = dict(experiment.cells(True, 0)[-1])
    for key in ("runs", "points", "matrices", "queries", "pairs"):
        if key in cell:
            cell[key] = 2
    if "sites" in cell:
        cell["sites"] = 10
    if "duration_s" in cell:
        cell["duration_s"] = 15.0
    cell.pop("budget", None)
    first = experiment.measure(cell)
    assert untimed(first) == untimed(experiment.measure(cell))
    assert json.loads(json.dumps(first, allow_nan=False)) == first
    assert cell.items() <= first.items()


def test_our_planner_is_measured_if_it_gets_a_budget():
    experiment = registry.EXPERIMENTS["figure_6_1"]
    cell = {**experiment.cells(True, 0)[-1], "runs": 1, "budget": 0.01}
    result = experiment.measure(cell)
    assert result["resilient"] >= result["rod"]


def test_a_run_answers_by_the_contract_and_leaves_a_record_and_a_picture(two_small, tmp_path):
    heard = []
    answers = run(
        ["figure_4_5"],
        quick=True,
        seed=7,
        out=tmp_path / "new",
        workers=1,
        progress=lambda *tick: heard.append(tick),
    )
    (answer,) = answers
    assert set(answer) == KEYS
    assert heard == [(1, 3, "figure_4_5"), (2, 3, "figure_4_5"), (3, 3, "figure_4_5")]
    record = json.loads((tmp_path / "new" / "figure_4_5.json").read_text())
    assert answer["files"] == [str(tmp_path / "new" / f"figure_4_5.{end}") for end in ("json", "png")]
    assert record["points"] == [measure(item) for item in few(True, 7)]
    assert record["command"] == "levelwind reproduce figure_4_5 --quick --seed 7"
    assert record["seed"] == 7
    assert {"python", "numpy"} <= record["versions"].keys()
    assert {key: record[key] for key in ("holds", "ours", "why")} == {
        k: answer[k] for k in ("holds", "ours", "why")
    }
    verdict = "holds" if answer["holds"] else f"does not hold: {answer['why']}"
    assert record["statement"] == f"figure_4_5: the claim {verdict}"


def test_figures_that_share_their_cells_are_measured_once(two_small, tmp_path):
    heard = []
    run([], out=tmp_path, workers=1, progress=lambda *tick: heard.append(tick))
    assert {name for _, _, name in heard} == {"figure_4_5"}
    record = json.loads((tmp_path / "figure_4_7.json").read_text())
    assert record["measured_with"] == "figure_4_5"
    assert len(record["points"]) == 3


def test_a_name_given_twice_runs_once(two_small, tmp_path):
    assert len(run(["figure_4_7", "figure_4_7"], out=tmp_path, workers=1)) == 1
