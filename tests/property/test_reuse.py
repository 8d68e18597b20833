"""Equal operators computed once put out the rows that each would, also when one of them goes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sameness import NODES, OPERATORS, SCHEMA, SINKS, streams

from levelwind.frontend import parse_network
from levelwind.rewrite import Shared, share
from levelwind.rewrite.removal import without
from levelwind.rewrite.reuse import handed_over, shared_anew
from levelwind.runtime.changes import as_kept
from levelwind.runtime.commits import Version
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.memory import forget
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import Discard, ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

# Joins name their inputs, and rows of theirs carry these names: their twins would put out other columns.
JOINS = {told["name"] for told in OPERATORS if told["kind"] in ("join", "multijoin")}
LEFT_OUT = JOINS | {told["name"] for told in OPERATORS if told.get("input") in JOINS}
COPIED = [told for told in OPERATORS if told["name"] not in LEFT_OUT]
TWINS = tuple(f"{name}_twin" for name in SINKS if name not in LEFT_OUT)


def twin_of(told):
    """The same operator under another name, over twins."""

    def at(port):
        source, dot, route = port.partition(".")
        return port if source in ("a", "b") else f"{source}_twin{dot}{route}"

    copy = {**told, "name": f"{told['name']}_twin"}
    if "input" in told:
        copy["input"] = at(told["input"])
    else:
        copy["inputs"] = [at(port) for port in told["inputs"]]
    return copy


def doubled(hops):
    sinks = (*SINKS, *TWINS)
    return parse_network(
        {
            "name": "t",
            "hops": hops,
            "streams": {
                "a": {"schema": SCHEMA, "time": "ts", "lateness": "1s"},
                "b": {"schema": SCHEMA, "time": "ts"},
            },
            "operators": [*OPERATORS, *map(twin_of, COPIED)],
            "outputs": {name: {"input": name} for name in sinks},
        }
    ).network


def spread(layout):
    return {box.name: NODES[number % len(NODES)] for number, box in enumerate(layout.boxes)}


def rows(hops, batches, *, reuse, leave_at):
    """Rows of the twins' outputs; the originals' outputs are removed before the batch ``leave_at``."""
    folder = Path(tempfile.mkdtemp())
    try:
        forget()
        network = as_kept(doubled(hops))
        shared = share(network) if reuse else Shared(network=network)
        sinks = {name: ParquetSink(str(folder / name)) for name in TWINS}
        layout = Layout(shared.network)
        all_sinks = {name: sinks.get(name, Discard()) for name in (*network.outputs, DEAD_LETTERS)}
        run = Coordinator(
            layout, NODES, spread(layout), directory=str(folder / "checkpoint"), executor=InProcess(),
            sinks=all_sinks,
        )  # fmt: skip
        for number, batch in enumerate(batches):
            if number == leave_at:
                network = as_kept(without(network, list(SINKS)))
                after = shared_anew(network, shared) if reuse else Shared(network=network)
                layout = Layout(after.network)
                run.change(
                    layout, spread(layout), sinks=all_sinks, fingerprints={},
                    version=Version(network="after", origin=""), renamed=handed_over(shared, after),
                )  # fmt: skip
            run.step(batch, batch=number)
        run.close()
        found = {}
        for name in TWINS:
            files = sorted((folder / name).glob("*.parquet"))
            frame = pl.concat([pl.read_parquet(file) for file in files]) if files else None
            found[name] = None if frame is None else sorted(frame.rows(), key=repr)
        return found
    finally:
        shutil.rmtree(folder)


def test_all_twins_are_shared():
    shared = share(doubled("within"))
    assert set(shared.served_by) == {f"{told['name']}_twin" for told in COPIED}


@settings(max_examples=4)
@given(batches=streams(), leave_at=st.integers(0, 8))
def test_rows_of_twins_are_the_same(batches, leave_at):
    alone = rows("within", batches, reuse=False, leave_at=None)
    for hops in ("within", "next"):
        assert rows(hops, batches, reuse=True, leave_at=leave_at) == alone
