"""Joins of several streams, and what a database says of them."""

from __future__ import annotations

import polars as pl
from arrivals import TYPES, bag, query

from levelwind.model import Column, Operator
from levelwind.model.operator import Multijoin
from levelwind.operators.multijoin import make_multijoin
from levelwind.operators.rows import BEGINNING, END, Arrived, RowType
from levelwind.operators.state import EMPTY

ALIASES = "abcdef"
READ = RowType(tuple(Column(name=name, type=kind) for name, kind in TYPES.items()), "ts")


def kernel_of(where, windows, **options):
    """The kernel of a join of as many inputs as there are windows, in microseconds."""
    aliases = tuple(ALIASES[: len(windows)])
    sizes = {alias: window / 1e6 for alias, window in zip(aliases, windows, strict=True)}
    spec = Multijoin(aliases=aliases, windows_s=sizes, where=where)
    return make_multijoin(Operator(name="m", spec=spec), [READ] * len(windows), **options)


def naive(rows, windows, where, more=()):
    """Every group of the cross product that is a result, as a bag of rows."""
    aliases = ALIASES[: len(rows)]
    latest = f"greatest({', '.join(f'epoch_us({a}.ts)' for a in aliases)})"
    near = [f"{latest} - epoch_us({a}.ts) <= {w}" for a, w in zip(aliases, windows, strict=True)]
    columns = [f"epoch_us({a}.ts), {a}.k, {a}.v, {a}.f, {a}.s" for a in aliases]
    condition = (where or "true").replace("<=>", "IS NOT DISTINCT FROM")
    return bag(
        query(
            f"SELECT {', '.join(columns)}, {latest} FROM {', '.join(f'r{a} {a}' for a in aliases)}"
            f" WHERE {' AND '.join([*near, *more])} AND ({condition})",
            **{f"r{a}": frame for a, frame in zip(aliases, rows, strict=True)},
        )
    )


def plain(rows):
    """Rows that were put out, as a bag."""
    return bag(rows.with_columns(pl.selectors.datetime().to_physical()).rows())


def run(kernel, batches, check=lambda state, marks: None):
    """What a kernel puts out and rejects over batches of arrivals, each input's watermark END at the end."""
    state, outputs, rejected = EMPTY, [], []
    before = BEGINNING
    last = [Arrived(arrived.rows.clear(), END) for arrived in batches[-1]]
    for batch in (*batches, last):
        stepped = kernel.step(state, batch)
        again = kernel.step(state, batch)
        assert stepped.outputs[None].equals(again.outputs[None])
        assert all(at >= before for at in stepped.outputs[None]["join_time"].to_physical())
        outputs.append(stepped.outputs[None])
        rejected += stepped.rejected
        state = stepped.state
        before = min(arrived.watermark for arrived in batch)
        check(state, [arrived.watermark for arrived in batch])
    return pl.concat(outputs), rejected
