"""Scenario files: what they mean, and everything that can be wrong with one, told at once."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import jsonschema
import pytest

from levelwind.errors import InputError, input_error
from levelwind.sim.scenario import Chains
from levelwind.sim.scenario_file import load_scenario, parse_scenario
from levelwind.sim.scenario_keys import scenario_schema
from levelwind.sim.workloads import OnOff, Periodic, Poisson, Recorded

WHOLE = """
generate: {chains: 20, length: 10, cost: 1ms, selectivity: [0.8, 1.2]}
nodes: 20
workload: {kind: periodic, ratio: 3, period: 8s, phases: random}
load: 0.9
start: connected
planner: {name: resilient, budget: 2}
statistics: {window: 5s, samples: 20}
period: 2s
migration: 100ms
warmup: 30s
duration: 2m
clean: true
events: [{at: 10s, lost: n3}, {at: 20s, joined: {name: n21, cpu: 0.5}}]
"""


def problems(source, base=None):
    with pytest.raises(InputError) as caught:
        parse_scenario(source, base=base)
    return {problem.key: problem for problem in caught.value.problems}


def test_every_key_is_read():
    scenario = parse_scenario(WHOLE).scenario
    assert scenario.network == Chains(chains=20, length=10, cost_s=(0.001, 0.001), selectivity=(0.8, 1.2))
    assert len(scenario.cluster.nodes) == 20
    assert scenario.workload == Periodic(ratio=3.0, period_s=8.0, phases="random")
    assert (scenario.load, scenario.start, scenario.clean) == (0.9, "connected", True)
    assert (scenario.planner.name, scenario.planner.options) == ("resilient", {"budget": 2})
    assert (scenario.window_s, scenario.samples, scenario.sample_s) == (5.0, 20, 0.25)
    assert (scenario.period_s, scenario.migration_s) == (2.0, 0.1)
    assert (scenario.warmup_s, scenario.duration_s) == (30.0, 120.0)
    assert [(c.at_s, c.lost, c.joined and c.joined.cpu) for c in scenario.changes] == [
        (10.0, "n3", None),
        (20.0, None, 0.5),
    ]


def test_defaults_are_those_of_the_contract():
    scenario = parse_scenario("{generate: {chains: 2, length: 2}, nodes: 2, load: 0.5}").scenario
    assert scenario.workload == Poisson()
    assert (scenario.start, scenario.planner, scenario.policy, scenario.clean) == (
        "random",
        None,
        None,
        False,
    )
    assert (scenario.window_s, scenario.samples, scenario.period_s) == (10.0, 10, 1.0)
    assert (scenario.migration_s, scenario.warmup_s, scenario.duration_s) == (0.2, 20.0, 120.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{kind: onoff, on: 2s, off: 3s}", OnOff(on_s=2.0, off_s=3.0)),
        ("{kind: onoff}", OnOff()),
        ("{kind: periodic}", Periodic()),
        ("{kind: poisson}", Poisson()),
    ],
)
def test_workloads(text, expected):
    assert parse_scenario(f"generate: {{chains: 1, length: 1}}\nnodes: 1\nload: 1\nworkload: {text}").scenario.workload == expected  # fmt: skip # noqa: E501


def test_a_trace_is_read_from_the_scenarios_directory(tmp_path):
    (tmp_path / "rates.csv").write_text("second,web,mail\n0,1,4\n1,3,4\n")
    head = "generate: {chains: 2, length: 1}\nnodes: 1\nload: 0.5\n"
    file = tmp_path / "s.yaml"
    file.write_text(head + "workload: {kind: trace, path: rates.csv}\n")
    assert load_scenario(file).scenario.workload == Recorded(columns=((4.0, 4.0),))
    file.write_text(head + "workload: {kind: trace, path: rates.csv, columns: [web, mail], step: 1m}\n")
    assert load_scenario(file).scenario.workload == Recorded(columns=((1.0, 3.0), (4.0, 4.0)), step_s=60.0)
    file.write_text(head + "workload: {kind: trace, path: rates.csv, columns: web, values: times}\n")
    assert load_scenario(file).scenario.workload.times
    file.write_text(head + "workload: {kind: trace, path: rates.csv, columns: post}\n")
    with pytest.raises(InputError, match=r"must have the column \(got 'post'\)\. Hint: its columns"):
        load_scenario(file)


def test_all_problems_come_together():
    found = problems(
        """
