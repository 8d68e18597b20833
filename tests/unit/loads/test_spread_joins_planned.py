"""Planners see a spread join as it will run: the method it will use, its copies and its partial groups."""

from __future__ import annotations

import numpy as np
import pytest

import levelwind as lw
from levelwind.control.allotment import logical_loads
from levelwind.diffusion import laws
from levelwind.diffusion.auto import advise
from levelwind.diffusion.coordinated import slot_length_us
from levelwind.diffusion.join import JoinShape, Measured
from levelwind.loads.planes import planes
from levelwind.loads.problem import make_problem
from levelwind.model import Cluster, JoinPart, Node
from levelwind.model.operator import Diffusion
from levelwind.placement.measures import node_loads

RATE, WINDOW_S, INSTANCES = 20.0, 2.0, 4
SELECTIVITY = 0.0004
WORK = 3 * RATE * (RATE * WINDOW_S) ** 2 * 20e-6
SHAPE = JoinShape(windows_us=(2_000_000,) * 3, instances=INSTANCES)
MEASURED = Measured.of([RATE] * 3, SELECTIVITY**0.5)
HORIZON_S = 20.0


def network(method="auto", *, rate=RATE, size=None, segment=None, streams=None, before=(), **more):
    told = {"method": method, "instances": INSTANCES} | ({"segment": segment} if segment else {})
    own = {"rate": rate} | ({"bytes": size} if size else {})
    join = {
        "name": "m",
        "kind": "multijoin",
        "inputs": streams or {"a": "p", "b": "q", "c": "r"},
        "windows": dict.fromkeys("abc", f"{WINDOW_S:g}s"),
        "cost": "20us",
        "selectivity": SELECTIVITY,
        "diffuse": told,
    }
    return lw.parse({"streams": {name: own for name in "pqr"}, "operators": [*before, join | more]})


def problem_of(*told, cluster=None, **more):
    return make_problem(network(*told, **more), cluster or Cluster.equal(INSTANCES))


def loads_by_hop(problem):
    """Summed over the instances: of aligned parts under None, of each hop under its number."""
    found = {}
    for j, operator in enumerate(problem.physical.operators):
        spec = operator.logical.spec
        if isinstance(spec, JoinPart):
            found[spec.hop] = found.get(spec.hop, 0.0) + problem.mean_load[j]
    return found


def rates(problem, kind):
    """Rows per second on each (operator, route) of this kind of operator."""
    return {
        (name, route): float(problem.rates.of(problem.linear.rates[name, route]).mean())
        for name, operator in problem.network.operators.items()
        if isinstance(operator.spec, kind)
        for route in operator.routes
    }


class TestAutoIsPlannedAsItWillRun:
    def test_the_load_is_on_the_method_that_it_would_choose(self):
        found = loads_by_hop(problem_of())
        assert advise(SHAPE, MEASURED, horizon_s=HORIZON_S).method == "atr"
        assert found[None] == pytest.approx(WORK, rel=0.01)
        assert found[0] + found[1] < 0.01 * WORK
        assert sum(found.values()) == pytest.approx(WORK)

    def test_at_other_rates_on_the_other(self):
        few = 0.5
        chosen = advise(
            SHAPE, Measured.of([few] * 3, SELECTIVITY**0.5), horizon_s=HORIZON_S, segment_s=0.01
        ).method
        assert chosen == "ctr"
        found = loads_by_hop(problem_of(rate=few, segment="10ms"))
        assert found[None] < 0.01 * (found[0] + found[1])

    def test_rates_given_from_outside_count(self):
        told = network(rate=RATE, segment="10ms")
        given = make_problem(told, Cluster.equal(4), rates=dict.fromkeys("pqr", 0.5))
        assert loads_by_hop(given)[None] < 0.01 * sum(loads_by_hop(given).values())

    def test_parts_that_are_not_in_use_stand_apart_all_the_same(self):
        plan = lw.plan(network(), 4, "llf")
        for hop in ("", ">0", ">1"):
            assert len({plan.placement[f"m[{i}{hop}]"] for i in range(INSTANCES)}) == INSTANCES

    def test_the_plan_says_so(self):
        (note,) = lw.plan(network(), 4, "llf").notes
        assert note.startswith("m is planned for aligned routing")
        assert lw.plan(network("atr"), 4, "llf").notes == ()


