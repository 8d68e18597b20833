"""Equal operators computed once put out the rows that each would, whichever of them come and go."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sameness import NODES, OPERATORS, SCHEMA, SINKS, streams

from levelwind.frontend import parse_network
from levelwind.frontend.addition import extended
from levelwind.rewrite import Shared, share
from levelwind.rewrite.removal import without
from levelwind.rewrite.reuse import inherited, shared_anew
from levelwind.runtime.changes import as_kept
from levelwind.runtime.commits import Version, read_commit, steps_of
from levelwind.runtime.compatibility import check_commit, fingerprints
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.memory import forget
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import Discard, ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

# Joins of two name their inputs, and their rows carry these names: their twins would put out other columns.
JOINS = {told["name"] for told in OPERATORS if told["kind"] == "join"}
LEFT_OUT = JOINS | {told["name"] for told in OPERATORS if told.get("input") in JOINS}
COPIED = [told for told in OPERATORS if told["name"] not in LEFT_OUT]


def twin_of(told):
    """The same operator under another name, over twins."""

    def at(port):
        source, dot, route = port.partition(".")
        return port if source in ("a", "b") else f"{source}_twin{dot}{route}"

    copy = {**told, "name": f"{told['name']}_twin"}
    if "input" in told:
        copy["input"] = at(told["input"])
    elif isinstance(told["inputs"], dict):
        copy["inputs"] = {alias: at(port) for alias, port in told["inputs"].items()}
    else:
        copy["inputs"] = [at(port) for port in told["inputs"]]
    return copy


WRITTEN = {told["name"]: told for told in (*OPERATORS, *map(twin_of, COPIED))}
OUTPUTS = (*SINKS, *(f"{name}_twin" for name in SINKS if name not in LEFT_OUT))
# Of two twins one stays, so that both the first and the second of a pair have to go on alone.
STAYING = tuple(name if number % 2 else f"{name}_twin" for number, name in enumerate(SINKS[:6]))
STAYING += ("trio_twin", "parted", "tail")
PASSING = tuple(name for name in OUTPUTS if name not in STAYING)


def doubled(hops):
    return parse_network(
        {
            "name": "t",
            "hops": hops,
            "streams": {
                "a": {"schema": SCHEMA, "time": "ts", "lateness": "1s"},
                "b": {"schema": SCHEMA, "time": "ts"},
            },
            "operators": list(WRITTEN.values()),
            "outputs": {name: {"input": name} for name in OUTPUTS},
        }
    ).network


def sources_of(told):
    ports = [told["input"]] if "input" in told else told["inputs"]
    ports = ports.values() if isinstance(ports, dict) else ports
    return [port.partition(".")[0] for port in ports]


class World:
    """A run whose queries come and go, as a live run makes them, and that may die between two batches."""

    def __init__(self, folder, hops, *, reuse):
        self.folder, self.reuse = Path(folder), reuse
        self.network = as_kept(doubled(hops))
        self.sinks = {name: ParquetSink(str(self.folder / name)) for name in STAYING}
        self.begin()

    def begin(self):
        forget()  # a new process remembers nothing
        directory = str(self.folder / "checkpoint")
        steps = steps_of(directory)
        last = read_commit(directory, steps[-1]) if steps else None
        running = () if last is None else {name.partition("[")[0] for name in last.boxes}
        self.shared = share(self.network, prefer=running) if self.reuse else Shared.alone(self.network)
        layout = Layout(self.shared.network)
        if last is not None:
            notes = check_commit(last, layout, NODES, Layout(self.network))
            assert not any(note.startswith("new") for note in notes)
        self.coordinator = Coordinator(
            layout, NODES, spread(layout), directory=directory, executor=InProcess(), **self.told()
        )
        self.coordinator.recover()

    def told(self):
        return {
            "sinks": {
                name: self.sinks.get(name, Discard()) for name in (*self.network.outputs, DEAD_LETTERS)
            },
            "fingerprints": fingerprints(Layout(self.network)),
            "version": Version(network="", origin=""),
            "served_by": self.shared.served_by,
        }

    def change(self, name):
        """Add or remove the output of that name."""
        if name in self.network.outputs:
            after = without(self.network, [name])
        else:
            missing, ahead = {}, [name]
            while ahead:
                each = ahead.pop()
                if each in WRITTEN and each not in self.network.operators:
                    missing[each] = WRITTEN[each]
                    ahead += sources_of(WRITTEN[each])
            added = {"operators": list(missing.values()), "outputs": {name: {"input": name}}}
            after = extended(self.network, added)
        self.network = as_kept(after)
        before = self.shared
        self.shared = shared_anew(self.network, before) if self.reuse else Shared.alone(self.network)
        layout = Layout(self.shared.network)
        self.coordinator.change(
            layout, spread(layout), inherited=inherited(before, self.shared), **self.told()
        )

    def rows(self):
        self.coordinator.close()
        found = {}
        for name in STAYING:
            files = sorted((self.folder / name).glob("*.parquet"))
            frame = pl.concat([pl.read_parquet(file) for file in files]) if files else None
            found[name] = None if frame is None else sorted(frame.rows(), key=repr)
        return found


def spread(layout):
    return {box.name: NODES[number % len(NODES)] for number, box in enumerate(layout.boxes)}


def rows(hops, batches, *, reuse, changes=(), deaths=()):
    """Rows of the outputs that stay; before each batch others come and go, after some the run dies.

    ``deaths`` has what it is started with again: whether equal operators are computed once; None: it lives.
    """
    folder = tempfile.mkdtemp()
    try:
        world = World(folder, hops, reuse=reuse)
        for number, batch in enumerate(batches):
            for name in changes[number] if changes else ():
                world.change(name)
            world.coordinator.step(batch, batch=number)
            again = deaths[number] if deaths else None
            if again is not None:
                # Rows on their way are for the operators that there were.
                world.reuse = again if hops == "within" else world.reuse
                world.begin()
        return world.rows()
    finally:
        shutil.rmtree(folder)


def test_all_twins_are_shared():
    shared = share(doubled("within"))
    assert set(shared.served_by) == {f"{told['name']}_twin" for told in COPIED}


@settings(max_examples=10)
@given(data=st.data(), batches=streams())
def test_rows_of_what_stays_are_the_same(data, batches):
    alone = rows("within", batches, reuse=False)
    passing = st.lists(st.sampled_from(PASSING), max_size=4)
    changes = [data.draw(passing) for _ in batches]
    deaths = [data.draw(st.sampled_from([None, None, True, False])) for _ in batches]
    for hops in ("within", "next"):
        assert rows(hops, batches, reuse=True, changes=changes, deaths=deaths) == alone


@settings(max_examples=5)
@given(batches=streams(), leave_at=st.integers(1, 5))
def test_all_that_compute_for_others_go_at_once(batches, leave_at):
    alone = rows("within", batches, reuse=False)
    changes = [PASSING if number == min(leave_at, len(batches) - 1) else () for number in range(len(batches))]
    for hops in ("within", "next"):
        assert rows(hops, batches, reuse=True, changes=changes) == alone
