"""Hosts of nodes: waited for, found under another name, taken over by nodes that state none."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from levelwind.errors import InputError
from levelwind.model import Cluster, Node
from levelwind.runtime.hosts import (
    LOOK_S,
    PATIENCE,
    SETTLED_S,
    addresses_of,
    bound,
    bound_again,
    no_executor,
    spelled,
    wait_for_hosts,
    without_executor,
)
from levelwind.spark.hosts import Binding
from levelwind.spark.run import SparkRun
from levelwind.spark.sticky import Sticky

ANY = (None, None, None)
NAMES = {"w1": {"10.0.0.1"}, "w2": {"10.0.0.2"}, "second": {"10.0.0.2"}}


def addresses(host):
    return frozenset(NAMES.get(host, {host} if host[0].isdigit() else ()))


class Clock:
    """Time that passes when somebody sleeps; hosts register at stated times."""

    def __init__(self, **comes):
        self.now, self.comes = 0.0, comes

    def look(self):
        return tuple(sorted(host for host, at in self.comes.items() if at <= self.now))

    def sleep(self, seconds):
        self.now += seconds

    def wait(self, stated, patience_s=30.0):
        return wait_for_hosts(
            stated,
            self.look,
            patience_s=patience_s,
            addresses=addresses,
            clock=lambda: self.now,
            sleep=self.sleep,
        )


def test_stated_hosts_are_waited_for_until_all_are_there():
    clock = Clock(w1=0.0, w2=12.0, w3=20.0)
    assert clock.wait(("w2", "w1", None)) == ("w1", "w2")
    assert clock.now == pytest.approx(12.0, abs=2 * LOOK_S)


def test_a_host_that_never_answers_is_waited_for_no_longer_than_the_patience():
    clock = Clock(w1=0.0)
    assert clock.wait(("w1", "dead"), patience_s=7.0) == ("w1",)
    assert clock.now == pytest.approx(7.0, abs=2 * LOOK_S)


def test_where_none_is_stated_as_many_as_nodes_are_enough():
    clock = Clock(a=1.0, b=4.0, c=8.0, d=9.0)
    assert clock.wait(ANY) == ("a", "b", "c")
    assert clock.now < 9.0


def test_where_there_are_fewer_hosts_than_nodes_nobody_waits_for_more_for_long():
    clock = Clock(a=6.0, b=10.0)
    assert clock.wait(ANY) == ("a", "b")
    assert clock.now == pytest.approx(10.0 + SETTLED_S, abs=2 * LOOK_S)


def test_where_no_executor_comes_the_patience_ends():
    clock = Clock()
    assert clock.wait(ANY, patience_s=3.0) == ()
    assert clock.now == pytest.approx(3.0, abs=2 * LOOK_S)


def test_an_address_is_found_under_the_name_that_the_executor_says_and_the_other_way_round():
    assert spelled("10.0.0.2", ("w1", "w2"), addresses) == "w2"
    assert spelled("second", ("10.0.0.1", "10.0.0.2"), addresses) == "10.0.0.2"
    assert spelled("w1", ("w1", "10.0.0.1"), addresses) == "w1"
    # Names that nobody knows are not the same for that.
    assert spelled("nowhere", ("elsewhere",), addresses) == "nowhere"
    assert bound(("10.0.0.2", None, "w1"), ("w1", "w2"), addresses) == ("w2", None, "w1")
    assert Clock(w1=0.0, w2=0.0).wait(("10.0.0.1", "10.0.0.2")) == ("w1", "w2")


def test_names_are_looked_up_and_unknown_ones_have_no_address(monkeypatch):
    assert addresses_of("127.0.0.2") == {"127.0.0.2"}
    assert addresses_of("." * 300) == frozenset()

    def unknown(*_):
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert addresses_of("w1") == frozenset()


def test_nodes_without_a_host_take_those_with_an_executor_in_turn():
    assert bound(ANY, ("b", "a"), addresses) == ("a", "b", "a")
    assert bound(ANY, (), addresses) == ANY


def test_executors_that_come_elsewhere_are_used_by_nodes_that_state_no_host():
    assert bound_again(ANY, ANY, ("a", "b"), addresses) == ("a", "b", "a")
    assert bound_again(ANY, ("a", "b", "c"), ("a", "c", "d"), addresses) == ("a", "d", "c")
    # Nobody is free: the node waits for its own, and the others are left alone.
    assert bound_again(ANY, ("a", "b", "c"), ("a", "c"), addresses) == ("a", "b", "c")
    # Two are gone and one has come.
    assert bound_again(ANY, ("a", "b", "c"), ("d",), addresses) == ("d", "b", "c")


def test_nodes_that_share_a_host_spread_when_more_come():
    assert bound_again((None,) * 5, ("a", "b", "a", "b", "a"), ("a", "b", "c"), addresses) == tuple("abcab")
    # Each has one of its own already; and while one is away, the others are left alone.
    assert bound_again(ANY, ("a", "b", "c"), ("a", "b", "c", "d"), addresses) == ("a", "b", "c")
    assert bound_again(ANY, ("a", "b", "a"), ("a",), addresses) == ("a", "b", "a")


def test_a_stated_host_is_kept_whoever_else_is_there_and_found_when_it_comes():
    stated = ("w1", "10.0.0.2", None)
    assert bound_again(stated, stated, ("w1", "w3"), addresses) == stated
    assert bound_again(stated, stated, ("w1", "w2"), addresses) == ("w1", "w2", None)


def test_who_has_no_executor_is_named_and_who_has_one():
    cluster = Cluster(nodes=(Node(name="n1", host="w1"), Node(name="n2", host="dead"), Node(name="n3")))
    said = without_executor(cluster, ("w1", "dead", None), ("w1", "w7"))
    assert "n2 (dead)" in said
    assert "n1" not in said
    assert "w1, w7" in said
    assert without_executor(cluster, ("w1", "w2", None), ("w1", "w2")) == ""
    assert "no executor yet" in without_executor(Cluster.equal(3), ANY, ())


@pytest.mark.parametrize(
    ("stated", "key", "value"),
    [(("dead", "gone", None), "nodes.host", "dead, gone"), (ANY, "--master", "spark://m:7077")],
)
@pytest.mark.parametrize("there", [(), ("w1",)])
def test_bad_input_says_who_was_asked_for_and_who_is_there(stated, key, value, there):
    error = no_executor(stated, there, "spark://m:7077", 30.0)
    assert isinstance(error, InputError)
    (problem,) = error.problems
    assert (problem.key, problem.value) == (key, value)
    assert PATIENCE in problem.hint
    assert ("w1" in problem.hint) == bool(there)


class Driver:
    """A driver's context as far as hosts go: who has an executor is in ``there``."""

    def __init__(self, *there, master="spark://m:7077", **settings):
        self.there, self.context = list(there), MagicMock(master=master)
        self.context.getConf().get.side_effect = lambda key, default: settings.get(key, default)
        self.spark = self.context._jsc.sc()
        self.spark.conf().getTimeAsMs.return_value = 0
        self.spark.taskScheduler().hasExecutorsAliveOnHost.side_effect = lambda host: host in self.there
        self.spark.statusStore().executorList.side_effect = lambda _: self._listed(
            [SimpleNamespace(id=lambda: "driver", hostPort=lambda: "m:1")]
            + [SimpleNamespace(id=lambda h=h: h, hostPort=lambda h=h: f"{h}:1") for h in self.there]
        )
        self.spark.schedulerBackend().getExecutorIds.side_effect = lambda: self._listed(self.there)

    @staticmethod
    def _listed(items):
        return SimpleNamespace(size=lambda: len(items), apply=items.__getitem__)

    def bound(self, cluster):
        """A run that has just begun to read on these executors."""
        binding = Binding(self.context, cluster)
        binding.wait()
        run = object.__new__(SparkRun)
        run.options = SimpleNamespace(cluster=cluster)
        run._binding, run.executor = binding, Sticky(self.context, binding.hosts)
        return run