generate: {chains: 0, length: 2, cost: 1, selectivity: [1.2, 0.8], size: 3}
nodes: 2
cluster: c.yaml
workload: {kind: onoff, ratio: 4, on: 5}
load: 0
planer: llf
statistics: {window: 30s, samples: 0}
migration: -1s
clean: yes please
start: conected
"""
    )
    assert {key: problem.line for key, problem in found.items()} == {
        "generate.chains": 2,
        "generate.selectivity": 2,
        "generate.size": 2,
        "nodes": 3,
        "workload.ratio": 5,
        "workload.on": 5,
        "load": 6,
        "planer": 7,
        "statistics.samples": 8,
        "migration": 9,
        "clean": 10,
        "start": 11,
        "warmup": 2,  # it is not written down: the window is longer than its default
    }
    assert found["planer"].hint == "did you mean 'planner'?"
    assert found["workload.ratio"].hint == "'ratio' belongs to a workload of kind periodic"
    assert found["generate.selectivity"].rule == "the least must not be above the largest"
    assert found["start"].hint == "did you mean 'connected'?"


def test_a_workload_without_a_kind_that_is_known():
    head = "generate: {chains: 1, length: 1}\nnodes: 1\nload: 1\n"
    assert problems(head + "workload: {ratio: 4}")["workload.kind"].rule == "a workload must have 'kind'"
    assert problems(head + "workload: {kind: periodc}")["workload.kind"].hint == "did you mean 'periodic'?"
    assert problems(head + "workload: often")["workload"].rule == "a workload must be a mapping"


def test_planner_and_its_options_are_checked_when_the_file_is_read():
    head = "generate: {chains: 1, length: 1}\nnodes: 1\nload: 1\n"
    assert problems(head + "planner: corelation")["planner"].hint == "did you mean 'correlation'?"
    found = problems(head + "planner: {name: resilient, budgit: 1}")
    assert found["planner.budgit"].hint == "did you mean 'budget'?"
    assert "name" in problems(head + "planner: {budget: 1}")["planner"].rule


def test_the_policy_is_checked_when_the_file_is_read(monkeypatch):
    registry = ModuleType("levelwind.balance.registry")

    def make_policy(name, options):
        if name != "calm":
            raise input_error("must name a policy", key="policy", value=name, hint="did you mean 'calm'?")
        return object()

    registry.make_policy = make_policy
    monkeypatch.setitem(sys.modules, "levelwind.balance.registry", registry)
    head = "generate: {chains: 1, length: 1}\nnodes: 1\nload: 1\n"
    assert parse_scenario(head + "policy: calm").scenario.policy.name == "calm"
    assert problems(head + "policy: clam")["policy"].hint == "did you mean 'calm'?"


def test_files_that_a_scenario_names(tmp_path):
    (tmp_path / "net.yaml").write_text(
        "streams: {I: {}}\noperators:\n  - {name: a, kind: model, input: I, cost: 1ms, selectivity: 1}\n"
        "  - {name: b, kind: model, input: J, cost: 1ms, selectivity: 1}\n"
    )
    (tmp_path / "cluster.yaml").write_text("nodes: [{name: x, cpu: -1}]\n")
    file = tmp_path / "s.yaml"
    file.write_text("network: net.yaml\ncluster: cluster.yaml\nstart: start.json\nload: 0.5\n")
    (tmp_path / "start.json").write_text('{"a": "x"}')
    with pytest.raises(InputError) as caught:
        load_scenario(file)
    files = {problem.file.rsplit("/", 1)[-1]: problem for problem in caught.value.problems}
    assert set(files) == {"net.yaml", "cluster.yaml"}
    assert (files["net.yaml"].line, files["cluster.yaml"].line) == (4, 1)
    file.write_text("network: nat.yaml\nnodes: 1\nload: 0.5\n")
    with pytest.raises(InputError) as caught:
        load_scenario(file)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.key) == (str(file), 1, "network")


def test_a_start_that_does_not_fit_names_its_file(tmp_path):
    (tmp_path / "start.json").write_text('{"c1o1": "n1", "c9o9": "n1"}')
    found = problems("generate: {chains: 1, length: 2}\nnodes: 1\nload: 1\nstart: start.json", base=tmp_path)
    assert found["c9o9"].file.endswith("start.json")
    assert found["c1o2"].rule == "every operator must be placed"


def test_rates_must_be_known_without_a_load_level(tmp_path):
    assert problems("generate: {chains: 1, length: 1}\nnodes: 1")["load"].value == "generated chains"
    (tmp_path / "net.yaml").write_text(
        "streams: {I: {}}\noperators: [{name: a, kind: model, input: I, cost: 1ms, selectivity: 1}]\n"
    )
    assert problems("network: net.yaml\nnodes: 1", base=tmp_path)["load"].value == "no rate for I"


def test_times_must_fit_together():
    head = "generate: {chains: 1, length: 1}\nnodes: 1\nload: 1\n"
    assert "statistics window" in problems(head + "warmup: 5s")["warmup"].rule
    assert "one sample" in problems(head + "duration: 500ms")["duration"].rule


def test_events_must_be_possible():
    head = "generate: {chains: 1, length: 1}\nnodes: 2\nload: 1\n"
    found = problems(
        head
        + "events: [{at: 9s, lost: n1}, {at: 5s, lost: n1}, {at: 6s, joined: {name: n2}}, {at: 1s, lost: x}]"
    )
    assert set(found) == {"events[0].lost", "events[2].joined", "events[3].lost"}
    assert "exactly one of lost, joined" in problems(head + "events: [{at: 1s}]")["events[0]"].rule


@pytest.mark.parametrize(("silent_after", "period"), [("500ms", "1s"), ("100ms", "100ms"), ("1900ms", "1s")])
def test_silence_must_be_longer_than_the_time_between_heartbeats(silent_after, period):
    head = "generate: {chains: 1, length: 1}\nnodes: 2\nload: 1\n"
    found = problems(head + f"silent_after: {silent_after}\nperiod: {period}")
    assert set(found) == {"silent_after"}
    assert "at least twice the period" in found["silent_after"].rule
    assert "or longer" in found["silent_after"].hint


def test_silence_of_two_periods_is_enough():
    head = "generate: {chains: 1, length: 1}\nnodes: 2\nload: 1\n"
    for times in ("silent_after: 2s", "silent_after: 600ms\nperiod: 300ms"):
        assert parse_scenario(head + times).scenario.silent_after_s in (2.0, 0.6)


RACKS = """
nodes:
  - {name: a, properties: {rack: x}}
  - {name: b, properties: {rack: 2}}
