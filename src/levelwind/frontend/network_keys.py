"""The network file, written down once: every key, what it holds, what it means."""

from __future__ import annotations

from collections.abc import Mapping

from levelwind.frontend.columntypes import ColumnType
from levelwind.frontend.containers import Key, ListOf, MapOf, OneOrMore, Record
from levelwind.frontend.declared import (
    BYTES,
    CPU_SECONDS,
    DURATION,
    POSITIVE_DURATION,
    Anything,
    ByType,
    Choice,
    Expression,
    Flag,
    Integer,
    Name,
    Number,
    Text,
)
from levelwind.frontend.operator_list import Operators

PORT = Text("the name of a stream or operator, or <operator>.<route>")
SCHEMA = MapOf(ColumnType(), least=1)
SERIES = ByType(
    "a number, a list of numbers, a CSV file, or {file, column}",
    {
        float: Number(),
        list: ListOf(Number(), least=1),
        str: Text("a CSV file"),
        dict: Record(
            "a series from a file",
            {
                "file": Key(Text("a CSV file"), "the CSV file, relative to this one", required=True),
                "column": Key(Text("a column's name"), "the column; the last one if unstated"),
            },
        ),
    },
)
CONNECTOR = Record(
    "a source or sink",
    {
        "format": Key(
            Text("a Spark format, such as parquet"),
            "the Spark format, such as parquet, kafka or rate",
            required=True,
        )
    },
    open=True,
)

STREAM = Record(
    "a stream",
    {
        "schema": Key(SCHEMA, "columns and their Spark SQL types"),
        "time": Key(Text("a column's name"), "the event-time column"),
        "lateness": Key(DURATION, "how late a row may come, default 0s"),
        "idle_after": Key(
            POSITIVE_DURATION, "silent that long, the stream no longer holds back the watermark"
        ),
        "source": Key(CONNECTOR, "any Spark streaming source and its options"),
        "rate": Key(SERIES, "rows per second: a number, a list (one a second) or a CSV file"),
        "min_rate": Key(Number(), "lower bound for resilient planning, rows per second, default 0"),
        "bytes": Key(BYTES, "bytes per row"),
        "node": Key(Text("a node's name"), "the node where its rows enter"),
    },
    may_be_empty=True,
)

COMMON: Mapping[str, Key] = {
    "name": Key(Name(), "the name by which others read it", required=True),
    "kind": Key(Text("an operator kind"), "what it does", required=True),
    "cost": Key(CPU_SECONDS, "CPU seconds per input row; per pair for join, per probe for multijoin"),
    "selectivity": Key(Number(), "rows out per row in; per pair for joins"),
    "varying": Key(Flag(), "true: its selectivity is not to be relied on"),
    "movable": Key(Flag(), "false: it stays where it was first placed"),
    "pinned": Key(Text("a node's name"), "the only node it may run on"),
    "table": Key(Text("a table's name"), "operators on one table stay together"),
    "reusable": Key(Flag(), "false: never shared between queries"),
    "priority": Key(Number(least=None), "the higher, the more important; default 0"),
    "properties": Key(MapOf(Anything(), names=False), "open pairs"),
    "bytes": Key(BYTES, "bytes per output row"),
    "transfer_cost": Key(CPU_SECONDS, "CPU seconds per row sent between nodes, half at each end"),
    "split": Key(
        Record(
            "a split",
            {
                "into": Key(Integer(), "the number of instances", required=True),
                "by": Key(OneOrMore(Text("a column's name")), "the columns whose hash picks the instance"),
            },
        ),
        "divides the operator into instances",
    ),
}
INPUT = {"input": Key(PORT, "what it reads", required=True)}
INPUTS = {"inputs": Key(ListOf(PORT, least=1), "what it reads", required=True)}
ALIASED = {
    "inputs": Key(
        ByType("a list, or a mapping of aliases", {list: ListOf(PORT, least=2), dict: MapOf(PORT, least=2)}),
        "what it reads: a list, or aliases and what they stand for",
        required=True,
    )
}
WHERE = {"where": Key(Expression(), "the condition that rows must fulfil")}
WINDOW = Record(
    "a window",
    {
        "size": Key(POSITIVE_DURATION, "its length in event time"),
        "rows": Key(Integer(), "its length in rows"),
        "slide": Key(
            ByType("a duration, or a number of rows", {str: POSITIVE_DURATION, int: Integer()}),
            "the step from one window to the next; the window's length if unstated (tumbling)",
        ),
    },
    one_of=(("size", "rows"),),
)
DIFFUSE = Record(
    "a diffusion",
    {
        "method": Key(Choice(("auto", "atr", "ctr")), "how tuples are routed, default auto"),
        "instances": Key(Integer(), "over how many instances, default 1"),
        "segment": Key(POSITIVE_DURATION, "the length of a segment of tuples that go together"),
        "weights": Key(
            Record(
                "weights",
                {name: Key(Number(), f"how much {name} counts") for name in ("cpu", "memory", "bandwidth")},
            ),
            "what counts in a node's load when rows are given to nodes, default CPU alone",
        ),
    },
)
PAIR = Record(
    "a condition on pairs",
    {
        "inputs": Key(ListOf(Text("an input's name"), least=2), "the two inputs it is about", required=True),
        "function": Key(
            Text("module:function"),
            "the Python function: two frames in, a boolean a row out",
            required=True,
        ),
    },
)
SHED = Record(
    "what to shed",
    {"rows": Key(Integer(), "at most so many rows of an input are taken in a batch", required=True)},
)
SQL = {
    "url": Key(Text("a JDBC address"), "the database"),
    "table_name": Key(Text("a table's name"), "the database's table"),
    "query": Key(Text("a SQL query"), "the query to run"),
    "key": Key(OneOrMore(Text("a column's name")), "the key columns"),
    "columns": Key(OneOrMore(Text("a column's name")), "the columns that are read or written"),
    "options": Key(MapOf(Anything(), names=False), "further options for the connector"),
}