def on_hosts(*hosts):
    return Cluster(nodes=tuple(Node(name=f"n{k}", host=host) for k, host in enumerate(hosts, start=1)))


def test_a_node_whose_host_never_had_an_executor_is_missing_until_it_has_one():
    driver = Driver("127.0.0.2")
    run = driver.bound(on_hosts("127.0.0.2", "127.0.0.9", None))
    assert "n2 (127.0.0.9)" in run._binding.notes[0]
    run._binding.refuse_nowhere()
    assert run.missing_nodes() == run.missing_nodes() == {"n2"}
    driver.there.append("127.0.0.9")
    assert run.missing_nodes() == frozenset()
    driver.there.remove("127.0.0.2")
    assert run.missing_nodes() == {"n1"}


def test_a_cluster_file_none_of_whose_hosts_has_an_executor_is_refused():
    run = Driver("127.0.0.2").bound(on_hosts("127.0.0.8", "127.0.0.9"))
    with pytest.raises(InputError) as caught:
        run._binding.refuse_nowhere()
    assert "127.0.0.2" in caught.value.problems[0].hint
    with pytest.raises(InputError):
        Driver().bound(Cluster.equal(2))._binding.refuse_nowhere()


def test_executors_that_come_with_the_work_are_asked_for_and_used_when_they_come():
    driver = Driver(**{"spark.dynamicAllocation.enabled": "true"})
    run = driver.bound(Cluster.equal(2))
    driver.spark.requestExecutors.assert_called_once_with(2)
    run._binding.refuse_nowhere()
    assert run.missing_nodes() == frozenset()
    driver.there.append("127.0.0.2")
    assert run.missing_nodes() == frozenset()
    assert run.executor.hosts == ("127.0.0.2", "127.0.0.2")
    driver.there.append("127.0.0.3")
    assert run.missing_nodes() == frozenset()
    assert run.executor.hosts == ("127.0.0.2", "127.0.0.3")
    driver.there[0] = "127.0.0.4"
    assert run.missing_nodes() == frozenset()
    assert run.executor.hosts == ("127.0.0.4", "127.0.0.3")


@pytest.mark.parametrize("cluster", [Cluster.equal(2), on_hosts("127.0.0.8", "127.0.0.9")])
def test_embedded_nobody_is_waited_for_or_missing(cluster):
    run = Driver(master="local[2]").bound(cluster)
    run._binding.refuse_nowhere()
    assert run._binding.notes == []
    assert run.missing_nodes() == frozenset()
