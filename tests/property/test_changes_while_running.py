"""Moves by a manager, and queries that come and go, leave the rows of all other outputs as they are."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sameness import NODES, OPERATORS, SINKS, network, streams

from levelwind.balance.protocol import Proposal
from levelwind.frontend.addition import extended
from levelwind.model import Cluster
from levelwind.rewrite.removal import without
from levelwind.runtime.changes import as_kept
from levelwind.runtime.commits import Version
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.managing import Balancing, Steward
from levelwind.runtime.memory import forget
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import Discard, ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

# What comes and goes: it shares groupings with what stays, or makes ports carry ranks that had none.
GUESTS = {
    "twin": {"kind": "aggregate", "input": "both", "by": "k", "window": {"size": "4s", "slide": "1s"},
             "compute": {"most": "max(v)"}},
    "early": {"kind": "aggregate", "input": "a", "by": "k", "window": {"rows": 3, "slide": 1},
              "compute": {"f": "first(v)"}},
    "behind": {"kind": "aggregate", "input": "pair", "window": {"rows": 2, "slide": 2},
               "compute": {"l": "last(`some.v`)"}},
}  # fmt: skip
# These never go: theirs are the rows that are compared.
HOSTS = ("slide", "nest", "few", "tail")
PASSING = tuple(name for name in SINKS if name not in HOSTS)


@dataclass(frozen=True)
class Restless:
    """A policy that moves anything anywhere."""

    def propose(self, situation, *, rng):
        chosen = rng.choice(len(situation.node), size=2, replace=False)
        return tuple(
            Proposal(operator=int(j), to=int(rng.integers(len(situation.cpu))), reason="restless", group=n)
            for n, j in enumerate(chosen)
        )


class World:
    """A run whose network changes, with a manager that is asked after every step."""

    def __init__(self, folder, hops, seed):
        self.folder = Path(folder)
        self.network = network(hops)
        layout = Layout(self.network)
        begin = {box.name: NODES[number % len(NODES)] for number, box in enumerate(layout.boxes)}
        cluster = Cluster.equal(len(NODES))
        self.steward = Steward(
            self.network, cluster, begin, Balancing(policy=Restless(), period_s=0.0, samples=1), seed=seed
        )
        self.sinks = {name: ParquetSink(str(self.folder / name)) for name in HOSTS}
        self.begin(layout, begin)

    def begin(self, layout, placement):
        forget()  # a new process remembers nothing
        self.coordinator = Coordinator(
            layout, NODES, placement, directory=str(self.folder / "checkpoint"), executor=InProcess(),
            sinks=self.sinks_of(layout.network),
        )  # fmt: skip
        self.coordinator.recover()

    def sinks_of(self, network):
        return {name: self.sinks.get(name, Discard()) for name in (*network.outputs, DEAD_LETTERS)}

    def change(self, name):
        """Add or remove what has that name."""
        if name in self.network.outputs:
            after = without(self.network, [name])
        elif name in GUESTS:
            operators = [{"name": name, **GUESTS[name]}]
            if GUESTS[name]["input"] not in (*self.network.streams, *self.network.operators):
                return
            after = extended(self.network, {"operators": operators, "outputs": {name: {"input": name}}})
        else:
            own = [told for told in OPERATORS if told["name"] == name and name not in self.network.operators]
            after = extended(self.network, {"operators": own, "outputs": {name: {"input": name}}})
        after = as_kept(after)
        placement = self.steward.change(after, self.coordinator.program.placement)
        self.coordinator.change(
            Layout(after), placement, sinks=self.sinks_of(after), fingerprints={},
            version=Version(network=name, origin=""),
        )  # fmt: skip
        self.network = after

    def step(self, number, rows, changes, dies):
        for name in changes:
            self.change(name)
        self.coordinator.move(self.steward.moves())
        self.steward.saw(self.coordinator.step(rows, batch=number))
        if dies:
            anywhere = dict.fromkeys(self.coordinator.program.placement, NODES[0])
            self.begin(Layout(as_kept(self.network)), anywhere)

    def rows(self):
        self.coordinator.close()
        found = {}
        for name in HOSTS:
            files = sorted((self.folder / name).glob("*.parquet"))
            frame = pl.concat([pl.read_parquet(file) for file in files]) if files else None
            found[name] = None if frame is None else sorted(frame.rows(), key=repr)
        return found


def outcome(hops, batches, changes, deaths, seed):
    folder = tempfile.mkdtemp()
    try:
        world = World(folder, hops, seed)
        for number, batch in enumerate(batches):
            world.step(number, batch, changes[number], deaths[number])
        return world.rows()
    finally:
        shutil.rmtree(folder)


@settings(max_examples=15)
@given(data=st.data(), batches=streams(), seed=st.integers(0, 99))
def test_rows_of_what_stays_are_the_same(data, batches, seed):
    nothing = [()] * len(batches)
    alone = outcome("within", batches, nothing, nothing, 0)
    passing = st.lists(st.sampled_from([*GUESTS, *PASSING]), max_size=2, unique=True)
    changes = [data.draw(passing) for _ in batches]
    deaths = [data.draw(st.booleans()) for _ in batches]
    for hops in ("within", "next"):
        assert outcome(hops, batches, changes, deaths, seed) == alone