KIND_KEYS: Mapping[str, Mapping[str, Key]] = {
    "filter": {
        **INPUT,
        **WHERE,
        "routes": Key(MapOf(Expression(), least=1), "conditions by route: a row takes the first that holds"),
        "selectivity": Key(
            ByType("a number, or a number for each route", {float: Number(), dict: MapOf(Number())}),
            "rows out per row in, in all or route by route",
        ),
    },
    "map": {
        **INPUT,
        "select": Key(MapOf(Expression(), least=1), "new columns and their expressions", required=True),
    },
    "union": INPUTS,
    "aggregate": {
        **INPUT,
        "by": Key(OneOrMore(Text("a column's name")), "the columns that make a group"),
        "window": Key(WINDOW, "{size: 10s, slide: 1s} or {rows: 100, slide: 10}", required=True),
        "compute": Key(MapOf(Expression(), least=1), "new columns and their aggregates", required=True),
        "timeout": Key(POSITIVE_DURATION, "closes a window that long after its first row, in event time"),
    },
    "join": {
        **ALIASED,
        **WHERE,
        "within": Key(DURATION, "how far apart in event time two rows may be", required=True),
    },
    "multijoin": {
        **ALIASED,
        **WHERE,
        "windows": Key(
            MapOf(DURATION, least=1, names=False), "for each input, how old a member may be", required=True
        ),
        "pairs": Key(ListOf(PAIR, least=1), "Python conditions on two inputs, besides 'where'"),
        "shed": Key(SHED, "leaves rows out under overload, and counts them"),
        "diffuse": Key(DIFFUSE, "spreads the join over nodes"),
    },
    "sql_read": {**INPUT, **SQL, "schema": Key(SCHEMA, "the columns that the read puts out")},
    "sql_write": {
        **INPUT,
        **SQL,
        "write_mode": Key(Choice(("append", "upsert", "update", "delete")), "what a row does to the table"),
        "select": Key(MapOf(Expression(), least=1), "the table's columns and their expressions"),
    },
    "custom": {
        **INPUT,
        "function": Key(Text("module:function"), "the Python function, as module:name", required=True),
        "schema": Key(SCHEMA, "the columns that the function puts out", required=True),
    },
    "model": {
        "input": Key(PORT, "what it reads"),
        "inputs": Key(ListOf(PORT, least=1), "what it reads: the rows add up"),
        "load": Key(MapOf(Number(), least=1), "load coefficients: CPU seconds per row of each stream"),
        "series": Key(SERIES, "the load itself, one sample a second"),
    },
}


def _elsewhere(kind: str) -> dict[str, str]:
    """The keys that only other kinds know, and which kinds those are."""
    own = {**COMMON, **KIND_KEYS[kind]}
    owners: dict[str, list[str]] = {}
    for other, keys in KIND_KEYS.items():
        for name in keys:
            if name not in own:
                owners.setdefault(name, []).append(other)
    # 'inputs' in place of 'input' and such are slips of the pen: there the nearest key says more.
    return {name: " and ".join(kinds) for name, kinds in owners.items() if name not in ("input", "inputs")}


OPERATORS = Operators(
    {
        kind: Record(f"a {kind} operator", {**COMMON, **keys}, elsewhere=_elsewhere(kind), one_of=one_of)
        for kind, keys in KIND_KEYS.items()
        for one_of in [(("where", "routes"),) if kind == "filter" else ()]
    }
)

_SQL_TEXT = Text("a SQL query")
QUERY = ByType(
    "a SQL query, or {sql, priority, operators}",
    {
        str: _SQL_TEXT,
        dict: Record(
            "a query",
            {
                "sql": Key(_SQL_TEXT, "the query in Spark SQL", required=True),
                "priority": Key(Number(least=None), "of all its operators: the higher, the more important"),
                "operators": Key(
                    MapOf(
                        Record(
                            "an operator of a query",
                            {name: key for name, key in COMMON.items() if name not in ("name", "kind")},
                        ),
                        names=False,
                    ),
                    "what is stated for the operators that the query becomes, such as cost, by their names",
                ),
            },
        ),
    },
)

OUTPUT = Record(
    "an output",
    {
        "input": Key(PORT, "what it puts out", required=True),
        "sink": Key(CONNECTOR, "any Spark sink and its options"),
        "node": Key(Text("a node's name"), "the node where its rows leave"),
    },
)

NETWORK = Record(
    "a network file",
    {
        "name": Key(Text("a name"), "the network's name"),
        "hops": Key(
            Choice(("within", "next")), "whether rows hop between nodes within a batch, or in the next"
        ),
        "trigger": Key(POSITIVE_DURATION, "the time between batches; as fast as it can if unstated"),
        "streams": Key(MapOf(STREAM, keep_bad=True), "the streams that enter, by name"),
        "operators": Key(OPERATORS, "the operators"),
        "queries": Key(MapOf(QUERY, keep_bad=True), "continuous queries in Spark SQL, by name"),
        "outputs": Key(MapOf(OUTPUT, keep_bad=True), "where results leave, by name"),
        "errors": Key(
            Record(
                "the error policy",
                {
                    "on_error": Key(
                        Choice(("dead_letter", "drop", "fail")), "what becomes of a row in error"
                    ),
                    "sink": Key(CONNECTOR, "where dead letters go"),
                },
            ),
            "what becomes of rows that cannot be processed",
        ),
    },
)
