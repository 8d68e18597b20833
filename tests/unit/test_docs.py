"""What the documents show is what happens: their files load, their commands run, their output is ours."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from levelwind.balance import make_policy, policy_names
from levelwind.balance.costs import cost_model_names
from levelwind.control import Manager
from levelwind.control.events import StatisticsReported
from levelwind.frontend import parse_network
from levelwind.model import Cluster
from levelwind.runtime.managing import warm_up
from levelwind.testing import check_policy

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()
TUTORIAL = (ROOT / "docs/tutorial/first-plan.md").read_text()


def run(command, folder):
    program = [sys.executable, "-m", "levelwind.cli.main", *shlex.split(command, comments=True)[1:]]
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)


def block(text, language):
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found, f"no {language} block"
    return found[1]


@pytest.mark.parametrize("text", [README, TUTORIAL], ids=["readme", "tutorial"])
def test_commands_run_on_the_file_shown(text, tmp_path):
    (tmp_path / "net.yaml").write_text(block(text, "yaml"))
    commands = re.findall(r"^(?:\$ )?(levelwind (?:check|plan|explain|size) .*)$", text, re.MULTILINE)
    commands += re.findall(r"`(levelwind (?:explain|size|check) net.yaml[^`]*)`", text)
    assert len(commands) >= 3
    for command in commands:
        answer = run(command, tmp_path)
        assert answer.returncode == 0, f"{command}\n{answer.stderr}"


def test_the_readme_program_runs(tmp_path):
    (tmp_path / "net.yaml").write_text(block(README, "yaml"))
    answer = subprocess.run(
        [sys.executable, "-c", block(README, "python")],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "web" in answer.stdout
    assert "busy" in answer.stdout


def test_the_readme_table_is_what_compare_prints():
    shown = re.search(r"prints:\n\n```\n(.*?)```", README, re.DOTALL)[1].rstrip().splitlines()
    planners = [line.split()[0] for line in shown[3:]]
    # A search in single precision may end elsewhere on another processor: its figures are not compared.
    compared = [name for name in planners if name != "resilient"]
    answer = run(
        f"levelwind compare examples/traffic.yaml --nodes 5 --format text --planners {','.join(compared)}",
        ROOT,
    )
    printed = {line.split()[0]: line.split() for line in answer.stdout.splitlines() if line.strip()}
    for line in shown[3:]:
        if line.split()[0] in compared:
            assert printed[line.split()[0]] == line.split()


@pytest.mark.parametrize(
    "module",
    [
        "planning",
        "loads.feasible",
        "balance.choice",
        "testing.planner_checks",
        "sim.arrivals",
        "sim.scenario_file",
    ],
)
def test_examples_in_docstrings(module):
    outcome = doctest.testmod(import_module(f"levelwind.{module}"))
    assert outcome.attempted
    assert not outcome.failed


def test_the_scenario_program_runs():
    text = (ROOT / "docs/how-to/simulate.md").read_text()
    answer = subprocess.run(
        [sys.executable, "-c", block(text, "python")], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert answer.stdout.endswith("(10, 60)\n")


@pytest.mark.usefixtures("how_to_package")
def test_the_cost_model_and_the_policy_of_the_how_to_work():
    assert "licences" in cost_model_names()
    assert "one_move" in policy_names()
    for check in check_policy("one_move"):
        check.run()
    licensed = {"properties": {"licence": "x"}}
    operators = [{"name": f"o{k}", "kind": "model", "load": {"I": 1}, **licensed} for k in range(4)]
    network = parse_network({"streams": {"I": {"rate": 0.1}}, "operators": operators}).network
    cluster, names = Cluster.equal(2), tuple(network.operators)
    for name in ("balance", "degradation", "one_move"):
        policy = make_policy(name, {"cost": "licences:most=2"})
        warm_up(policy, network, cluster)
        manager = Manager(
            network, cluster, dict.fromkeys(names, "n1"), policy=policy, rng=np.random.default_rng(0)
        )
        told = StatisticsReported(at_s=1.0, operators=names, series=np.full((4, 3), 0.1))
        assert manager.handle(told), name


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