class TestTraffic:
    def test_aligned_routing_sends_the_copies_of_the_law(self):
        sent = rates(problem_of("atr", segment="4s"), Diffusion)
        # The master's rows once, the others' once more for (2 + 2)/4.
        assert sum(sent.values()) == pytest.approx(RATE * (1 + 2 + 2))
        assert sent["m[in]", "0:b"] == pytest.approx(sent["m[in]", "3:b"]) == pytest.approx(2 * RATE / 4)

    def test_auto_sends_nothing_the_other_way(self):
        sent = rates(problem_of(segment="4s"), Diffusion)
        assert {route for (_, route), rate in sent.items() if rate} == {
            f"{i}:{alias}" for i in range(INSTANCES) for alias in "abc"
        }

    def test_coordinated_routing_sends_copies_and_partial_groups_of_the_law(self):
        problem = problem_of("ctr")
        slot_us = slot_length_us(SHAPE, MEASURED, HORIZON_S)
        paths, stored, _ = laws.rehearse(SHAPE, MEASURED, slot_us)
        traffic = laws.coordinated_extra(MEASURED, MEASURED.partners(SHAPE.windows_us), paths, stored)
        sent = sum(rates(problem, Diffusion).values())
        assert sent == pytest.approx(3 * RATE + traffic.copies)
        partial = {key: rate for key, rate in rates(problem, JoinPart).items() if key[1] is not None}
        assert sum(partial.values()) == pytest.approx(traffic.entering[:, 1].sum())
        away = sum(rate for (name, route), rate in partial.items() if name != f"m[{route}]")
        print(f"\npartial groups to other instances {away:.1f}/s, by the law {traffic.partial:.1f}/s")
        assert away == pytest.approx(traffic.partial)

    def test_hops_share_the_work_as_they_are_asked(self):
        found = loads_by_hop(problem_of("ctr"))
        paths, stored, _ = laws.rehearse(SHAPE, MEASURED, slot_length_us(SHAPE, MEASURED, HORIZON_S))
        traffic = laws.coordinated_extra(MEASURED, MEASURED.partners(SHAPE.windows_us), paths, stored)
        asked = traffic.entering.sum(axis=0)
        assert [found[0], found[1]] == pytest.approx((WORK * asked / asked.sum()).tolist())

    @pytest.mark.parametrize("method", ["atr", "ctr", "auto"])
    def test_as_many_groups_come_out_as_of_the_plain_join(self, method):
        problem = problem_of(method)
        out = float(problem.rates.of(problem.linear.rates["m", None]).mean())
        assert out == pytest.approx(3 * RATE * (RATE * WINDOW_S) ** 2 * SELECTIVITY)


class TestWhatSendingCosts:
    def apart(self, problem):
        """Parts each on a node of their own, what sends and what fuses on the last."""
        last = len(problem.cluster.nodes) - 1
        specs = [operator.logical.spec for operator in problem.physical.operators]
        return np.array([spec.instance if isinstance(spec, JoinPart) else last for spec in specs])

    def cluster(self, **more):
        latency = tuple(tuple(0.0 if i == k else 10.0 for k in range(5)) for i in range(5))
        nodes = tuple(Node(name=f"n{i}", **more) for i in range(5))
        return Cluster(nodes=nodes, latency_ms=latency)

    def test_copies_take_bandwidth(self):
        cluster = self.cluster(bandwidth_bytes_per_s=1e6)
        problem = problem_of("atr", size=80, segment="4s", cluster=cluster)
        found = planes(problem, self.apart(problem)).bandwidth
        # At the stated rates; all of it acts on the variable of the join.
        assert problem.variables == ("m",)
        point = problem.variable_rates.mean(axis=1) * problem.total_load / problem.cpu.sum()
        assert (found @ point)[-1] * 1e6 == pytest.approx(RATE * 5 * 80)
        assert (found @ point)[0] * 1e6 == pytest.approx(RATE * 5 * 80 / INSTANCES)

    def test_a_stream_that_is_dear_to_send_does_not_keep_the_join_together(self):
        cluster = self.cluster(bandwidth_bytes_per_s=1e6)
        for method in ("atr", "ctr", "auto"):
            plan = lw.plan(network(method, size=80, transfer_cost="10us"), cluster, "rod")
            assert plan.measures.max_load < 1.1 * WORK / INSTANCES

    def test_queries_are_allotted_by_the_load_of_the_whole_join(self):
        loads = logical_loads(network(), Cluster.equal(4))
        assert loads == {"m": pytest.approx(WORK, rel=1e-3)}

    def test_copies_count_in_network_usage(self):
        problem = problem_of("atr", size=80, segment="4s", cluster=self.cluster())
        placement = problem.placement(self.apart(problem))
        usage = lw.measure(network("atr", size=80, segment="4s"), self.cluster(), placement).network_usage
        groups = 3 * RATE * (RATE * WINDOW_S) ** 2 * SELECTIVITY
        # Groups state no size, and count as rows.
        assert usage == pytest.approx((RATE * 5 * 80 + groups) * 0.010)

    def test_copies_cost_the_transfer_of_their_input_or_else_of_the_join(self):
        sized = {
            "name": "s",
            "kind": "model",
            "input": "q",
            "transfer_cost": "1ms",
            "bytes": 40,
            "cost": "1us",
        }
        sized["selectivity"] = 1
        problem = problem_of(
            "atr",
            segment="4s",
            size=80,
            before=[sized],
            streams={"a": "p", "b": "s", "c": "r"},
            transfer_cost="2ms",
        )
        sender = problem.network.operators["m[in]"]
        assert [sender.transfer_cost_of(f"1:{alias}") for alias in "abc"] == [0.002, 0.001, 0.002]
        assert [sender.bytes_of(f"1:{alias}") for alias in "abc"] == [80, 40, 80]

    def test_a_partial_group_is_as_long_as_its_members(self):
        problem = problem_of("ctr", bytes=300)
        operators = problem.network.operators
        assert operators["m[0]"].bytes == pytest.approx(200)
        assert operators["m[0>1]"].bytes == pytest.approx(300)

    def test_loads_at_the_stated_rates_count_it(self):
        problem = problem_of("atr", segment="4s", transfer_cost="2ms", cluster=self.cluster())
        loads = node_loads(problem, self.apart(problem))
        groups = 3 * RATE * (RATE * WINDOW_S) ** 2 * SELECTIVITY
        sent = (RATE * 5 + groups) / INSTANCES
        assert loads[0] == pytest.approx(WORK / INSTANCES + 0.001 * sent)