"""


def test_a_node_that_joins_keeps_its_properties_and_must_have_a_group(tmp_path):
    (tmp_path / "cluster.yaml").write_text(RACKS)
    head = "generate: {chains: 1, length: 1}\ncluster: cluster.yaml\nload: 0.5\ngroups: rack\n"
    made = "{at: 1s, joined: {name: c, properties: {rack: x, disk: ssd}}}"
    made += ", {at: 2s, joined: {name: d, properties: {rack: 2}}}"
    back = "{at: 3s, lost: a}, {at: 4s, joined: {name: a}}, {at: 5s, lost: c}, {at: 6s, joined: {name: c}}"
    scenario = parse_scenario(head + f"events: [{made}, {back}]", base=tmp_path).scenario
    assert scenario.changes[0].joined.properties == {"rack": "x", "disk": "ssd"}
    bad = "{at: 1s, joined: {name: c}}, {at: 2s, joined: {name: d, properties: {rack: y}}}"
    back = "{at: 3s, lost: a}, {at: 4s, joined: {name: a, properties: {rack: 2}}}"
    found = problems(head + f"events: [{bad}, {back}]", base=tmp_path)
    assert set(found) == {
        "events[0].joined.properties",
        "events[1].joined.properties.rack",
        "events[3].joined.properties.rack",
    }
    assert "must state 'rack'" in found["events[0].joined.properties"].rule
    assert found["events[1].joined.properties.rack"].hint == "one of 2, x"
    assert found["events[3].joined.properties.rack"].hint == "one of x"


NETWORK = """
streams: {I: {rate: 1}}
operators:
  - {name: a, kind: model, input: I, cost: 1ms, selectivity: 1}
  - {name: b, kind: model, input: I, cost: 1ms, selectivity: 1}
outputs: {x: {input: a}, y: {input: b}}
"""


def test_queries_come_and_go(tmp_path):
    (tmp_path / "net.yaml").write_text(NETWORK)
    head = "network: net.yaml\nnodes: 2\n"
    text = "reuse: true\nevents: [{at: 5s, added: y}, {at: 9s, removed: [x]}, {at: 12s, added: [x]}]"
    scenario = parse_scenario(head + text, base=tmp_path).scenario
    assert scenario.reuse
    assert [(c.added, c.removed) for c in scenario.changes] == [(("y",), ()), ((), ("x",)), (("x",), ())]
    found = problems(head + "events: [{at: 5s, added: z}, {at: 9s, removed: yy}]", base=tmp_path)
    assert found["events[0].added"].rule == "must be an output or a query of the network"
    assert found["events[1].removed"].hint == "did you mean 'y'?"
    found = problems(
        head + "events: [{at: 9s, added: y}, {at: 5s, removed: y}, {at: 7s, removed: y}]", base=tmp_path
    )
    assert set(found) == {"events[2].removed"}
    found = problems(head + "events: [{at: 5s, removed: x}, {at: 7s, removed: y}]", base=tmp_path)
    assert found["events[1].removed"].rule == "a run must keep an output"
    found = problems(head + "events: [{at: 5s, added: [x, y]}]", base=tmp_path)
    assert found["events[0].added"].rule == "a run must keep an output"
    found = problems("generate: {chains: 1, length: 1}\nnodes: 1\nload: 1\nevents: [{at: 1s, added: c1}]")
    assert "output or a query" in found["events[0].added"].rule


def test_the_schema_for_editors_agrees():
    import yaml

    schema = json.loads(json.dumps(scenario_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(yaml.safe_load(WHOLE))
    assert not validator.is_valid(yaml.safe_load(WHOLE.replace("period: 2s", "perod: 2s")))
    assert not validator.is_valid(yaml.safe_load(WHOLE.replace("ratio: 3", "on: 3s")))
